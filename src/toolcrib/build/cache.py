"""What earlier checks of tool folders came to: kept to save time, and believed for nothing else.

The file is one line, with the hash of the code that checked and the hash of the rest, and then the entries as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.build.content import hash_files, hash_of
from toolcrib.ground.files import durable
from toolcrib.model.errors import ToolError
from toolcrib.pure.documents import MAX_DEPTH, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    Entry = Mapping[str, object]

# Named as packages, so that one that moves is missed at once: a folder that is not there would count as one without code.
CHECKING = ("toolcrib.build", "toolcrib.dialects", "toolcrib.model", "toolcrib.pure")
MAX_CACHE_BYTES = 64_000_000
ENTRY_DEPTH = (
    4 * MAX_DEPTH
)  # a parameter schema as deep as any may be, in the words of a provider that needs more of them


class Cache:
    """Entries of a registry by the hash of all that they were made from; only tools without a problem have one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known = {} if path is None else _load(path)
        self._used: dict[str, Entry] = {}

    def get(self, key: str) -> Entry | None:
        """The entry that was made from the very same content."""
        entry = self._known.get(key)
        if entry is not None:
            self._used[key] = entry
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry for the next time."""
        self._used[key] = entry

    def save(self) -> None:
        """Write down what was of use this time; a cache that cannot be written costs time and nothing else."""
        if self._path is None or self._used.keys() == self._known.keys():
            return
        document = json.dumps(self._used, sort_keys=True).encode()
        with suppress(ToolError):
            durable.replace(self._path, _seal(document) + document)


def _load(path: Path) -> dict[str, Entry]:
    with suppress(ToolError):
        data = durable.read(path, MAX_CACHE_BYTES) or b""
        line, _, document = data.partition(b"\n")
        if line + b"\n" == _seal(document):
            found = read_json(document, place=str(path), max_bytes=MAX_CACHE_BYTES, max_depth=ENTRY_DEPTH)
            return {key: entry for key, entry in found.items() if _is_entry(entry)} if isinstance(found, dict) else {}
    return {}


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    warnings = entry.get("warnings")
    return isinstance(warnings, list) and all(isinstance(warning, str) for warning in warnings)


def _seal(document: bytes) -> bytes:
    return f"toolcrib-build {_code()} {hashlib.sha256(document).hexdigest()}\n".encode()


@cache
def _code() -> str:
    """A hash over the code that checks, and the Python that reads handlers: with others a check may end otherwise."""
    from importlib.resources import files

    folders = {name: Path(str(files(name))) for name in CHECKING}
    code = {
        f"{name}/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for name, folder in folders.items()
        for file in folder.rglob("*.py")
    }
    hashes = hash_files(code)
    return hash_of({**hashes, "python": "{}.{}".format(*sys.version_info)})
