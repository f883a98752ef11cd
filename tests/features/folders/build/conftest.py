"""A root of tool folders that can be written, broken, moved and built."""

import json
from pathlib import Path

import pytest

from toolcrib.build import build

SCHEMA = {
    "version": "1.0.0",
    "description": "Search the knowledge base.",
    "category": "retrieval",
    "sideEffects": "read_only",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 800,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {"query": {"type": "string", "description": "What to look for", "maxLength": 200}},
    },
}
SECTIONS = ("Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes")
DOCUMENTATION = "# A tool\n" + "".join(f"\n## {section}\nSomething is said here.\n" for section in SECTIONS)
HANDLER = "export async function execute({ args, context }) {\n  return { ok: true, data: args };\n}\n"


class Tools:
    """The root, with verbs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = root / "tool_registry.json"

    def add(self, folder: str = "kb-search", files: dict[str, str] | None = None, **fields: object) -> Path:
        """Write a tool folder; a field that is None is left out of its schema, and so is a file."""
        schema = {"toolId": folder.replace("-", "_"), **SCHEMA, **fields}
        texts = {
            "schema.json": json.dumps({name: value for name, value in schema.items() if value is not None}, indent=2),
            "doc_summary.md": "Search the knowledge base.\n",
            "doc.md": DOCUMENTATION,
            "handler.js": HANDLER,
            **(files or {}),
        }
        for name, text in texts.items():
            if text is not None:
                self.write(f"{folder}/{name}", text)
        return self.root / folder

    def write(self, path: str, text: str | bytes) -> Path:
        """Write any file of the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def build(self, **how):
        """Build what must build."""
        built = build(self.root, **how)
        assert built.problems == ()
        return built

    def document(self) -> dict:
        """What the registry says."""
        return json.loads(self.registry.read_bytes())


@pytest.fixture
def tools(tmp_path) -> Tools:
    root = tmp_path / "project" / "tools"
    root.mkdir(parents=True)
    return Tools(root)


@pytest.fixture
def tools_at():
    """Make a root anywhere."""

    def make(root: Path) -> Tools:
        root.mkdir(parents=True, exist_ok=True)
        return Tools(root)

    return make
