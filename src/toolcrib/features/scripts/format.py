"""Read files with metadata into tools: code in several languages, and documents that only describe."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolcrib.features.scripts.definition import build_tools
from toolcrib.features.scripts.metadata import (
    read_bash_file,
    read_javascript_file,
    read_json_file,
    read_toml_file,
    read_yaml_file,
)
from toolcrib.features.scripts.python_code import read_python_file
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.features.scripts.metadata import Metadata
    from toolcrib.model.tool import Tool

# What reads each kind of file: code holds its metadata in comments or variables, a document is nothing else.
CODE = {
    ".py": read_python_file,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), read_javascript_file),
    **dict.fromkeys((".sh", ".bash"), read_bash_file),
}
DOCUMENTS = {
    **dict.fromkeys((".yaml", ".yml"), read_yaml_file),
    ".toml": read_toml_file,
    ".json": read_json_file,
}
# Languages that tools could be written in and whose comments are not read here.
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
    | {".tsx", ".zig", ".zsh"}
)
HEAD_BYTES = 4096
# As each kind of file writes it at its top; deeper down the name may mean anything.
TOOL_ID = re.compile(
    rb"""^(?:[ \t]*+(?:\#|//|/?\*++)[ \t]*+(?:@tool_id[ \t]|@?tool_id:)
        |__tool_id__[ \t]*+=
        |(?:tool_id|[ \t{]*+"tool_id")[ \t]*+[:=])[ \t]*+["']?+([\w-]{1,64})""",
    re.MULTILINE | re.VERBOSE,
)
FULL_HEADER = (b"tool_type", b"executor_id")
LOOKS_LIKE_A_TOOL = re.compile(rb"\b_{0,2}(?:tool[-_]type|executor[-_]id|tool[-_]id)_{0,2}\b")


class ScriptFile:
    """Reads the files below the root of a space, where the category of a tool is the path from the root to its folder."""

    name = "script"

    def __init__(self, root: Path) -> None:
        self.root = root

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files and those that begin with '_' do not."""
        suffix = path.suffix.lower()
        if path.name[:1] in {"_", "."}:
            return False
        return (
            suffix in CODE
            or suffix in DOCUMENTS
            or suffix in OTHER_LANGUAGES
            or (not suffix and _has_full_header(path))
        )

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the file: none for a helper, one for most, one per action where there are actions.

        The details of a ToolError hold the `tool_id` of the invalid file, where it can be read.
        """
        try:
            metadata = read_metadata(path, code)
            if metadata is None:
                return []
            return build_tools(metadata, self.root)
        except ToolError as error:
            found = TOOL_ID.search(code)
            if found is None:
                raise
            raise error.replace(details={**error.details, "tool_id": found[1].decode()}) from None


def read_metadata(path: Path, code: bytes) -> Metadata | None:
    """What the file says about its tool; None if it is not meant to be one."""
    suffix = path.suffix.lower()
    if suffix in CODE:
        return CODE[suffix](path, code)
    if suffix in DOCUMENTS:
        return DOCUMENTS[suffix](path, code) if mentions_a_tool(code) else None
    _refuse_unread_language(path, code)
    return None


def mentions_a_tool(code: bytes) -> bool:
    """Whether a document may describe a tool; others are data, or templates that do not parse."""
    return LOOKS_LIKE_A_TOOL.search(code) is not None or b"\0" in code


def _has_full_header(path: Path) -> bool:
    """Whether a file without an extension has a full header; never blocks, not even on a fifo."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        head = os.read(descriptor, HEAD_BYTES)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return head.startswith(b"#!") and all(name in head for name in FULL_HEADER)


def _refuse_unread_language(path: Path, code: bytes) -> None:
    found = LOOKS_LIKE_A_TOOL.search(code)
    if found is None:
        return
    line = code.count(b"\n", 0, found.start()) + 1
    which = f"{path.suffix} files" if path.suffix else "files without an extension"
    rename = "" if path.suffix else "add the extension of its language, such as .sh, "
    message = (
        f"{path}:{line}: metadata is not read from {which}, so this one is skipped; "
        f"{rename}describe it in a .yaml file beside it, or install a plug-in whose format reads it"
    )
    raise ToolError(Kind.VALIDATION, message)
