"""The package that a client delivers: files by their paths, in the body of a request and then in a folder."""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from toolcrib.infra.files.tool_folder import MAX_DEPTH, MAX_FILES
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from toolcrib.toolkit.http.concurrency import Threads

MAX_NAME_BYTES = 255
SHOWN = 80
# What those who made it call it, in complaints and in the history.
FOLDER = "package"


@asynccontextmanager
async def written_package(files: Mapping[str, bytes], threads: Threads) -> AsyncIterator[Path]:
    """The files in a folder of their own, for as long as it is used."""
    with _explained():
        directory = TemporaryDirectory(prefix="toolcrib-delivery-", ignore_cleanup_errors=True)
    with directory as place:
        writing = asyncio.ensure_future(threads.write(_write, Path(place) / FOLDER, files))
        try:
            yield await asyncio.shield(writing)
        finally:
            # What is still being written would outlive the folder.
            await asyncio.wait({writing})


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    with _explained():
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
    return folder


@contextmanager
def _explained() -> Iterator[None]:
    """Tell that the fault is the server's, and not where on its disk."""
    try:
        yield
    except OSError as problem:
        message = f"the server has no place for what was delivered: {problem.strerror}; look at its TMPDIR and its disk"
        raise ToolError(Kind.INTERNAL, message) from problem


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
