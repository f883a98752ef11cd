"""A tool folder made from parts, and a way to read it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.features.folders.format import ReadFolder, read_tool
from toolcrib.infra.files.tool_folder import survey_folder

FIXTURES = Path(__file__).parents[3] / "seeds/fixtures/tool_folders"
ROOT = Path("tools")
FIELDS = {
    "toolId": "my_tool",
    "version": "1.2.3",
    "description": "Look a word up.",
    "category": "retrieval",
    "sideEffects": "read_only",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 500,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["word"],
        "properties": {"word": {"type": "string", "description": "What to look up", "maxLength": 20}},
    },
}
SECTIONS = {
    "Summary": "Look a word up.",
    "Preconditions": "- There is a word",
    "Postconditions": "- Nothing has changed",
    "Invariants": "- The answer is the same each time",
    "Failure Modes": "- **VALIDATION**: The word is too long",
    "Examples": '### Example 1: A Word\n```json\n{"word": "crib"}\n```',
    "Common Mistakes (Do Not)": "❌ Look up a sentence",
}
HANDLER = "export async function execute({ args, context }) {\n  return { ok: true, data: args };\n}\n"


def document(**changes: str | None) -> str:
    """A complete `doc.md` in which sections are changed; one of None is left out."""
    sections = {**SECTIONS, **changes}
    return "# My Tool\n\n" + "\n\n".join(f"## {name}\n{text}" for name, text in sections.items() if text is not None)


def _encoded(content: Any) -> bytes:
    text = json.dumps(content, indent=2) if isinstance(content, dict) else content
    return text.encode() if isinstance(text, str) else text


@pytest.fixture
def doc() -> Callable[..., str]:
    """A complete `doc.md`, with sections changed."""
    return document


@pytest.fixture
def fields() -> dict[str, object]:
    """The fields of a tool with which nothing is wrong."""
    return json.loads(json.dumps(FIELDS))


@pytest.fixture
def read() -> Callable[..., ReadFolder]:
    """Read the folder `tools/my-tool` with files changed; one of None is left out."""

    def read(folder: str = "my-tool", **changes: object) -> ReadFolder:
        names = {
            "schema": "schema.json",
            "summary": "doc_summary.md",
            "doc": "doc.md",
            "js": "handler.js",
            "py": "handler.py",
        }
        texts = {"schema": FIELDS, "summary": "Look a word up.\n", "doc": document(), "js": HANDLER, **changes}
        files = {f"{folder}/{names[name]}": _encoded(content) for name, content in texts.items() if content is not None}
        # What the handlers of these tests import.
        beside = {f"{folder}/{name}": b"" for name in ("other.js", "a.json", "lib/a.js") if name in str(texts["js"])}
        return read_tool(ROOT, folder, {**files, **beside}, {"_core/b.js": b""})

    return read


@pytest.fixture
def faults(read) -> Callable[..., list[str]]:
    """What is wrong with such a folder, without its path."""

    def faults(**changes: object) -> list[str]:
        reading = read(**changes)
        assert reading.tool is None
        assert reading.problems
        return [problem.removeprefix("tools/my-tool/") for problem in reading.problems]

    return faults


@pytest.fixture
def warnings_of(read) -> Callable[..., list[str]]:
    """What the author of such a folder should know, which is kept with the tool."""

    def warnings_of(**changes: object) -> list[str]:
        reading = read(**changes)
        assert reading.problems == ()
        assert reading.tool is not None
        assert reading.tool.warnings == reading.warnings
        return [warning.removeprefix("tools/my-tool/") for warning in reading.warnings]

    return warnings_of


@pytest.fixture
def read_fixture() -> Callable[[str], ReadFolder]:
    """Read one of the document's own folders from disk."""
    root = FIXTURES / "tools"
    return lambda folder: read_tool(root, folder, survey_folder(root, folder).files, {})


@pytest.fixture
def fixture_text() -> Callable[[str], str]:
    """A text of the document."""
    return lambda name: (FIXTURES / name).read_text(encoding="utf-8")
