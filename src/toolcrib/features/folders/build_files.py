"""Read and write the files around a build: the content of the root, the cache of earlier checks, the git commit, `.gitignore`.

The cache is one line, with the hash of the code that checked and the hash of the rest, and then the entries as JSON. It
saves time; nothing else relies on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import OPEN_FOLDER, durable, read_small
from toolcrib.infra.files.durable import create_in, explained, replace_in
from toolcrib.infra.files.tool_folder import survey_folder, survey_shared, tool_folders
from toolcrib.lib.documents import MAX_DEPTH, read_json
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.infra.files.tool_folder import Survey

    Files = Mapping[str, bytes]
    Hashes = Mapping[str, str]
    Entry = Mapping[str, object]

UNKNOWN = "unknown"
MAX_FILE_BYTES = 4_096
MAX_PACKED_BYTES = 16_000_000
MAX_REFERENCES = 5
VERSION_SERIES = "1.0"
VERSION_LETTERS = 16
NO_CONTENT = f"{VERSION_SERIES}.{'0' * VERSION_LETTERS}"
# Named as packages, so that one that moves is missed at once: a folder that is not there would count as one without code.
CHECKING = ("toolcrib.features.folders", "toolcrib.infra.files", "toolcrib.lib", "toolcrib.model")
MAX_CACHE_BYTES = 64_000_000
ENTRY_DEPTH = (
    4 * MAX_DEPTH
)  # a parameter schema as deep as any may be, in the words of a provider that needs more of them
REGISTRY = "tool_registry.json"
ERROR_TYPES = "_core/error-types.js"
IGNORED = ".gitignore"
FILE_MODE = 0o644
MAX_IGNORED_BYTES = 1_000_000

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# No part begins with a dot, so that none leads up, and nothing is in it that git itself would not take.
_REFERENCE = re.compile(r"refs(?:/[^./\x00-\x20\x7f~^:?*\[\\][^/\x00-\x20\x7f~^:?*\[\\]*)+")
_EVERYWHERE = frozenset({REGISTRY, f"**/{REGISTRY}", "*.json", "*"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What lies in a root: the bytes of each tool folder and of the folders they share, by their paths from the root.

    A folder of which anything could not be read has problems, and its files are those that could; `unread` are the paths
    of the others. Of shared folders with a problem nothing is taken.
    """

    folders: Mapping[str, Files]
    shared: Files
    problems: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, frozenset[str]]
    shared_problems: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all tool folders, in their order."""
        return sorted({*self.folders, *self.problems})


def read_content(root: Path) -> Content:
    """Read every tool folder and every shared one; raises ToolError if the root itself cannot be listed."""
    surveys = {folder: survey_folder(root, folder) for folder in tool_folders(root)}
    shared = survey_shared(root)
    return Content(
        folders={folder: survey.files for folder, survey in surveys.items() if survey.files or not survey.problems},
        shared={} if shared.problems else shared.files,
        problems={folder: _told(survey) for folder, survey in surveys.items() if survey.problems},
        unread={folder: survey.unread for folder, survey in surveys.items()},
        shared_problems=_told(shared),
    )


def hash_files(files: Files) -> dict[str, str]:
    """The SHA-256 of each file, by path."""
    return {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}


def hash_of(hashes: Hashes) -> str:
    """One SHA-256 over paths and hashes, each prefixed with its length, so that none can run into the next."""
    digest = hashlib.sha256()
    for path in sorted(hashes):
        for part in (path.encode("utf-8", "surrogateescape"), hashes[path].encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def version_of(folders: Iterable[Hashes], shared: Hashes) -> str:
    """The version of a registry: another one as soon as any byte of any tool, or of what tools share, is another."""
    everything: dict[str, str] = {}
    for hashes in folders:
        everything.update(hashes)
    if not everything:
        return NO_CONTENT
    return f"{VERSION_SERIES}.{hash_of({**everything, **shared})[:VERSION_LETTERS]}"


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
        """Add an entry."""
        self._used[key] = entry

    def save(self) -> None:
        """Write the entries used by this build; a cache that cannot be written is ignored."""
        if self._path is None or self._used.keys() == self._known.keys():
            return
        document = json.dumps(self._used, sort_keys=True).encode()
        with suppress(ToolError):
            durable.replace(self._path, _seal(document) + document)


def read_commit(folder: Path) -> str:
    """The commit of the nearest repository around the folder; `unknown` if there is none, or none that can be read."""
    real = folder.resolve()
    for place in (real, *real.parents):
        # Only the nearest repository counts: one further up holds other files.
        if os.path.lexists(place / ".git"):
            return _resolve(_repository(place / ".git"))
    return UNKNOWN


def error_types() -> bytes:
    """The module of error types that is supplied where a root has none of its own."""
    return Path(__file__).with_name("error-types.js").read_bytes()


def supply_error_types(root: Path) -> None:
    """Put the module of error types where handlers import it from; one that is there stays as it is."""
    path = root / ERROR_TYPES
    with explained(str(path)):
        if os.path.lexists(path):
            return
        path.parent.mkdir(exist_ok=True)
        with opened(path.parent) as folder:
            create_in(folder, path.name, error_types(), mode=FILE_MODE)


def keep_out_of_git(root: Path, project: Path | None) -> None:
    """Add the registry to `.gitignore`, unless a line about it is already there or in the project's."""
    path = root / IGNORED
    if path.is_symlink() or _covers(path, f"/{REGISTRY}"):
        return
    if project is not None and _covers(project / IGNORED, *_from(project, root)):
        return
    with explained(str(path)), opened(root) as folder:
        lines = read_small(path, MAX_IGNORED_BYTES)
        if lines is None:
            create_in(folder, IGNORED, f"{REGISTRY}\n".encode(), mode=FILE_MODE)
            return
        end = b"" if lines.endswith(b"\n") or not lines else b"\n"
        replace_in(folder, IGNORED, lines + end + f"{REGISTRY}\n".encode(), mode=FILE_MODE, old=path.stat())


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """A descriptor of the folder."""
    descriptor = os.open(folder, OPEN_FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _repository(mark: Path) -> Path:
    """Where the repository lies; of a worktree or a submodule `.git` is a file that says so."""
    kind, _, place = _read(mark).partition(": ")
    return mark.parent / place if kind == "gitdir" else mark


def _resolve(repository: Path) -> str:
    common = _common_folder(repository)
    text = _read(repository / "HEAD")
    for _ in range(MAX_REFERENCES):
        if _COMMIT.fullmatch(text):
            return text
        kind, _, name = text.partition(": ")
        if kind != "ref" or not _REFERENCE.fullmatch(name):
            return UNKNOWN
        text = _read(repository / name) or _read(common / name) or _packed(common, name)
    return UNKNOWN


def _common_folder(repository: Path) -> Path:
    """Where branches lie: a worktree has only its own HEAD."""
    return repository / _read(repository / "commondir")


def _packed(repository: Path, name: str) -> str:
    """What `packed-refs`, with a commit and a name on each line, says of the name."""
    end = f" {name}".encode("utf-8", "surrogateescape")
    lines = (read_small(repository / "packed-refs", MAX_PACKED_BYTES) or b"").splitlines()
    return next((line for line in lines if line.endswith(end)), b"").removesuffix(end).decode("utf-8", "replace")


def _read(path: Path) -> str:
    """The text of a small file without the end of its line; nothing if there is none to read."""
    data = read_small(path, MAX_FILE_BYTES) or b""
    return data.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _told(survey: Survey) -> tuple[str, ...]:
    return tuple(problem.message for problem in survey.problems)


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


def _covers(path: Path, *here: str) -> bool:
    """Whether a line of the file names the registry; one that asks for it to be kept is the author's decision as well."""
    lines = (read_small(path, MAX_IGNORED_BYTES) or b"").decode("utf-8", "replace").splitlines()
    return any(line.strip().removeprefix("!") in {*_EVERYWHERE, *here} for line in lines)


def _from(project: Path, root: Path) -> tuple[str, ...]:
    """How lines of the project spell the registry, or a folder that holds it."""
    try:
        folder = root.resolve().relative_to(project.resolve())
    except ValueError:
        return ()
    parts = [f"{folder.as_posix()}/{REGISTRY}", folder.as_posix(), f"{folder.as_posix()}/", f"{folder.as_posix()}/*"]
    return tuple(spelling for part in parts for spelling in (part, f"/{part}"))
