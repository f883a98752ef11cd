"""Read `tools/<name>/tool.json` into a tool, if everything in the folder is as it was when it was proved.

Size and depth are limited, links are not followed, reading never blocks, and a file that changes meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.features.requests.built_package import (
    DESCRIPTION_FILE,
    GENERATED,
    IMPORT_FILE,
    BuiltPackage,
    describe,
    make_tool,
)
from toolcrib.infra.files import OPEN_FOLDER, read_at_most, stamp_of
from toolcrib.infra.files.tool_folder import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_NAMES,
    READ_AT_ONCE,
    check_name,
    spell_name,
)
from toolcrib.lib.document_format import is_newer
from toolcrib.lib.documents import read_json
from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from toolcrib.model.tool import Tool


# A tool.json of another program does not contain these keys.
MARKS = (b'"digest"', b'"requestID"')
# Fields that depend on the folder, the request and the time, and not on what was proved.
CIRCUMSTANCES = frozenset({"schemaVersion", "bundleID", "toolID", "requestID", "createdAt", "modifiedAt"})
TIMES = ("createdAt", "modifiedAt")
SHOWN_LETTERS = 80


def read_package(path: Path, code: bytes) -> list[Tool]:
    """The tool of the package that the file describes; none if it is not one of ours."""
    if not all(mark in code for mark in MARKS):
        return []
    folder = path.absolute().parent
    try:
        return [make_tool(load_package(folder, code), folder)]
    except ToolError as error:
        details = {**error.details, "tool_id": folder.name}
        raise error.replace(details=details) from None


def load_package(folder: Path, code: bytes) -> BuiltPackage:
    """What the folder holds and `code`, its description, promises; raises ToolError if that is not what was proved."""
    place = f"{folder.parent.name}/{folder.name}"
    document = read_json(code, place=f"{place}/{DESCRIPTION_FILE}")
    if not isinstance(document, dict):
        raise _changed(place, DESCRIPTION_FILE, {})
    version = document.get("schemaVersion")
    if isinstance(version, str) and is_newer(version):
        message = f"{place}/{DESCRIPTION_FILE}: was written by a later version of Toolcrib; use that one"
        raise ToolError(Kind.VALIDATION, message)
    contents = read_folder(folder, besides=GENERATED)
    _refuse_other_files(place, document, contents)
    package = _package(place, folder.name, document, contents)
    _refuse_other_words(place, document, package)
    return package


def read_folder(folder: Path, *, besides: Collection[str] = ()) -> dict[str, bytes]:
    """Every file of a folder, deep, by its path from there; what editors and interpreters leave is not part of it.

    How much there may be does not include the files `besides`, which lie directly in it.
    """
    place = spell_name(folder.name)
    with _explained(place):
        _refuse_link(os.lstat(folder).st_mode, place)
        descriptor = os.open(folder, OPEN_FOLDER | os.O_NOFOLLOW)
    reader = _Reader(place, besides)
    try:
        reader.enter(descriptor, ())
    finally:
        os.close(descriptor)
    return reader.files


def read_file(path: Path) -> bytes:
    """The bytes of one file."""
    with _explained(spell_name(path.name)):
        folder = os.open(path.parent, OPEN_FOLDER)
    try:
        return _read(folder, path.name, spell_name(path.name))
    finally:
        os.close(folder)


def _refuse_other_files(place: str, document: Mapping[str, object], contents: Mapping[str, bytes]) -> None:
    """Refuse a file that was changed, added or removed."""
    known = _mapping(place, document, "files")
    there = {path: hashlib.sha256(data).hexdigest() for path, data in contents.items() if path != DESCRIPTION_FILE}
    for path in sorted(there.keys() | known.keys()):
        if there.get(path) != known.get(path):
            raise _changed(place, path, document)


def _refuse_other_words(place: str, document: Mapping[str, object], package: BuiltPackage) -> None:
    """Refuse a description that is not the one of this package."""
    expected = describe(package, bundle="")
    for name in sorted((document.keys() | expected.keys()) - CIRCUMSTANCES):
        if name not in document or name not in expected or not _is_same(document[name], expected[name]):
            raise _changed(place, f"{DESCRIPTION_FILE}: {name[:SHOWN_LETTERS]}", document)


def _is_same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: unlike Python, JSON tells true from 1, and 1 from 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _package(place: str, name: str, document: Mapping[str, object], contents: Mapping[str, bytes]) -> BuiltPackage:
    hosts = None if document.get("hosts") is None else tuple(_words(place, document, "hosts"))
    package = BuiltPackage(
        name=name,
        function=_text(place, document, "function"),
        description=_text(place, document, "description"),
        parameters=_mapping(place, document, "argSchema"),
        output_schema=_mapping(place, document, "outputSchema") or None,
        files={path: data for path, data in contents.items() if path not in GENERATED},
        requires=frozenset(_words(place, document, "requires")),
        hosts=hosts,
        requirements=tuple(_words(place, document, "requirements")),
        request=_text(place, document, "requestID"),
        times={name: _text(place, document, name) for name in TIMES if name in document},
        importing=contents.get(IMPORT_FILE, b""),
    )
    if package.entry not in package.files:
        raise _changed(place, package.entry, document)
    return package


def _text(place: str, document: Mapping[str, object], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise _changed(place, f"{DESCRIPTION_FILE}: {name}", document)
    return value


def _words(place: str, document: Mapping[str, object], name: str) -> list[str]:
    value = document.get(name)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _changed(place, f"{DESCRIPTION_FILE}: {name}", document)
    return value


def _mapping(place: str, document: Mapping[str, object], name: str) -> dict[str, object]:
    value = document.get(name)
    if not isinstance(value, dict):
        raise _changed(place, f"{DESCRIPTION_FILE}: {name}", document)
    return value


def _changed(place: str, what: str, document: Mapping[str, object]) -> ToolError:
    request = document.get("requestID")
    known = request if isinstance(request, str) and request.isprintable() and " " not in request else "ID"
    name = place.rpartition("/")[2]
    cure = Cure(
        f"to have it proved again, move the folder away and run: crib request deliver {known[:SHOWN_LETTERS]} FOLDER; "
        f"or make it a tool of your own: move {name}.py to {place}.py and remove the folder"
    )
    return ToolError(Kind.CONFLICT, f"{place}/{what}: changed since it was proved", cure=cure)


class _Reader:
    """Reads an open folder recursively; the first entry that is not allowed ends it with a ToolError."""

    def __init__(self, name: str, besides: Collection[str]) -> None:
        self.files: dict[str, bytes] = {}
        self._name = name
        self._besides = besides
        self._seen = 0
        self._bytes = 0

    def enter(self, folder: int, parts: tuple[str, ...]) -> None:
        """Take every file of an open folder, and of the folders in it."""
        place = self._place(parts)
        if len(parts) > MAX_DEPTH:
            raise _beyond(place, f"lies more than {MAX_DEPTH} folders deep; move it further up")
        for name in self._list(folder, place):
            check_name(place, name)
            inner = self._place((*parts, name))
            with _explained(inner):
                kind = os.lstat(name, dir_fd=folder).st_mode
                _refuse_link(kind, inner)
                below = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=folder) if stat.S_ISDIR(kind) else None
            if below is None:
                self._take(folder, (*parts, name))
                continue
            try:
                self.enter(below, (*parts, name))
            finally:
                os.close(below)

    def _list(self, folder: int, place: str) -> list[str]:
        with _explained(place), os.scandir(folder) as entries:
            found = [entry.name for entry in islice(entries, MAX_NAMES + 1)]
        names = sorted(name for name in found if not is_foreign(name))
        self._seen += sum(name not in self._besides for name in names)
        if self._seen > MAX_FILES or len(found) > MAX_NAMES:
            raise _beyond(place, f"more than {MAX_FILES} files and folders; move away what the tool does not need")
        return names

    def _take(self, folder: int, parts: tuple[str, ...]) -> None:
        place = self._place(parts)
        data = _read(folder, parts[-1], place)
        self._bytes += 0 if parts[0] in self._besides else len(data)
        if self._bytes > MAX_BYTES:
            raise _beyond(place, f"more than {MAX_BYTES:,} bytes in all; move data out of the tool")
        self.files["/".join(parts)] = data

    def _place(self, parts: tuple[str, ...]) -> str:
        return "/".join((self._name, *map(spell_name, parts)))


def _read(folder: int, name: str, place: str) -> bytes:
    with _explained(place):
        # Checked before it is opened: opening some devices has effects.
        kind = os.lstat(name, dir_fd=folder).st_mode
        _refuse_link(kind, place)
        _refuse_irregular(kind, place)
        descriptor = os.open(name, READ_AT_ONCE | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            before = os.fstat(descriptor)
            _refuse_irregular(before.st_mode, place)
            data = b"" if before.st_size > MAX_FILE_BYTES else read_at_most(descriptor, MAX_FILE_BYTES + 1)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    if max(before.st_size, len(data)) > MAX_FILE_BYTES:
        raise _beyond(place, f"has more than {MAX_FILE_BYTES:,} bytes; move data out of the tool")
    if stamp_of(before) != stamp_of(after) or len(data) != after.st_size:
        message = f"{place}: changed while it was read; try again when no program writes to it"
        raise ToolError(Kind.TRANSIENT, message, retryable=True)
    return data


def _refuse_link(kind: int, place: str) -> None:
    if stat.S_ISLNK(kind):
        message = f"{place}: is a link, which is not followed; replace it with a copy of its target"
        raise ToolError(Kind.BLOCKED, message)


def _refuse_irregular(kind: int, place: str) -> None:
    if not stat.S_ISREG(kind):
        raise ToolError(Kind.VALIDATION, f"{place}: is not a regular file; move it away")


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Turn errors of the operating system into a ToolError with the place."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(Kind.NOT_FOUND, f"{place}: does not exist; create it, or name another") from None
    except OSError as error:
        raise ToolError(Kind.PERMANENT, f"{place}: {error.strerror}; correct it or move it away") from None


def _beyond(place: str, reason: str) -> ToolError:
    return ToolError(Kind.LIMIT_EXCEEDED, f"{place}: {reason}")


class BuiltPackageFormat:
    """Reads the description of a package; its code is not run."""

    name = "built"

    def reads(self, path: Path) -> bool:
        """Whether it may describe a package."""
        return path.suffix == ".json"

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The one tool of the package; none if the file describes something else."""
        return read_package(path, code)
