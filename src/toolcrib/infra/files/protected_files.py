"""Find the protected files of a workspace: secrets, before each job that can read it, and what git runs or obeys.

Names that do not exist yet need no search, because no job can create them. The entries of a folder are cached while its ctime
stays the same, which no process can set. The sandbox and the jails of a Crib share what was found.

What git runs or obeys are folders of hooks, included settings, and programs that a setting names. Settings are those of every
repository that is known in the workspace, of those around it, and of the user and the machine. A relative path in the latter means a
place in every repository, also in one that does not exist yet, so it is closed at every depth. The folders of PATH count
too: a tool that writes to one could put a `git` of its own there.
"""

# ruff: noqa: PTH110, PTH111, PTH112, PTH114, PTH115, PTH116, PTH119, PTH120 - pathlib would take several times as long, and every job and write waits for it
from __future__ import annotations

import errno
import functools
import os
import posixpath
import re
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import ABSENT, is_as_it_was, read_beginning, settled_stamp
from toolcrib.lib.protected_names import (
    CLOSED,
    EVERYWHERE,
    REPOSITORIES,
    REPOSITORY_MARK,
    REPOSITORY_STORES,
    SECRET_PAIRS,
    fold,
    is_secret,
    is_secret_file,
    judge,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from toolcrib.infra.files import Stamp

MAX_SECRETS = 500
MAX_ENTRIES = 1_000_000
# Installed packages are public and count as runtime.
SKIPPED = frozenset({"node_modules", ".venv", "venv", "__pycache__"})
# Gone, or too deep for any path: a job cannot move a folder with a secret that far down.
_NOTHING_TO_FIND = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
# File system timestamps are coarse: a folder that changed just now may change again with the same ctime.
_SETTLED_NANOSECONDS = 100_000_000
# Before a file is written, all folders are compared for at most this part of the time.
_TIME_SHARE = 1 / 20


@record(kw_only=False)
class _Folder:
    """The secrets, folders and repositories found in a folder, and its ctime; 0 if it may have changed since."""

    changed: int
    inode: int
    folders: tuple[str, ...]
    secrets: tuple[str, ...]
    repositories: tuple[str, ...]
    entries: int


class ProtectedFiles:
    """The secret files below one folder, and what Git runs or obeys there; `opened` are names that the operator opened."""

    def __init__(
        self, root: Path, opened: tuple[str, ...] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = os.path.realpath(root)
        self._opened = opened
        self._clock = clock
        self._known: dict[str, _Folder] = {}
        self._secrets: tuple[str, ...] = ()
        self._repositories: tuple[str, ...] = ()
        self._is_too_large = False
        self._compare_after = 0.0
        self._git_paths = GitPaths(self._root)
        self._lock = threading.Lock()

    def find_secrets(self) -> tuple[Path, ...]:
        """The secrets that exist now; raises LIMIT_EXCEEDED if there are too many, or too many entries to check."""
        with self._lock:
            self._look()
            if len(self._secrets) > MAX_SECRETS:
                raise self._too_many("secrets")
            return tuple(map(Path, sorted({real for place in self._secrets if (real := self._resolve(place))})))

    def find_git_paths(self) -> tuple[str, ...]:
        """What Git runs or obeys there now, and links on the way to secrets, which would be found no more if a link led elsewhere.

        Raises LIMIT_EXCEEDED if there are too many entries to check.
        """
        with self._lock:
            self._look()
            return self._git_paths.find(self._repositories, self._secrets)

    def find_git_paths_for(self, path: str) -> tuple[str, ...]:
        """As `find_git_paths`, for a path that is about to be written, without comparing all folders each time.

        The settings of every known repository, and the repositories on the way of the path, are looked at now. No tool can make
        a repository, so only one that the user made elsewhere may be missed, for some twenty times as long as comparing takes.
        """
        with self._lock:
            if self._clock() >= self._compare_after:
                began = self._clock()
                try:
                    self._look()
                finally:
                    self._compare_after = self._clock() + (self._clock() - began) / _TIME_SHARE
            if self._is_too_large:
                raise self._too_many("files")
            repositories = (*self._repositories, *repositories_around(self._root, path))
            return self._git_paths.find(repositories, self._secrets)

    def _look(self) -> None:
        """Search all folders that changed since the last time."""
        if self._known and self._is_unchanged():
            return
        self._is_too_large = True
        self._secrets = tuple(self._walk())
        self._repositories = tuple(place for folder in self._known.values() for place in folder.repositories)
        self._is_too_large = False

    def _is_unchanged(self) -> bool:
        for place, known in self._known.items():
            try:
                facts = os.stat(place, follow_symlinks=False)
            except OSError:
                return False
            if facts.st_ctime_ns != known.changed or facts.st_ino != known.inode:
                return False
        return True

    def _walk(self) -> Iterator[str]:
        known, self._known = self._known, {}
        seen: dict[str, _Folder] = {}
        waiting, entries = [self._root], 0
        while waiting:
            place = waiting.pop()
            folder = self._look_at(place, known.get(place))
            if folder is None:
                continue
            seen[place] = folder
            entries += folder.entries
            if entries > MAX_ENTRIES:
                raise self._too_many("files")
            waiting += folder.folders
            yield from folder.secrets
        self._known = seen

    def _look_at(self, place: str, known: _Folder | None) -> _Folder | None:
        """Scan the folder, None if it is gone.

        An unreadable folder counts as a secret as a whole: a job may have removed the permission and could restore it.
        """
        try:
            facts = os.stat(place, follow_symlinks=False)
            if known is not None and (known.changed, known.inode) == (facts.st_ctime_ns, facts.st_ino):
                return known
            is_settled = time.time_ns() - facts.st_ctime_ns > _SETTLED_NANOSECONDS
            if os.access(place, os.R_OK | os.X_OK):
                return self._read(place, facts.st_ctime_ns if is_settled else 0, facts.st_ino)
        except OSError as problem:
            if problem.errno in _NOTHING_TO_FIND:
                return None
        return _Folder(0, 0, (), (place,), (), 0)

    def _read(self, place: str, changed: int, inode: int) -> _Folder:
        folders, secrets, repositories, entries = [], [], [], 0
        has_mark = has_store = False
        # Below a repository's own folder a branch may be called `secret`; in it, `git credential-store` may keep passwords.
        own = fold(os.path.basename(place))
        is_repository = own in REPOSITORIES
        with os.scandir(place) as scan:
            for entry in scan:
                entries += 1
                part = fold(entry.name)
                if (is_secret(part) or is_secret_file(part) or (own, part) in SECRET_PAIRS) and self._is_closed(entry):
                    secrets.append(entry.path)
                if part in REPOSITORIES:
                    repositories.append(entry.path)
                is_folder = entry.is_dir(follow_symlinks=False)
                has_mark = has_mark or (part == REPOSITORY_MARK and not is_folder)
                has_store = has_store or part in REPOSITORY_STORES
                is_closed = is_repository or part in SKIPPED or is_secret(part)
                if is_folder and not is_closed:
                    folders.append(entry.path)
        if has_mark and has_store and not is_repository:
            repositories.append(place)
        return _Folder(changed, inode, tuple(folders), tuple(secrets), tuple(repositories), entries)

    def _is_closed(self, entry: os.DirEntry[str]) -> bool:
        path = entry.path[len(self._root) :]
        return judge(path, opened=self._opened, is_folder=entry.is_dir()) == CLOSED

    def _resolve(self, place: str) -> str | None:
        """The file or folder itself, or what a link leads to now, which may change while the folder of the link stays the same."""
        if not os.path.islink(place):
            return place
        real = os.path.realpath(place)
        return real if real.startswith(f"{self._root}/") and os.path.exists(real) else None

    def _too_many(self, what: str) -> ToolError:
        message = (
            f"the workspace {self._root} holds too many {what} to protect all its secrets from tools "
            f"(at most {MAX_ENTRIES} files and {MAX_SECRETS} secrets); set workspace.folder to a smaller one"
        )
        return ToolError(Kind.LIMIT_EXCEEDED, message)


class ProtectedFolders:
    """The protected files of each folder, found once for all that ask."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, tuple[str, ...]], ProtectedFiles] = {}

    def below(self, root: Path, opened: tuple[str, ...]) -> ProtectedFiles:
        """Those below this folder, but for what the operator opened."""
        key = root, opened
        return self._known.setdefault(key, self._known.get(key) or ProtectedFiles(*key))


GIT = ".git"
MAX_CONFIG_BYTES = 1_000_000
MAX_INCLUDED = 200
# Git looks below the prefix that it was built for.
SYSTEM_CONFIGS = ("/etc/gitconfig", "/usr/local/etc/gitconfig")
MAX_KNOWN_CONFIGS = 10_000
MAX_LINKS = 40


@record(kw_only=False)
class _Config:
    """What a file of settings names, and the stamp it had; None if it may have changed since."""

    stamp: Stamp | None
    named: tuple[NamedPath, ...]


class GitPaths:
    """What Git runs or obeys below one folder; what a file of settings says is cached while its stamp stays the same."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._known: dict[str, _Config] = {}

    def find(self, repositories: Iterable[str] = (), secrets: Iterable[str] = ()) -> tuple[str, ...]:
        """Paths below the folder: with a slash at the end, closed with all that is in it; with `**` first, at every depth.

        The repositories are the one in the folder, those around it, and the given ones, each named by its `.git`. Links on the way
        to these secrets are added.
        """
        around = list(_folders_around(self._root))
        places = dict.fromkeys([*(posixpath.join(folder, GIT) for folder in around), *repositories])
        trees = dict.fromkeys([*around, *map(_tree_of, places)])
        found, everywhere = set[str](), set[str]()
        for config, named in self._read_all(shared_configs(os.environ)):
            found.update(_follow(config))
            for each in named:
                found.update(_resolve_shared(each, trees))
                if each.kind is Named.PLAIN_WORD:  # closed at every depth, an ordinary name would be missed
                    found.add(posixpath.join(self._root, each.path))
                everywhere.update(_everywhere(each))
        for folder in program_folders(os.environ):
            *links, real = _follow(folder)
            found.update((*links, f"{real}/"))
        for place in places:
            found.update(self._find_in(place))
        for secret in secrets:
            if os.path.islink(secret):
                *links, _ = _follow(secret)
                found.update(link for link in links if link != secret)
        below = {
            path[len(self._root) :].lstrip("/") or "/" for path in found if f"{path}/".startswith(f"{self._root}/")
        }
        endings = tuple(pattern.removeprefix(EVERYWHERE) for pattern in everywhere)
        return tuple(sorted({*everywhere, *(path for path in below if not f"/{path}".endswith(endings))}))

    def _find_in(self, place: str) -> Iterator[str]:
        """What the settings of one repository name, its own folder if that has another name, and links out of it."""
        repository = _find_repository(place)
        if repository is None:
            return
        repository = os.path.realpath(repository)
        common = os.path.realpath(_lead_from(repository, posixpath.join(repository, "commondir")) or repository)
        hooks, linked = posixpath.join(common, "hooks"), posixpath.join(common, "worktrees")
        yield from (path for path in _follow_hooks(hooks) if path != f"{hooks}/")
        folders = [common, repository, *(entry.path for entry in _scan(linked))]
        own = dict.fromkeys(
            posixpath.join(folder, name) for folder in folders for name in ("config", "config.worktree")
        )
        configs = list(self._read_all(own))
        # One that is closed by its name is named only where it includes other settings: elsewhere it would include different ones.
        is_bound = any(each.kind is Named.INCLUDED for _, named in configs for each in named)
        for folder in (common, repository):
            names = map(fold, folder.removeprefix(self._root).split("/"))
            if is_bound or REPOSITORIES.isdisjoint(names):
                yield f"{folder}/"
        elsewhere = [each.path for _, named in configs for each in named if each.kind is Named.TREE]
        trees = [_tree_of(place), *(posixpath.join(repository, path) for path in elsewhere)]
        for config, named in configs:
            if config not in own or os.path.islink(config):  # the folder of its own ones is real
                yield from (path for path in _follow(config) if path not in own)
            for each in named:
                # A hook runs in the working tree, or in the folder of the repository.
                for folder in (*trees, os.path.dirname(config)):
                    yield from _resolve(each, folder)

    def _read_all(self, configs: Iterable[str]) -> Iterator[tuple[str, tuple[NamedPath, ...]]]:
        """Each file of settings with what it names, then those that it includes, under whichever condition."""
        waiting = list(dict.fromkeys(configs))
        most = len(waiting) + MAX_INCLUDED  # a repository with many worktrees has as many files of settings
        for config in waiting:
            named = self._read(config)
            yield config, named
            for each in named:
                if each.kind is Named.INCLUDED and len(waiting) < most:
                    included = posixpath.join(os.path.dirname(config), _expand(each.path))
                    waiting += [] if included in waiting else [included]

    def _read(self, config: str) -> tuple[NamedPath, ...]:
        known = self._known.get(config)
        if known is None or not is_as_it_was(config, known.stamp):
            if len(self._known) >= MAX_KNOWN_CONFIGS:
                self._known.clear()
            known = self._known[config] = _read_config(config)
        return known.named


def shared_configs(environment: Mapping[str, str]) -> list[str]:
    """Where the settings of the user and the machine lie, or would.

    All that may be meant: the environment of a server is not always that of the shell in which its user commits.
    """
    home = environment.get("HOME") or os.path.expanduser("~")
    named = (environment.get("GIT_CONFIG_GLOBAL"), environment.get("GIT_CONFIG_SYSTEM"))
    folders = dict.fromkeys((environment.get("XDG_CONFIG_HOME", ""), posixpath.join(home, ".config")))
    own = (posixpath.join(home, ".gitconfig"), *(posixpath.join(folder, "git", "config") for folder in folders))
    return [path for path in (*own, *named, *SYSTEM_CONFIGS) if path and path.startswith("/")]


def program_folders(environment: Mapping[str, str]) -> list[str]:
    """Where the user's shell looks for programs, git among them; without relative paths, which mean a place in any folder."""
    return [folder for folder in environment.get("PATH", "").split(":") if folder.startswith("/")]


def repositories_around(root: str, path: str) -> list[str]:
    """Where the repositories lie that a path below the root may belong to."""
    folders = path.strip("/").split("/")[:-1]
    return [posixpath.join(root, *folders[:depth], GIT) for depth in range(1, len(folders) + 1)]


def _folders_around(root: str) -> Iterator[str]:
    yield root
    while root != (root := os.path.dirname(root)):
        yield root


def _tree_of(place: str) -> str:
    """The working tree of a repository; of a bare one, its folder."""
    return os.path.dirname(place) if fold(os.path.basename(place)) in REPOSITORIES else place


def _find_repository(place: str) -> str | None:
    """The repository folder, possibly named by a .git file; None if there is none."""
    if os.path.isdir(place):
        return place
    word, _, target = _read_text(place).partition(":")
    return posixpath.join(os.path.dirname(place), target.strip()) if word == "gitdir" and target.strip() else None


def _lead_from(folder: str, file: str) -> str | None:
    target = _read_text(file).strip()
    return posixpath.join(folder, target) if target else None


def _read_config(config: str) -> _Config:
    try:
        stamp = settled_stamp(os.stat(config))
    except OSError:
        return _Config(ABSENT, ())
    return _Config(stamp, tuple(dict.fromkeys(find_named_paths(_read_text(config)))))


def _read_text(file: str) -> str:
    return os.fsdecode(read_beginning(file, MAX_CONFIG_BYTES) or b"").replace("\0", "")


def _expand(path: str) -> str:
    return os.path.expandvars(os.path.expanduser(path))


def _resolve(each: NamedPath, folder: str) -> Iterator[str]:
    """The real place of what a setting names, from the folder in which Git obeys it."""
    path = posixpath.join(folder, _expand(each.path))
    if each.kind is Named.FOLDER:
        yield from _follow_hooks(path)
    elif each.kind not in {Named.INCLUDED, Named.TREE} and not os.path.isdir(path):
        yield from _follow(path)


def _resolve_shared(each: NamedPath, trees: Iterable[str]) -> Iterator[str]:
    """As `_resolve`, from every working tree; what does not exist is closed at every depth already, or a plain word."""
    if _expand(each.path).startswith("/"):
        yield from _resolve(each, "/")
        return
    for tree in trees:
        if each.kind is Named.FOLDER or os.path.lexists(posixpath.join(tree, each.path)):
            yield from _resolve(each, tree)


def _follow(path: str) -> Iterator[str]:
    """The real place of an absolute path at last, and before it each link on the way, which could be made to lead elsewhere."""
    place, names, links = "/", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name in {"", ".", ".."}:
            place = os.path.dirname(place) if name == ".." else place
            continue
        following = posixpath.join(place, name)
        try:
            target = os.readlink(following)
        except OSError:
            place = following
            continue
        yield following
        links += 1
        if links > MAX_LINKS:
            return
        place = "/" if target.startswith("/") else place
        names += target.split("/")[::-1]
    yield place


def _follow_hooks(folder: str) -> Iterator[str]:
    """The real place of a folder of hooks, with a slash at its end, and that of each hook that is a link."""
    *links, place = _follow(folder)
    yield from links
    yield f"{place}/"
    for entry in _scan(place):
        if entry.is_symlink():
            yield from _follow(entry.path)


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as scan:
            return list(scan)
    except OSError:
        return []


def _everywhere(each: NamedPath) -> Iterator[str]:
    """The pattern of a relative path that means a place in every repository; of one outside of it, in every folder."""
    path = _expand(each.path)
    if path.startswith("/") or each.kind in {Named.INCLUDED, Named.PLAIN_WORD, Named.TREE}:
        return
    names = [name for name in posixpath.normpath(path).split("/") if name not in {".", ".."}]
    if each.kind is Named.FOLDER:
        yield "/".join((EVERYWHERE, *names, "")) if names else "/"
    elif names:
        yield "/".join((EVERYWHERE, *names))


class Named(StrEnum):
    """The kind of path in the value of a setting."""

    INCLUDED = "included"  # a file with more settings, relative to the including file
    FOLDER = "folder"  # a folder with hooks
    TREE = "tree"  # a working tree, relative to the repository
    FILE = "file"  # a program by its path
    WORD = "word"  # a word of a command with a slash
    PLAIN_WORD = "plain word"  # a word of a command that may be a file in its working directory


@record(kw_only=False)
class NamedPath:
    """A path in a configuration, unresolved."""

    kind: Named
    path: str


INCLUDING_SECTIONS = frozenset({"include", "includeif"})
FOLDER_SETTINGS = frozenset({"hookspath", "templatedir"})
FILE_SETTING = "path"
TREE_SETTING = "worktree"
# Endings of settings whose value is a shell command, and the sections in which every value is one.
COMMAND_SETTINGS = (
    *("editor", "pager", "command", "cmd", "program", "helper", "askpass", "gitproxy", "textconv", "external"),
    *("driver", "clean", "smudge", "process", "difffilter", "hook", "uploadpack", "receivepack", "fsmonitor"),
    *("tunnel", "smtpserver", "httpd", "prog"),
)
COMMAND_SECTIONS = frozenset({"pager"})
# A value with one of these prefixes is a command in any setting: an alias, a helper or a remote URL; or options of git itself.
COMMAND_BEGINNINGS = ("!", "ext::", "-")
MAX_COMMAND_WORDS = 200
# Any other alias is a command of git, to which a program may be an argument, as in `bisect run tools/test`.
ALIASES = "alias"
EXPLICIT = ("./", "../")
RUNNING_WORDS = frozenset({"run", "foreach", "-x", "--exec", "--extcmd"})
# Commands read these, but do not run them.
DATA_ENDINGS = (".md", ".rst", ".txt", ".log", ".csv", ".json", ".lock", ".html", ".css")
CHANGES_FOLDER = frozenset({"cd", "pushd", "-C"})

_HEADER = r'\[\s*([A-Za-z0-9.-]+)\s*(?:"(?:[^"\\\n]|\\.)*")?\s*\]'
_NAME = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)"
_PIECE = r'\\\r?\n|\\.|"|[#;]|\n|[^\\"#;\n]+|\\'
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\b": "\b"}
_OPTIONAL = ":(optional)"
# The top of the working tree, which is the working directory of commands anyway.
_PRINTS_TOP = r"\s*(?:git\s+rev-parse\s+--show-toplevel|pwd)\s*"
_TOP = rf"\$\({_PRINTS_TOP}\)|`{_PRINTS_TOP}`|\$PWD\b|\$\{{PWD\}}"
_BETWEEN_WORDS = r"[\s;&|()<>`=!]+"
_QUOTED_WORD = r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+"""
_QUOTE = r"""\\(.)|["']"""
# A quoted word with one of these is a command line, or no path.
_NOT_IN_A_PATH = r"[;&|<>%(){}=]|\s-"
# Programs that run the file named after them.
_INTERPRETER = r"(?:.*/)?(?:(?:ba|da|z|k|fi)?sh|python[\d.]*|node|bun|deno|perl|ruby|php|source|\.)"
_INLINE_CODE = r"-\w*[ce]"
# Its value may follow without a blank, as in `rebase -x./test`.
_OPTION_LETTER = r"^-\w(?=\.{0,2}/)"


def find_named_paths(text: str) -> Iterator[NamedPath]:
    """The paths of all settings in order, including those under any condition and those that later settings override."""
    for section, name, value in read_settings(text):
        if not value:
            continue
        path = value.removeprefix(_OPTIONAL)
        if value.startswith(COMMAND_BEGINNINGS) or name.endswith(COMMAND_SETTINGS) or section in COMMAND_SECTIONS:
            yield from _read_command(value)
        elif section == ALIASES:
            runs = not RUNNING_WORDS.isdisjoint(re.split(_BETWEEN_WORDS, value))
            yield from (each for each in _read_command(value) if runs or each.path.startswith(EXPLICIT))
        elif name in FOLDER_SETTINGS:
            yield NamedPath(Named.FOLDER, path)
        elif name == TREE_SETTING:
            yield NamedPath(Named.TREE, path)
        elif section in INCLUDING_SECTIONS and name == FILE_SETTING:
            yield NamedPath(Named.INCLUDED, path)
        elif name.endswith(FILE_SETTING):
            yield NamedPath(Named.FILE, path)


def read_settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Every setting as section, name and value; section (without its subsection) and name in lower case.

    A line that git would reject is skipped. A setting without a value is `true`.
    """
    section, place = "", 1 if text.startswith("\ufeff") else 0
    header_pattern, name_pattern = _compile(_HEADER), _compile(_NAME)
    while place < len(text):
        if text[place].isspace():
            place += 1
        elif header := header_pattern.match(text, place):
            section, place = header[1].partition(".")[0].lower(), header.end()
        elif name := name_pattern.match(text, place):
            value, place = _read_value(text, name.end()) if name[2] else ("true", name.end())
            yield section, name[1].lower(), value
        else:
            place = _end_of_line(text, place)


@functools.cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: most tool calls read no settings."""
    return re.compile(pattern)


def _read_value(text: str, place: int) -> tuple[str, int]:
    """The value at this position, without quotes and comment, and where it ends; a trailing backslash continues the line."""
    pieces: list[str] = []
    is_quoted = False
    pattern = _compile(_PIECE)
    while piece := pattern.match(text, place):
        found, place = piece[0], piece.end()
        if found == "\n":
            break
        if found in {"#", ";"} and not is_quoted:
            place = _end_of_line(text, place)
            break
        if found == '"':
            is_quoted = not is_quoted
        elif found.startswith("\\"):
            pieces.append("" if found.endswith("\n") else _ESCAPES.get(found, found[1:]))
        else:
            pieces.append(found)
    return "".join(pieces).strip(), place


def _end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _read_command(text: str) -> Iterator[NamedPath]:
    """The words of a command that may be programs, also as seen from the folder that it changes to."""
    plain = re.sub(_TOP, ".", text.removeprefix("ext::"))
    words = re.split(_BETWEEN_WORDS, plain.replace('"', "").replace("'", ""), maxsplit=MAX_COMMAND_WORDS)
    folder = before = ""
    for each in words[:MAX_COMMAND_WORDS]:
        word = re.sub(_OPTION_LETTER, "", each)
        if before in CHANGES_FOLDER:
            folder = posixpath.normpath(posixpath.join(folder, word))
        elif kind := _kind_of(word, before):
            yield NamedPath(kind, word)
            if folder not in {"", "."}:
                yield NamedPath(Named.WORD, posixpath.join(folder, word))
        if re.fullmatch(_INLINE_CODE, word):
            before = ""
        elif not word.startswith("-") or word in CHANGES_FOLDER:
            before = word
    for quoted in re.findall(_QUOTED_WORD, plain):
        word = re.sub(_QUOTE, r"\1", quoted)
        if "/" in word and re.search(r"\s", word) and not re.search(_NOT_IN_A_PATH, word):
            yield NamedPath(Named.WORD, word)


def _kind_of(word: str, before: str) -> Named | None:
    """WORD with a slash, PLAIN_WORD if it looks like the name of a file or follows an interpreter; None for folders and data.

    The first word of a command without a slash is a program of the machine.
    """
    if word.endswith(("/", *DATA_ENDINGS)):
        return None
    if "/" in word or not before:
        return Named.WORD if "/" in word else None
    is_file = "." in word.strip(".") or (re.fullmatch(_INTERPRETER, before) and not word.startswith("-"))
    return Named.PLAIN_WORD if is_file else None
