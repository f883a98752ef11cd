"""The record of files that were pulled from a depot, in their folder of tools: it stays with them when they are copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.files import read_small
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, read_json
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from pathlib import Path

PULLED = ".pulled.json"


def read_pulled(folder: Path) -> dict[str, list[str]]:
    """The paths of the files from the folder, by the tool that they came with."""
    path = folder / PULLED
    data = read_small(path, MAX_DEFINITION_BYTES)
    found = {} if data is None else read_json(data, place=str(path))
    if not isinstance(found, dict) or not all(isinstance(files, list) for files in found.values()):
        raise ToolError(Kind.VALIDATION, f"{path}: write an object with the files of each tool that was pulled")
    return {name: list(map(str, files)) for name, files in found.items()}
