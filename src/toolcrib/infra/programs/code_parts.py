"""Show the code that a call would run: the bytes that were read, and the files beside a script that it imports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_beginning
from toolcrib.lib.python_source import all_imports, parse_python
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolcrib.model.tool import Script

MAX_FILES = 40
MAX_NAME = 1_000
MAX_FILE_BYTES = 2_000_000
PYTHON, JAVASCRIPT, BASH = "python", "javascript", "bash"
BESIDE = "Files that it reads while it runs and that are not shown here are not part of this approval."
READ_LATER = "It is read from its folder when the call runs."

# A module that begins with a dot is a file beside the one that names it.
_NODE_IMPORT = re.compile(rb"""(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.{1,2}/[^"'\n]{1,200})["']""")
_NODE_ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", "/index.js")
_SHELL_SOURCE = re.compile(rb"""^\s*(?:\.|source)\s+["']?(\.{1,2}/[^"'\s;&|]{1,200})""", re.MULTILINE)


def script_parts(script: Script, root: Path) -> Iterator[RunPart]:
    """The file of a script first, and then what it imports: the files of its package, or those beside it."""
    facts = (("language", script.language), ("entry", f"{script.entry}, {script.convention}"))
    note = "" if script.files else BESIDE
    yield RunPart(kind=PartKind.CODE, title=_name_of(script.path, root), data=script.code, facts=facts, note=note)
    folder = script.path.absolute().parent
    for name, data in sorted(script.files.items()):
        if folder / name != script.path.absolute():
            yield RunPart(kind=PartKind.CODE, title=_name_of(folder / name, root), data=data)
    for path, data in () if script.files else _neighbours(script):
        yield RunPart(kind=PartKind.CODE, title=_name_of(path, root), data=data, note=READ_LATER)


def named_parts(words: Iterable[str], folder: Path, script: Script | None) -> Iterator[RunPart]:
    """The files of a tool's folder that the words of its command name, such as a program for awk."""
    known = set() if script is None else {script.path.resolve()}
    for word in words:
        # A name that is too long for any file is none; a file elsewhere, such as the interpreter, is the machine's.
        place = folder / word
        is_there = 0 < len(word) < MAX_NAME and "\0" not in word and place.is_file()
        if not is_there or (real := place.resolve()) in known or not real.is_relative_to(folder.resolve()):
            continue
        known.add(real)
        if (data := read_beginning(real, MAX_FILE_BYTES)) is not None:
            yield RunPart(kind=PartKind.CODE, title=_name_of(real, folder.resolve()), data=data, note=READ_LATER)


def _name_of(path: Path, root: Path) -> str:
    """The path from the root, or only its last name: where a project lies says nothing about what runs."""
    path, root = path.absolute(), root.absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _neighbours(script: Script) -> Iterator[tuple[Path, bytes]]:
    """The files beside a script that it imports, and those that they import; bounded, for no folder ends there."""
    own = script.path.absolute()
    known, waiting = {own}, [(own, script.code)]
    while waiting and len(known) <= MAX_FILES:
        path, code = waiting.pop(0)
        for found in _imported_by(path, code, script.language, own.parent):
            data = None if found in known else read_beginning(found, MAX_FILE_BYTES)
            if data is not None:
                known.add(found)
                waiting.append((found, data))
                yield found, data


def _imported_by(path: Path, code: bytes, language: str, folder: Path) -> Iterable[Path]:
    if language == PYTHON:
        return _python_files(path, code, folder)
    pattern = {JAVASCRIPT: _NODE_IMPORT, BASH: _SHELL_SOURCE}.get(language)
    if pattern is None:
        return ()
    base = path.parent if language == JAVASCRIPT else folder
    named = (base / found[1].decode("utf-8", "replace") for found in pattern.finditer(code[:MAX_FILE_BYTES]))
    tried = ((place.parent / f"{place.name}{ending}" for ending in _NODE_ENDINGS) for place in named)
    first = (next((place for place in places if place.is_file()), None) for places in tried)
    return [place.resolve() for place in first if place is not None]


def _python_files(path: Path, code: bytes, folder: Path) -> Iterator[Path]:
    try:
        imports = all_imports(parse_python(code, path.name))
    except ToolError:
        return
    for name in sorted({name.partition(".")[0] for name in imports if name}):
        if (folder / f"{name}.py").is_file():
            yield folder / f"{name}.py"
        elif (folder / name).is_dir():
            yield from sorted((folder / name).rglob("*.py"))[:MAX_FILES]
