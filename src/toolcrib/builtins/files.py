"""The file tools: list_files, read_file and write_file, inside the workspace's jail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.files.texts import encode_text, list_items, read_text
from toolcrib.model.tool import Behaviour, Function, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.ground.files.jail import Jail

BUNDLE = "builtin"
MAX_FILE_BYTES = 1_000_000
MAX_ITEMS = 5_000

_ITEMS: dict[str, object] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name in the folder."},
            "type": {
                "type": "string",
                "enum": ["file", "directory", "symlink", "other"],
                "description": "What it is; links are not followed.",
            },
            "size": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Bytes of a file, null for anything else.",
            },
        },
        "required": ["name", "type", "size"],
        "additionalProperties": False,
    },
}


class FileTools:
    """What the three tools do; nothing is kept between two runs."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail

    def list_files(self, path: str) -> list[dict[str, object]]:
        """The items of a folder, sorted by name."""
        return list_items(self._jail, path, MAX_ITEMS)

    def read_file(self, path: str) -> str:
        """The text of a file."""
        return read_text(self._jail, path, MAX_FILE_BYTES)

    def write_file(self, path: str, content: str) -> str:
        """Write the whole file and say how many bytes it has."""
        data = encode_text(path, content, MAX_FILE_BYTES)
        self._jail.write(path, data)
        return f"Wrote {len(data)} bytes to {path}"


def file_tools(jail: Jail) -> list[Tool]:
    """The three tools over one jail."""
    tools = FileTools(jail)
    return [
        _reader(
            "list_files",
            f"List the files and folders of a folder in the workspace, with their types and sizes; at most {MAX_ITEMS} of them.",
            "The folder, relative to the workspace; '.' for the workspace itself.",
            tools.list_files,
            _ITEMS,
        ),
        _reader(
            "read_file",
            f"Read a UTF-8 text file of the workspace; at most {MAX_FILE_BYTES} bytes.",
            "The file, relative to the workspace.",
            tools.read_file,
            {"type": "string", "description": "The content of the file."},
        ),
        Tool(
            name="write_file",
            description=f"Write a UTF-8 text file of the workspace, at most {MAX_FILE_BYTES} bytes. "
            "Folders on the way are created; a file that exists is replaced.",
            parameters=_closed(
                path="The file, relative to the workspace.", content="The whole new content of the file."
            ),
            output_schema={"type": "string", "description": "What was written, with the number of bytes."},
            run=Function(call=tools.write_file, is_async=False),
            bundle=BUNDLE,
            behaviour=Behaviour.ACTION,
            side_effects=SideEffects.WRITES,
            idempotent=True,
            requires=frozenset({"fs.write"}),
        ),
    ]


def _reader(
    name: str, description: str, path: str, call: Callable[..., object], output_schema: dict[str, object]
) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters=_closed(path=path),
        output_schema=output_schema,
        run=Function(call=call, is_async=False),
        bundle=BUNDLE,
        behaviour=Behaviour.RETRIEVAL,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        requires=frozenset({"fs.read"}),
    )


def _closed(**descriptions: str) -> dict[str, object]:
    """A schema of texts that are all required, and nothing else."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in descriptions.items()},
        "required": list(descriptions),
        "additionalProperties": False,
    }
