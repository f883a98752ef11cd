"""The package that a client delivers: files by their paths, in the body of a request and then in a folder."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.files import MAX_DEPTH, MAX_FILES
from toolcrib.ground.files.faults import explained
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.names import is_foreign

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_NAME_BYTES = 255
SHOWN = 80
# What those who made it call it, in complaints and in the history.
FOLDER = "package"


def write_files(place: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files into a new folder there, and give the folder."""
    folder = place / FOLDER
    with explained(str(folder)):
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
    return folder


def files_of(body: Mapping[str, object]) -> dict[str, bytes]:
    """The files of a body: those of `files` are texts, those of `binary` base64."""
    texts, binary = _texts(body, "files"), _texts(body, "binary")
    if len(texts) + len(binary) > MAX_FILES or not (texts or binary):
        raise ToolError(Kind.VALIDATION, f"body: files: send 1 to {MAX_FILES} files, each by its path")
    _check_paths((*texts, *binary))
    return {
        **{path: _encode(path, text) for path, text in texts.items()},
        **{path: _decode(path, text) for path, text in binary.items()},
    }


def _texts(body: Mapping[str, object], key: str) -> dict[str, str]:
    value = body.get(key, {})
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise ToolError(Kind.VALIDATION, f'body: {key}: must be an object of texts; write {{"name.py": "…"}}')


def _encode(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        message = f"body: files: {path!r:.{SHOWN}} holds half of a character; send it as base64 in binary"
        raise ToolError(Kind.VALIDATION, message) from None


def _decode(path: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(Kind.VALIDATION, f"body: binary: {path!r:.{SHOWN}} is no base64") from None


def _check_paths(paths: tuple[str, ...]) -> None:
    """Refuse what would lead out of the folder, would be left behind, or means one place twice."""
    taken: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        _check_path(path)
        # A disk that knows no capitals would keep one of two.
        key = path.casefold()
        if key in taken:
            raise ToolError(Kind.VALIDATION, f"body: {path!r:.{SHOWN}} is sent twice; send it once, by one name")
        taken.add(key)
        words = key.split("/")
        folders.update("/".join(words[:end]) for end in range(1, len(words)))
    if both := taken & folders:
        raise ToolError(Kind.VALIDATION, f"body: {min(both)!r:.{SHOWN}} is a file and a folder; rename one of them")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if "" in parts or "\\" in path or not path.isprintable() or len(parts) > MAX_DEPTH:
        message = f"body: {path!r:.{SHOWN}} is no path within the package; write name.py or folder/name.py"
        raise ToolError(Kind.VALIDATION, message)
    for name in parts:
        if is_foreign(name) or len(name.encode()) > MAX_NAME_BYTES:
            message = f"body: {path!r:.{SHOWN}}: {name!r:.{SHOWN}} is no part of a package; leave it out, or rename it"
            raise ToolError(Kind.VALIDATION, message)
