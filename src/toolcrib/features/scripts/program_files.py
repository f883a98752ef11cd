"""Read programs and documents in a folder of tools; the file name and the code replace missing metadata."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.features.scripts.definition import build_tools
from toolcrib.features.scripts.format import DOCUMENTS, mentions_a_tool
from toolcrib.features.scripts.metadata import read_bash_file, read_javascript_file
from toolcrib.features.scripts.program_interface import read_program
from toolcrib.lib.names import is_capability
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolcrib.features.scripts.metadata import Metadata
    from toolcrib.model.tool import Tool

BASH = (".sh", ".bash")
JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
EXECUTORS = {"bash": "bash", "javascript": "node_runtime"}
SUFFIXES = (*BASH, *JAVASCRIPT, *DOCUMENTS)
# Programs that no format reads, although their authors may expect them to be tools.
OTHER_LANGUAGES = (
    *(".rb", ".php", ".pl", ".lua", ".go", ".rs", ".r", ".jl", ".ps1", ".bat", ".cmd", ".zsh", ".fish", ".ksh", ".awk"),
    *(".java", ".kt", ".swift", ".scala", ".cs", ".c", ".cpp", ".tsx", ".jsx", ".ipynb"),
)
# What the first line of a program without a suffix names.
INTERPRETERS = {b"python": ".py", b"node": ".js", b"sh": ".sh"}
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# What package managers, compilers and we ourselves keep beside code.
PROJECT_FILES = re.compile(
    r"(?:package(?:-lock)?|[jt]sconfig(?:\..*)?|tool_registry|deno|biome|composer|renovate)\.jsonc?"
    r"|(?:pyproject|toolcrib|Cargo|poetry|uv|ruff|mise)\.toml|pnpm-(?:lock|workspace)\.yaml|\.?(?:pre-commit-config|golangci)\.ya?ml"
    r"|docker-compose.*\.ya?ml|.*\.(?:config|test|spec)\.[cm]?[jt]s|.*\.d\.[cm]?ts|(?:conftest|setup)\..*"
)
# Comments of ordinary programs hold such words too; a value of another shape is prose.
SHAPES: Mapping[str, Callable[[object], bool]] = {
    "tool_id": lambda value: isinstance(value, str) and re.fullmatch(r"[\w-]{1,64}", value) is not None,
    "version": lambda value: isinstance(value, str) and VERSION.fullmatch(value) is not None,
    "description": lambda value: isinstance(value, str) and bool(value.strip()),
    "requires": lambda value: (
        isinstance(value, list) and all(isinstance(word, str) and is_capability(word) for word in value)
    ),
    "args": lambda value: isinstance(value, list),
    "stdin": lambda value: isinstance(value, str) and "{" in value,
    "parameters": lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
    "timeout": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "tags": lambda value: isinstance(value, list),
    **dict.fromkeys(
        ("input_schema", "output_schema", "outputs", "config", "retry_policy", "cost", "documentation", "metadata"),
        lambda value: isinstance(value, dict),
    ),
    "actions": lambda value: isinstance(value, dict | list),
    # A restriction is never dropped.
    "hosts": lambda _: True,
    "limits": lambda _: True,
}


class ProgramFile:
    """Reads Bash and JavaScript programs, and documents with metadata, in a folder of tools."""

    name = "program"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files, tests and those of package managers do not."""
        stem = path.stem
        return (
            path.suffix.lower() in SUFFIXES
            and stem[:1] not in "_."
            and not stem.startswith("test_")
            and PROJECT_FILES.fullmatch(path.name) is None
        )

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the file; none for a document that describes no tool."""
        metadata = read_plain(path, code)
        return [] if metadata is None else build_tools(metadata, path.parent.parent)


def read_plain(path: Path, code: bytes) -> Metadata | None:
    """The metadata of a file in a folder of tools, with what its name and its code say in place of missing fields."""
    suffix = path.suffix.lower()
    if suffix in DOCUMENTS:
        found = DOCUMENTS[suffix](path, code) if mentions_a_tool(code) else None
        return None if found is None else _complete(found, found.fields)
    reader = read_bash_file if suffix in BASH else read_javascript_file
    found = reader(path, code, plain=True)
    if found is None:
        return None
    is_meant = "tool_type" in found.fields or "executor_id" in found.fields
    if not is_meant:
        found = _without_prose(found)
    return _complete(found, found.fields)


def why_ignored(path: Path, code: bytes) -> str:
    """Why a file in a folder of tools is not a tool, and what to do if it should be one."""
    if PROJECT_FILES.fullmatch(path.name) is not None:
        return "it belongs to the project and describes no tool"
    if re.search(rb"^tool_request:", code, re.MULTILINE):
        return f"it is a request for a tool; submit it: crib request submit {path}"
    if not path.suffix and code.startswith(b"#!"):
        first = code.partition(b"\n")[0]
        suffix = next((suffix for word, suffix in INTERPRETERS.items() if word in first), "")
        cure = f"rename it: mv {path.name} {path.name}{suffix}" if suffix else "give it one, such as .sh, .py or .js"
        return f"its name has no suffix, so nothing says what it is written in; {cure}"
    if path.suffix.lower() in DOCUMENTS:
        return "it describes no tool; name tool_type and executor_id if it should, or move it to another folder"
    if path.suffix.lower() not in OTHER_LANGUAGES:
        return "no tool was found in it, and no tool names it; begin its name with '_', or move it to another folder"
    return "files of this kind are not tools; describe it in a .yaml file beside it, or move it to another folder"


def _complete(metadata: Metadata, fields: Mapping[str, object]) -> Metadata:
    """The metadata with defaults in place of what it leaves out."""
    path, language = metadata.path, metadata.language
    if not language:
        return replace(metadata, fields={**fields, "category": path.parent.name}, plain=True)
    defaults: dict[str, object] = {
        "tool_id": path.stem,
        "version": "1.0.0",
        "tool_type": "file",
        "executor_id": EXECUTORS[language],
    }
    warnings = list(metadata.warnings)
    if "description" not in fields:
        program = read_program(metadata)
        text = "" if program is None else program.summary
        defaults["description"] = text or re.sub(r"[_-]+", " ", path.stem).capitalize()
        if not text:
            sample = metadata.notation.write("description", "What it does")
            warnings.append(f"{path}:1: nothing describes it; write {sample}")
    known = {**defaults, **fields, "category": path.parent.name}
    refused = metadata.refused - known.keys()
    return replace(metadata, fields=known, warnings=tuple(warnings), refused=refused, plain=True)


def _without_prose(metadata: Metadata) -> Metadata:
    """The metadata without what only looks like a field; a part that cannot even be read is prose too."""
    kept = {name: value for name, value in metadata.fields.items() if name in SHAPES and SHAPES[name](value)}
    requires = metadata.fields.get("requires")
    if requires is not None and "requires" not in kept:
        line = metadata.line_of(("requires",))
        message = f"{metadata.path}:{line}: requires: write a list of dotted names, such as [fs.read]"
        raise ToolError(Kind.VALIDATION, message)
    return replace(metadata, fields=kept, problems=(), refused=frozenset())
