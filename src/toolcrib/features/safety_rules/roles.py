"""Tell the role of a string in a call by its name and form: a command, a path, free text or another value."""

from __future__ import annotations

import functools
import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


class Role(StrEnum):
    """The role of a string in a call."""

    COMMAND = "command"
    PATH = "path"
    TEXT = "text"
    VALUE = "value"


RUNS_SHELLS = "shell.execute"
COMMAND_NAMES = frozenset({"command", "cmd"})
LISTS_OF_COMMANDS = frozenset({"commands", "cmds"})
SHELL_NAMES = COMMAND_NAMES | {"script", "line"}
ARGUMENT_VECTORS = frozenset({"args", "arguments", "argv", "params", "parameters", "options", "flags"})
# The prefixes of these names, for a fast check of an object with many keys.
BEGINS_VECTOR = re.compile("(?i)arg|par|opt|flag")
PATH_NAMES = frozenset(
    (
        *("path", "paths", "file", "files", "filename", "filenames", "pathname", "pathnames", "filepath"),
        *("filepaths", "cwd", "dir", "dirs", "directory", "directories", "folder", "folders", "source", "sources"),
        *("src", "destination", "destinations", "dest", "dst", "root", "workdir"),
    )
)
TEXT_NAMES = frozenset(
    (
        *("content", "contents", "text", "texts", "body", "message", "messages", "prompt", "prompts", "query"),
        *("queries", "question", "description", "note", "notes", "comment", "comments", "summary", "title"),
        *("subject", "instructions", "markdown", "html", "reason"),
    )
)
KEPT_NAME = 64
# More values than this are left to the rules, which have limits of their own.
MAX_SCREENED = 1000
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
URL = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]*://")


def name_words(name: str) -> list[str]:
    """The words of a name, last word first, since it tells most: `outputFile`, `output_file2` and `file-name` name a file."""
    return [word.lower() for word in reversed(WORDS.findall(name))]


def looks_like_a_path(text: str) -> bool:
    """Whether a string is judged as a path although its name does not say so."""
    plain = text.strip().replace("\\", "/")
    if plain.startswith(("/", "~", "./", "../")):
        return True
    if "/" not in plain or URL.match(plain):
        return False
    return ".." in plain.split("/") or not any(letter.isspace() for letter in plain)


def role_of(name: str, text: str, *, runs_shell: bool = False) -> Role:
    """The role of a string by its name or, if that tells nothing, by its form."""
    role = named_role(name, runs_shell=runs_shell)
    if role is not Role.VALUE:
        return role
    return Role.PATH if looks_like_a_path(text) else Role.VALUE


def named_role(name: str, *, runs_shell: bool = False) -> Role:
    """The role that the last known word of a name implies."""
    # The names of items repeat in a long list; long names do not, and are not cached.
    find = _find_role if len(name) <= KEPT_NAME else _find_role.__wrapped__
    return find(name, runs_shell=runs_shell)


@functools.lru_cache(maxsize=512)
def _find_role(name: str, *, runs_shell: bool) -> Role:
    commands = COMMAND_NAMES | LISTS_OF_COMMANDS | (SHELL_NAMES if runs_shell else frozenset())
    for word in name_words(name):
        if word in commands:
            return Role.COMMAND
        if word in PATH_NAMES:
            return Role.PATH
        if word in TEXT_NAMES:
            return Role.TEXT
    return Role.VALUE


def names_vector(name: str) -> bool:
    """Whether a name is that of the arguments of a program."""
    if BEGINS_VECTOR.search(name) is None:
        return False
    return (_names_vector if len(name) <= KEPT_NAME else _names_vector.__wrapped__)(name)


@functools.lru_cache(maxsize=512)
def _names_vector(name: str) -> bool:
    return not ARGUMENT_VECTORS.isdisjoint(name_words(name)[:1])


def as_text(value: object) -> str | None:
    """The text of a string, of bytes or of a path object; None for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return os.fsdecode(value) if isinstance(value, os.PathLike) else None


def make_text_screen(_: object) -> Callable[[Tool | None, Call], bool]:
    """The check below as a resource, so that it is loaded with the first call that holds a text."""
    return holds_no_command_or_path


def holds_no_command_or_path(tool: Tool | None, call: Call) -> bool:
    """Whether no string of the call is read as a command or as a path, so that the rules about these need not be asked.

    False where that is not certain: for an unknown tool, one that is a command itself or runs shells, and for very many values.
    """
    if tool is None or isinstance(tool.run, Chained) or RUNS_SHELLS in tool.requires:
        return False
    waiting: list[tuple[str, object]] = [("", call.arguments)]
    for _ in range(MAX_SCREENED):
        if not waiting:
            return True
        name, value = waiting.pop()
        if isinstance(value, dict):
            # The name of a command counts by itself, because a list of numbers can be one.
            if any(named_role(str(key)) is Role.COMMAND for key in value):
                return False
            waiting.extend((name, key) for key in value)
            waiting.extend((str(key), item) for key, item in value.items())
        elif isinstance(value, list | tuple | set | frozenset):
            waiting.extend((name, item) for item in value)
        else:
            text = as_text(value)
            if text is not None and role_of(name, text) in {Role.COMMAND, Role.PATH}:
                return False
        if len(waiting) > MAX_SCREENED:
            return False
    return False
