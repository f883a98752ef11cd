"""Which files are nobody's business: the list, and how a path is brought into the form that the list speaks of."""

from __future__ import annotations

import os
import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import unquote

from toolcrib.pure.shell import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PATH = 4096

FOLDERS = frozenset({".ssh", ".git", ".gnupg", ".toolcrib"})
NAMES = (
    ".env",
    ".env.*",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
)
LOOSE_NAMES = ("?*.pem", "?*.key", "*credentials*", "*secret*")
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
    "credentials",
    "secrets",
)


def is_sensitive(path: str) -> bool:
    """Whether an absolute, normalised path is on the list; capitals make no difference."""
    return is_unmistakable(path) or any(fnmatchcase(_name(path), pattern) for pattern in LOOSE_NAMES)


def is_unmistakable(path: str) -> bool:
    """Whether it is on that part of the list which ordinary words and code do not look like."""
    path = PROCESS_ROOT.sub("", path.casefold())
    if PLACES.fullmatch(path) or not FOLDERS.isdisjoint(path.split("/")):
        return True
    return any(fnmatchcase(_name(path), pattern) for pattern in NAMES)


def could_be_sensitive(shape: str) -> bool:
    """Whether a path with unknown stretches could come to one on the list, judged by what of it is known."""
    shape = posixpath.normpath(shape.casefold())
    last = _name(shape)
    if UNKNOWN not in shape:
        return False
    if shape.strip("/" + UNKNOWN) and any(_fits(shape, place) for place in EXAMPLE_PLACES):
        return True
    if UNKNOWN not in last:
        return is_sensitive(f"/{last}")
    telling = len(last.replace(UNKNOWN, "")) > 1 or last.startswith(".")
    return telling and any(_fits(last, name) for name in EXAMPLE_NAMES)


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


def _name(path: str) -> str:
    return path.casefold().rpartition("/")[2]


def _fits(shape: str, example: str) -> bool:
    """Whether the known stretches of the shape occur in the example in their order, from its start to its end."""
    first, *others = shape.split(UNKNOWN)
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
