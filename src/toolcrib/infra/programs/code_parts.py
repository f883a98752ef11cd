"""Show the code that a call would run: the bytes that were read, and the files beside a script that it imports.

A file that is not read, because it is large or lies elsewhere, is bound by its size, its place on the disk and the time of its last change.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import read_beginning
from toolcrib.infra.sandbox.child.neighbours import is_installed
from toolcrib.infra.sandbox.jobs import site_paths
from toolcrib.lib.python_source import MAX_IMPORTS, all_imports, parse_python
from toolcrib.lib.run_part import PartKind, RunPart
from toolcrib.lib.shell import GLOB, UNKNOWN
from toolcrib.lib.shell.reader import read_line
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import PurePath

    from toolcrib.model.tool import Script

# How many files are shown, how many are looked at, and how much of them is read: this happens on the event loop.
MAX_FILES = 40
MAX_LOOKED_AT = 2_000
MAX_FILE_BYTES = 2_000_000
MAX_READ_BYTES = 8_000_000
MAX_NAME = 4_096
PYTHON, JAVASCRIPT, BASH = "python", "javascript", "bash"
CACHE = "__pycache__"
BESIDE = "Files that it reads while it runs and that are not shown here are not part of this approval."
READ_LATER = "It is read from its folder when the call runs."
NOT_READ = (
    "It is not shown: it is large, hidden, or lies outside the folder of the tool. The approval is bound to its size "
    "and the time of its last change, and to nothing that it imports itself."
)
BYTECODE = "Python may run this bytecode in place of the source of the same name."
BOUND_BY_STAMP = (
    "The approval is bound to their sizes and the times of their last change, and to nothing that they import."
)
FURTHER = f"These may be imported too, and are not shown. {BOUND_BY_STAMP}"
NOT_FOLLOWED = "What this file imports cannot be read from it in full; such files are not part of this approval."
COMPUTED = (
    "Only the shell knows all names in this command: files that a pattern, a variable or another command names are not "
    "part of this approval."
)
TOO_MANY = f"More than {MAX_LOOKED_AT:,} files may be imported; the others are not part of this approval."

# A file with any other ending may be one for the shell.
_LANGUAGES = {
    ".py": PYTHON,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), JAVASCRIPT),
}
_MODULE_ENDINGS = (".py", ".pyc", ".so", ".pyd")
# A module that begins with a dot is a file beside the one that names it.
_NODE_IMPORT = re.compile(rb"""(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'`](\.{1,2}/[^"'`\n]{1,200})["'`]""")
# Which of them Node takes depends on who asks; each may be the one.
_NODE_ENDINGS = ("", ".js", ".json", ".node", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_SHELL_SOURCE = re.compile(rb"""^\s*(?:\.|source)\s+["']?(\.{1,2}/[^"'\s;&|]{1,200})""", re.MULTILINE)
_BETWEEN_WORDS = re.compile(r"""[\s'"=;|&<>()]+""")


def script_parts(script: Script, root: Path, hidden: Sequence[Path] = ()) -> Iterator[RunPart]:
    """The file of a script first, and then what it imports: the files of its package, or those beside it that are not `hidden`."""
    facts = (("language", script.language), ("entry", f"{script.entry}, {script.convention}"))
    note = "" if script.files else BESIDE
    yield RunPart(kind=PartKind.CODE, title=_name_of(script.path, root), data=script.code, facts=facts, note=note)
    folder = script.path.absolute().parent
    for name, data in sorted(script.files.items()):
        if folder / name != script.path.absolute():
            yield RunPart(kind=PartKind.CODE, title=_name_of(folder / name, root), data=data)
    if not script.files:
        own = script.path.absolute()
        files = _Files([own.parent.resolve()], own, hidden=hidden)
        yield from _imported_parts(own, script.code, script.language, root, own.parent, files)


def shell_parts(command: str, folder: Path, root: Path) -> Iterator[RunPart]:
    """A shell command that runs in `folder`, the files below `root` that it names, and those that they import."""
    facts = (("runs in", "the sandbox"), ("folder", folder.relative_to(root).as_posix()))
    data = command.encode("utf-8", "surrogatepass")
    yield RunPart(kind=PartKind.COMMAND, title="/bin/sh", data=data, facts=facts, note=BESIDE)
    commands = read_line(command).commands
    words = [word for found in commands for word in found.all_words]
    outlines = dict.fromkeys(outline for word in words for outline in word.outlines)
    # Its home is the workspace.
    known = [text.removeprefix("~/") for text in outlines if UNKNOWN not in text and GLOB not in text]
    bases = {folder: None, root: None}
    names = dict.fromkeys(name for text in known for name in _names_in(text))
    # Any folder that it names may be the one that it goes to; after a link, `..` means one folder to `cd` and another to the system.
    for base, name in islice(((base, name) for name in names for base in [*bases]), MAX_LOOKED_AT):
        for place in map(Path, (os.path.normpath(base / name), os.path.realpath(base / name))):
            found = _status(place)
            if (
                found is not None
                and stat.S_ISDIR(found.st_mode)
                and place.resolve().is_relative_to(root)
                and len(bases) <= MAX_FILES
            ):
                bases[place] = None
    modules = {
        name
        for found in commands
        if found.name.startswith("python")
        for option, word in pairwise(found.all_words)
        if "-m" in option.outlines
        for name in word.outlines
        if name.replace(".", "").isidentifier()
    }
    yield from named_parts((*known, command), list(bases), [root], None, sorted(modules))
    if len(known) < len(outlines) or len(bases) > MAX_FILES:
        yield RunPart(kind=PartKind.NOTE, title="further files", note=COMPUTED)


def named_parts(
    words: Iterable[str],
    bases: Sequence[Path],
    homes: Sequence[Path],
    script: Script | None,
    modules: Sequence[str] = (),
) -> Iterator[RunPart]:
    """The files of a tool's folders that the words of its command name, such as a program for awk, and what they import.

    A name is seen from each of the `bases`, and so are the `modules` that Python runs. A file outside the `homes`, such as the interpreter, is the machine's.
    """
    homes = [home.resolve() for home in homes]
    # Unlike our runners, an interpreter looks beside the file first.
    files = _Files(homes, *(() if script is None else (script.path.resolve(),)), folder_first=True)
    for base in bases if modules else ():
        code = "".join(f"import {name}\n" for name in modules).encode()
        yield from _imported_parts(base / "-m.py", code, PYTHON, homes[0], base, files)
    tried = 0
    for name in (name for word in words for name in _names_in(word)):
        for base in bases:
            place = base / name
            tried += 1
            if tried > MAX_LOOKED_AT:
                yield RunPart(kind=PartKind.NOTE, title="further words", note=TOO_MANY)
                return
            if _stamp(place) is None or (real := place.resolve()) in files.known:
                continue
            # A link in the folders may lead out of them.
            inside = ((path, home) for path in (real, place) for home in homes if path.is_relative_to(home))
            files.known.add(real)
            for path, home in islice(inside, 1):
                if (part := files.show(path, home)) is None:
                    continue
                yield part
                if part.data is not None:
                    language = _LANGUAGES.get(real.suffix, BASH)
                    start = base if language == BASH else real.parent
                    yield from _imported_parts(real, part.data, language, home, start, files)


def _names_in(word: str) -> Iterator[str]:
    """The word, and the words in it: those of a command line, and the value of an option."""
    for name in dict.fromkeys((word, *_BETWEEN_WORDS.split(word))):
        # A name that is too long for any file is none.
        if 0 < len(name) < MAX_NAME and "\0" not in name:
            yield name


def _name_of(path: Path, root: Path) -> str:
    """The path from the root, or only its last name: the folder of a project does not matter for what runs."""
    path, root = path.absolute(), root.absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


class _Files:
    """Reads files of some folders up to a limit for all of them together; of any other file it takes a stamp.

    `known` are those that need not be shown again, `hidden` cannot be imported, and `walk` finds further ones. With `folder_first`
    a file beside one that imports comes before what is installed.
    """

    def __init__(
        self, homes: Sequence[Path], *known: Path, hidden: Sequence[Path] = (), folder_first: bool = False
    ) -> None:
        self.known = set(known)
        self.hidden = hidden
        self.folder_first = folder_first
        self.walk = _Walk()
        self._homes = homes
        self._left = MAX_READ_BYTES

    def show(self, path: Path, root: Path, note: str = "", *, read: bool = True) -> RunPart | None:
        """The part of a file; None if there is no regular file."""
        facts = _stamp(path)
        if facts is None:
            return None
        limit = min(MAX_FILE_BYTES, self._left)
        data = read_beginning(path, limit + 1) if read and self._is_shown(path) else None
        if data is None or len(data) > limit:
            said = " ".join(filter(None, (note, NOT_READ)))
            return RunPart(kind=PartKind.CODE, title=_name_of(path, root), facts=facts, note=said)
        self._left -= len(data)
        return RunPart(kind=PartKind.CODE, title=_name_of(path, root), data=data, note=note or READ_LATER)

    def _is_shown(self, path: Path) -> bool:
        """Whether it lies in the folders of the tool, links followed, and is not hidden there as `.env` is."""
        real = path.resolve()
        inner = [real.relative_to(home).parts for home in self._homes if real.is_relative_to(home)]
        return any(not any(name.startswith(".") for name in parts) for parts in inner)


def _stamp(path: Path) -> tuple[tuple[str, str], ...] | None:
    """Facts that identify a file and change with it; None if it is not a regular file."""
    found = _status(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    # A program can set the time of the last change of the content (mtime), but not that of the inode (ctime).
    changed = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return ("size", str(found.st_size)), ("place on the disk", f"{found.st_dev}:{found.st_ino}"), ("changed", changed)


def _imported_parts(
    own: Path, code: bytes, language: str, root: Path, folder: Path, files: _Files
) -> Iterator[RunPart]:
    """The files beside a script that it imports, and those that they import, up to a limit."""
    known = files.known
    waiting, most = [(own, code)], len(known) + MAX_FILES - 1
    further: list[Path] = []
    while waiting:
        path, code = waiting.pop(0)
        found = _Imports(path, code, language, folder, files)
        for place in found.places():
            if place in known or any(map(place.is_relative_to, files.hidden)):
                continue
            known.add(place)
            if len(known) > most:
                further.append(place)
            elif (part := files.show(place, root, BYTECODE if place.suffix == ".pyc" else "")) is not None:
                waiting += [] if part.data is None else [(place, part.data)]
                yield part
        if not found.is_complete:
            yield RunPart(kind=PartKind.NOTE, title=_name_of(path, root), note=NOT_FOLLOWED)
    yield from _stamped_part("further files", further, root, FURTHER)
    if files.walk.left < 0:
        yield RunPart(kind=PartKind.NOTE, title="further files", note=TOO_MANY)


def shadow_of(path: PurePath) -> str:
    """Why no other file finds this Python file when it imports its name; empty if it does."""
    if path.suffix != ".py" or not is_installed(path.stem, site_paths()):
        return ""
    return f"{path}: 'import {path.stem}' in another file finds the module of Python or of a package; rename the file if it is meant"


def _stamped_part(title: str, places: Sequence[Path], root: Path, note: str) -> Iterator[RunPart]:
    """One part for files that are bound and not shown."""
    if not places:
        return
    names = [_name_of(place, root) for place in places]
    stamps = repr([(name, _stamp(place)) for name, place in zip(names, places, strict=True)])
    digest = hashlib.sha256(stamps.encode("utf-8", "surrogatepass")).hexdigest()
    facts = (("files", ", ".join(names)), ("SHA-256 of their sizes and times", digest))
    yield RunPart(kind=PartKind.NOTE, title=title, facts=facts, note=note)


class _Imports:
    """The files that a file of code may import from its folder: every file that a module of that name may be."""

    def __init__(self, path: Path, code: bytes, language: str, folder: Path, files: _Files) -> None:
        self.is_complete = True
        self._walk = files.walk
        self._folder_first = files.folder_first or b"sys.path" in code
        self._path = path
        self._code = code
        self._language = language
        self._folder = folder

    def places(self) -> Iterator[Path]:
        """The files, and all those in a folder that is imported; sets `is_complete` to False where imports cannot be read."""
        if self._language == PYTHON:
            yield from self._python() if self._path.suffix == ".py" else ()
        elif self._language == JAVASCRIPT:
            yield from self._named(_NODE_IMPORT, self._path.parent, _NODE_ENDINGS)
        elif self._language == BASH:
            yield from self._named(_SHELL_SOURCE, self._folder, ("",))

    def _python(self) -> Iterator[Path]:
        try:
            imports = all_imports(parse_python(self._code, self._path.name))
        except ToolError:
            self.is_complete = False
            return
        self.is_complete = len(imports) < MAX_IMPORTS
        names = {name.partition(".")[0] for name in imports if name}
        # What is installed comes first, unless the file itself puts its folder before it.
        if self._folder_first:
            beside = {name.partition(".")[0] for name in _listed(self._folder)}
            names |= {name for name in beside if is_installed(name, site_paths())}
        else:
            names -= sys.stdlib_module_names
        yield from self._walk.modules(self._folder, names)

    def _named(self, pattern: re.Pattern[bytes], base: Path, endings: Iterable[str]) -> Iterator[Path]:
        for found in pattern.finditer(self._code):
            if not self._walk.may_go_on():
                return
            place = base / found[1].decode("utf-8", "replace")
            for ending in endings:
                if _stamp(candidate := place.parent / f"{place.name}{ending}") is not None:
                    yield candidate.resolve()
            yield from self._walk.below(place)


class _Walk:
    """Lists files of folders, a bounded number for one call; `left` is negative where there were more."""

    def __init__(self) -> None:
        self.left = MAX_LOOKED_AT

    def may_go_on(self) -> bool:
        """Count one more; whether that is within the limit."""
        self.left = max(-1, self.left - 1)
        return self.left >= 0

    def modules(self, folder: Path, names: Iterable[str]) -> Iterator[Path]:
        """What Python may take for modules of these names: a package comes before a file, and bytecode may stand for its source."""
        wanted = set(names)
        for place in (folder, folder / CACHE):
            for name in _listed(place):
                is_one = name.partition(".")[0] in wanted and name.endswith(_MODULE_ENDINGS)
                if is_one and self.may_go_on():
                    yield place / name
        for name in sorted(wanted):
            yield from self.below(folder / name)

    def below(self, folder: Path) -> Iterator[Path]:
        """The files in a folder, links followed, no folder twice; code before bytecode."""
        waiting, entered = [folder], set[tuple[int, int]]()
        while waiting:
            place = waiting.pop(0)
            found = _status(place)
            if found is None or not stat.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino) in entered:
                continue
            entered.add((found.st_dev, found.st_ino))
            for name in sorted(_listed(place), key=lambda name: (name == CACHE, not name.endswith(".py"), name)):
                if not self.may_go_on():
                    return
                if _stamp(place / name) is not None:
                    yield place / name
                else:
                    waiting.append(place / name)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are enough
    except OSError:
        return []


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
