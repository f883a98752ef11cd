"""Which files may hold a tool with metadata, and who reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.dialects.script.metadata import Metadata
    from toolcrib.model.tool import Tool

PYTHON = frozenset({".py"})
JAVASCRIPT = frozenset({".js", ".mjs", ".cjs"})
BASH = frozenset({".sh", ".bash"})
YAML = frozenset({".yaml", ".yml"})
TOML = frozenset({".toml"})
JSON = frozenset({".json"})
READ = PYTHON | JAVASCRIPT | BASH | YAML | TOML | JSON
# Languages that tools could be written in and whose comments nobody here reads.
OTHER_LANGUAGES = frozenset(
    {
        ".awk",
        ".bat",
        ".c",
        ".clj",
        ".cpp",
        ".cs",
        ".dart",
        ".ex",
        ".exs",
        ".fish",
        ".go",
        ".groovy",
        ".hs",
        ".java",
        ".jl",
    }
    | {".jsx", ".kt", ".ksh", ".lua", ".nim", ".php", ".pl", ".ps1", ".r", ".rb", ".rs", ".scala", ".swift", ".tcl"}
    | {".ts", ".tsx", ".zig", ".zsh"}
)
LOOKS_LIKE_A_TOOL = re.compile(rb"\b_{0,2}(?:tool_type|executor_id|tool_id)_{0,2}\b")


class ScriptFile:
    """Reads the files below the root of a space, where a tool's category is the way from there to its folder."""

    name = "script"

    def __init__(self, root: Path) -> None:
        self.root = root

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files and those that begin with '_' do not."""
        suffix = path.suffix.lower()
        return path.name[:1] not in {"_", "."} and (suffix in READ or suffix in OTHER_LANGUAGES)

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the file: none for a helper, one for most, one per action where there are actions."""
        metadata = read_metadata(path, code)
        if metadata is None:
            return []
        from toolcrib.dialects.script.build import build_tools

        return build_tools(metadata, self.root)


def read_metadata(path: Path, code: bytes) -> Metadata | None:
    """What the file says about its tool; None if it is not meant to be one."""
    # Each kind of file needs modules of its own, and a crib waits only for those that its files ask for.
    suffix = path.suffix.lower()
    if suffix in PYTHON:
        from toolcrib.dialects.script import python

        return python.read_python_file(path, code)
    if suffix in JAVASCRIPT | BASH:
        from toolcrib.dialects.script import comments

        read = comments.read_javascript_file if suffix in JAVASCRIPT else comments.read_bash_file
        return read(path, code)
    if suffix in READ and not _mentions_a_tool(code):
        return None
    if suffix in READ:
        from toolcrib.dialects.script import documents

        if suffix in YAML:
            return documents.read_yaml_file(path, code)
        return documents.read_toml_file(path, code) if suffix in TOML else documents.read_json_file(path, code)
    _refuse_unread_language(path, code)
    return None


def _mentions_a_tool(code: bytes) -> bool:
    """Whether a document could be a tool: others are data, and may be templates that no parser reads."""
    return LOOKS_LIKE_A_TOOL.search(code) is not None or b"\0" in code


def _refuse_unread_language(path: Path, code: bytes) -> None:
    found = LOOKS_LIKE_A_TOOL.search(code)
    if found is None:
        return
    line = code.count(b"\n", 0, found.start()) + 1
    message = (
        f"{path}:{line}: metadata is not read from {path.suffix} files, so this one is skipped; "
        "describe it in a .yaml file beside it, or install a plug-in whose dialect reads it"
    )
    raise ToolError(Kind.VALIDATION, message)
