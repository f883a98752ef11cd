"""Decide whether a path names a sensitive file, also in other spellings and with globs or expansions in it."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from toolcrib.lib.protected_names import (
    SECRET_FOLDERS,
    fold,
    has_secret_pair,
    is_opened,
    is_secret,
    is_secret_file,
    is_source,
)
from toolcrib.lib.shell import GLOB, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PATH = 4096

# Built-in tools never open a repository's own folder: only git does.
FOLDERS = SECRET_FOLDERS | {".git"}
PLACES = re.compile(
    r"/etc/(?:passwd|shadow|gshadow|master\.passwd|sudoers)[-~]?"
    r"|/etc/sudoers\.d(?:/.*)?"
    r"|/etc/ssh/ssh_host_.*"
    r"|/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem)"
)
PROCESS_ROOT = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/root(?=/)")

# Paths and names that globs and expansions are compared with; a pattern of PLACES matches endlessly many, these are typical.
EXAMPLE_PLACES = ("/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/proc/1/environ", "/proc/self/environ")
EXAMPLE_NAMES = (
    *FOLDERS,
    ".env",
    ".env.local",
    "server.pem",
    "server.key",
    "id_rsa",
    "id_ed25519",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".bash_history",
    "credentials",
    "secrets",
)
EXAMPLE_FOLDERS = (*FOLDERS, ".aws", ".kube", ".docker")


def is_sensitive(path: str, *, root: str = "", opened: Iterable[str] = ()) -> bool:
    """Whether an absolute, normalised path is sensitive; case is ignored, and so are the names in `root` itself.

    Paths below the root that the operator `opened` are not sensitive.
    """
    parts = _parts(path, root)
    is_listed = is_unmistakable(path, root=root) or (bool(parts) and is_secret_file(parts[-1]))
    return is_listed and not (_is_below(path, root) and is_opened(parts, opened))


def is_unmistakable(path: str, *, root: str = "") -> bool:
    """Whether the path is sensitive by a name that ordinary words and code do not contain."""
    if PLACES.fullmatch(PROCESS_ROOT.sub("", path.casefold())):
        return True
    parts = _parts(path, root)
    return not FOLDERS.isdisjoint(parts) or any(map(is_secret, parts)) or has_secret_pair(parts)


def could_be_sensitive(outline: str) -> bool:
    """Whether a path with globs or expansions could expand to a sensitive one, judged by its known parts."""
    shape = posixpath.normpath(outline.casefold())
    if not _has_marks(shape):
        return False
    *folders, last = shape.split("/")
    if _without_marks(shape).strip("/") and any(_fits(shape, place) for place in EXAMPLE_PLACES):
        return True
    if any(_is_telling(folder) and any(_fits(folder, name) for name in EXAMPLE_FOLDERS) for folder in folders):
        return True
    if not FOLDERS.isdisjoint(folders):
        return True
    if not _has_marks(last):
        return is_sensitive(f"/{last}")
    return _is_telling(last) and any(_fits(last, name) for name in EXAMPLE_NAMES)


def is_anything(outline: str) -> bool:
    """Whether an expansion is the first or the last part of the path, so that it could name any file."""
    first, *others = outline.removeprefix("./").split("/")
    last = others[-1] if others else first
    if _is_expansion(last):
        return True
    return _is_expansion(first) and bool(last) and not is_source(last)


def pattern_outline(path: str) -> str:
    """The outline of a path for a program that expands globs and braces."""
    return re.sub(r"\{[^{}/]*\}|\[[^\]/]*\]|[*?]+", UNKNOWN, path)


def spellings(path: str, bases: Iterable[str]) -> Iterator[str]:
    """The absolute forms of a path, normalised and with links resolved, relative to every base folder."""
    for spelled in _variants(path):
        opened = expand_home(spelled)
        for base in bases:
            joined = posixpath.join(base, opened)
            yield re.sub("^/+", "/", posixpath.normpath(joined))
            yield from _resolved(joined)


def expand_home(path: str) -> str:
    """The path with `~` and `~user` replaced where they are known."""
    try:
        return os.path.expanduser(path)  # noqa: PTH111  text in, text out; a Path would lose trailing slashes
    except ValueError:  # a lone surrogate, which no name of a user contains
        return path


def _resolved(path: str) -> Iterator[str]:
    """The path with links resolved; nothing if no file can have such a path, or if a folder of it cannot be read."""
    if len(path) > MAX_PATH:
        return
    try:
        yield os.path.realpath(path)
    except (OSError, ValueError):  # ValueError for a lone surrogate, which no name of a file contains
        return


def _variants(path: str) -> Iterator[str]:
    """The path, and its readings as a file URL, percent-encoded, with backslashes, or cut at unknown parts."""
    plain = re.sub(r"(?i)^file:(?://(?:localhost)?(?=/))?", "", path)
    read = {plain, plain.replace("\\", "/"), unquote(plain)}
    yield from sorted({form for text in read for form in (text.partition(UNKNOWN)[0], text.replace(UNKNOWN, ""))})


def _parts(path: str, root: str) -> list[str]:
    """The folded names of a path; for a path below the root, relative to it."""
    inside = path[len(root) :] if _is_below(path, root) else path
    return [fold(name) for name in PROCESS_ROOT.sub("", inside.casefold()).split("/") if name]


def _is_below(path: str, root: str) -> bool:
    return bool(root.strip("/")) and f"{path}/".startswith(f"{root}/")


def _has_marks(shape: str) -> bool:
    return UNKNOWN in shape or GLOB in shape


def _without_marks(shape: str) -> str:
    return shape.replace(UNKNOWN, "").replace(GLOB, "")


def _is_telling(part: str) -> bool:
    """Whether enough of a name is known to compare it with an example."""
    return _has_marks(part) and (len(_without_marks(part)) > 1 or part.startswith("."))


def _is_expansion(part: str) -> bool:
    return UNKNOWN in part and not _without_marks(part)


def _fits(shape: str, example: str) -> bool:
    """Whether the example matches the shape, in which UNKNOWN and GLOB stand for any text."""
    if shape.startswith(GLOB) and example.startswith("."):  # a glob does not match the leading dot of a hidden file
        return False
    first, *others = shape.replace(GLOB, UNKNOWN).split(UNKNOWN)
    if not others:
        return shape == example
    if not example.startswith(first) or not example.endswith(others[-1]):
        return False
    position = len(first)
    for stretch in others[:-1]:
        found = example.find(stretch, position)
        if found < 0:
            return False
        position = found + len(stretch)
    return position <= len(example) - len(others[-1])
