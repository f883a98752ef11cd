"""From `tools/<name>/tool.json` to the tool, if everything in the folder is as it was when it was proved."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from toolcrib.dialects.built.files import read_folder
from toolcrib.dialects.built.making import make_tool
from toolcrib.dialects.built.package import DESCRIPTION_FILE, GENERATED, IMPORT_FILE, Package, describe
from toolcrib.dialects.platform.versions import is_newer
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolcrib.model.tool import Tool

# Whoever else writes a file of this name does not say these things in it.
MARKS = (b'"digest"', b'"requestID"')
# What depends on where the package lies, who asked for it and when, and not on what was proved.
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
        raise ToolError(error.kind, error.message, retryable=error.retryable, details=details) from None


def load_package(folder: Path, code: bytes) -> Package:
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


def _refuse_other_files(place: str, document: Mapping[str, object], contents: Mapping[str, bytes]) -> None:
    """Refuse a file that was changed, added or removed."""
    known = _mapping(place, document, "files")
    there = {path: hashlib.sha256(data).hexdigest() for path, data in contents.items() if path != DESCRIPTION_FILE}
    for path in sorted(there.keys() | known.keys()):
        if there.get(path) != known.get(path):
            raise _changed(place, path, document)


def _refuse_other_words(place: str, document: Mapping[str, object], package: Package) -> None:
    """Refuse a description that is not the one of this package."""
    expected = describe(package, bundle="")
    for name in sorted((document.keys() | expected.keys()) - CIRCUMSTANCES):
        if name not in document or name not in expected or not _is_same(document[name], expected[name]):
            raise _changed(place, f"{DESCRIPTION_FILE}: {name[:SHOWN_LETTERS]}", document)


def _is_same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: unlike Python, JSON tells true from 1, and 1 from 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _package(place: str, name: str, document: Mapping[str, object], contents: Mapping[str, bytes]) -> Package:
    hosts = None if document.get("hosts") is None else tuple(_words(place, document, "hosts"))
    package = Package(
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
    message = (
        f"{place}/{what}: changed since it was proved; to have it proved anew, move the folder away and run: "
        f"crib request deliver {known[:SHOWN_LETTERS]} FOLDER; or make it a tool of your own: "
        f"move {name}.py to {place}.py and remove the folder"
    )
    return ToolError(Kind.CONFLICT, message)
