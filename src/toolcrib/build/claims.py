"""What a registry file says, taken for what it is: the word of a file that anybody may have written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.build.cache import ENTRY_DEPTH
from toolcrib.build.commit import UNKNOWN
from toolcrib.build.content import VERSION_LETTERS, VERSION_SERIES, version_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.build.content import Hashes

MAX_REGISTRY_BYTES = 64_000_000
SHOWN = 80

_VERSION = re.compile(rf"{re.escape(VERSION_SERIES)}\.[0-9a-f]{{{VERSION_LETTERS}}}")
_COMMIT = re.compile(rf"[0-9a-f]{{40}}|[0-9a-f]{{64}}|{UNKNOWN}")
_HASH = re.compile(r"[0-9a-f]{64}")
_FOLDER = re.compile(r"(?!_)[\w-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """The version and commit, and which bytes were built: those that tools share, and those of each folder."""

    version: str
    git_commit: str
    shared: Hashes
    folders: Mapping[str, Hashes]


def read_claims(data: bytes) -> Claims:
    """Read a registry; raises ToolError for one that no build wrote."""
    try:
        document = read_json(data, place="content", max_bytes=MAX_REGISTRY_BYTES, max_depth=ENTRY_DEPTH)
        claims = _read(_object(document, "the file"))
    except _OddError as odd:
        raise ToolError(Kind.VALIDATION, f"{odd}; no build wrote this") from None
    if claims.version != version_of(claims.folders.values(), claims.shared):
        raise ToolError(Kind.VALIDATION, f"registryVersion: {claims.version} is not that of the files it names")
    return claims


class _OddError(Exception):
    """What no build would have written."""


def _read(document: Mapping[str, object]) -> Claims:
    folders = {}
    for name, entry in _object(document.get("tools"), "tools").items():
        folder, hashes = _tool(name, _object(entry, f"tools.{name[:SHOWN]}"))
        folders[folder] = hashes
    return Claims(
        version=_match(_VERSION, document.get("registryVersion"), "registryVersion"),
        git_commit=_match(_COMMIT, document.get("gitCommit"), "gitCommit"),
        shared=_hashes(document.get("shared"), "shared", "_"),
        folders=folders,
    )


def _tool(name: str, entry: Mapping[str, object]) -> tuple[str, Hashes]:
    """The folder of a tool and the hashes of its files; each path must lead into that folder."""
    place = f"tools.{name[:SHOWN]}"
    folder = _match(_FOLDER, entry.get("folder"), f"{place}.folder")
    if folder.replace("-", "_") != name:
        raise _OddError(f"{place}.folder: {folder[:SHOWN]!r} is the folder of another tool")
    hashes = _hashes(entry.get("files"), f"{place}.files", f"{folder}/")
    for field in ("handlerPath", "documentation"):
        path = entry.get(field)
        if not isinstance(path, str) or path not in hashes:
            raise _OddError(f"{place}.{field}: {path!r:.80} is none of its files")
    return folder, hashes


def _hashes(value: object, place: str, beginning: str) -> Hashes:
    hashes = {}
    for path, digest in _object(value, place).items():
        if not path.startswith(beginning) or not _is_inside(path):
            raise _OddError(f"{place}: the path {path[:SHOWN]!r} does not lead into {beginning!r}")
        hashes[path] = _match(_HASH, digest, f"{place}.{path[:SHOWN]}")
    return hashes


def _is_inside(path: str) -> bool:
    return "\0" not in path and not {"", ".", ".."} & {*path.split("/")}


def _object(value: object, place: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _OddError(f"{place}: is no object")
    return value


def _match(pattern: re.Pattern[str], value: object, place: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _OddError(f"{place}: {value!r:.80} is not in order")
    return value
