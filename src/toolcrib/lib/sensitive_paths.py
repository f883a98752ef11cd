"""List sensitive files, and bring a path into the form that the list uses."""

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

# No tool of ours opens a repository's own folder: git does that.
FOLDERS = SECRET_FOLDERS | {".git"}
PLACES = re.compile(
    r"/etc/(?:passwd|shadow|gshadow|master\.passwd|sudoers)[-~]?"
    r"|/etc/sudoers\.d(?:/.*)?"
    r"|/etc/ssh/ssh_host_.*"
    r"|/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem)"
)
PROCESS_ROOT = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/root(?=/)")

# What a glob or an expansion might stand for; a pattern has no end of examples, these are the ones worth asking about.
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
    """Whether an absolute, normalised path is on the list; capitals make no difference, nor do the names in `root`.

    What the operator `opened` below the root is not.
    """
    parts = _parts(path, root)
    is_listed = is_unmistakable(path, root=root) or (bool(parts) and is_secret_file(parts[-1]))
    return is_listed and not (_is_below(path, root) and is_opened(parts, opened))


def is_unmistakable(path: str, *, root: str = "") -> bool:
    """Whether it is on that part of the list which ordinary words and code do not look like."""
    if PLACES.fullmatch(PROCESS_ROOT.sub("", path.casefold())):
        return True
    parts = _parts(path, root)
    return not FOLDERS.isdisjoint(parts) or any(map(is_secret, parts)) or has_secret_pair(parts)


def could_be_sensitive(outline: str) -> bool:
    """Whether a path with unknown stretches could come to one on the list, judged by what of it is known."""
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
    """Whether an expansion decides where the path starts or which file it ends in, so that it could come to any file."""
    first, *others = outline.removeprefix("./").split("/")
    last = others[-1] if others else first
    if _is_expansion(last):
        return True
    return _is_expansion(first) and bool(last) and not is_source(last)


def pattern_outline(path: str) -> str:
    """A path as a program reads it that knows globs and braces."""
    return re.sub(r"\{[^{}/]*\}|\[[^\]/]*\]|[*?]+", UNKNOWN, path)


def spellings(path: str, bases: Iterable[str]) -> Iterator[str]:
    """The absolute forms of a path: as it is spelled and as the disk resolves it, from every folder it may start in."""
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
    except ValueError:  # half a character: no user has such a name
        return path


def _resolved(path: str) -> Iterator[str]:
    """Where the links lead; nowhere if no file can have such a path or a folder on its way is closed to us."""
    if len(path) > MAX_PATH:
        return
    try:
        yield os.path.realpath(path)
    except (OSError, ValueError):  # the latter for half a character: no file has such a name
        return


def _variants(path: str) -> Iterator[str]:
    """The path, and what it would be to a program that reads a file URL, percent signs, backslashes or NULs its own way."""
    plain = re.sub(r"(?i)^file:(?://(?:localhost)?(?=/))?", "", path)
    read = {plain, plain.replace("\\", "/"), unquote(plain)}
    yield from sorted({form for text in read for form in (text.partition(UNKNOWN)[0], text.replace(UNKNOWN, ""))})


def _parts(path: str, root: str) -> list[str]:
    """The folded names of a path, of one below the root without those of the root."""
    inside = path[len(root) :] if _is_below(path, root) else path
    return [fold(name) for name in PROCESS_ROOT.sub("", inside.casefold()).split("/") if name]


def _is_below(path: str, root: str) -> bool:
    return bool(root.strip("/")) and f"{path}/".startswith(f"{root}/")


def _has_marks(shape: str) -> bool:
    return UNKNOWN in shape or GLOB in shape


def _without_marks(shape: str) -> str:
    return shape.replace(UNKNOWN, "").replace(GLOB, "")


def _is_telling(part: str) -> bool:
    """Whether enough of a name is known to speak of a likeness."""
    return _has_marks(part) and (len(_without_marks(part)) > 1 or part.startswith("."))


def _is_expansion(part: str) -> bool:
    return UNKNOWN in part and not _without_marks(part)


def _fits(shape: str, example: str) -> bool:
    """Whether the known stretches of the shape occur in the example in their order, from its start to its end."""
    if shape.startswith(GLOB) and example.startswith("."):  # no glob of the shell begins with a hidden name's dot
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
