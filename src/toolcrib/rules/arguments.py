"""What the arguments of a call are: commands, paths, free text or something else."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


class Role(StrEnum):
    """What a string is taken for."""

    COMMAND = "command"
    PATH = "path"
    TEXT = "text"
    VALUE = "value"


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One string of a call, with its place in the arguments and the nearest name above it."""

    place: str
    name: str
    text: str
    role: Role


COMMAND_NAMES = frozenset({"command", "cmd"})
LISTS_OF_COMMANDS = frozenset({"commands", "cmds"})
SHELL_NAMES = COMMAND_NAMES | {"script", "line"}
ARGUMENT_VECTORS = ("args", "arguments", "argv")
PATH_NAMES = frozenset(
    [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "filenames",
        "filepath",
        "filepaths",
        "cwd",
        "dir",
        "dirs",
        "directory",
        "directories",
        "folder",
        "folders",
        "source",
        "sources",
        "src",
        "destination",
        "destinations",
        "dest",
        "dst",
        "root",
        "workdir",
    ]
)
TEXT_NAMES = frozenset(
    [
        "content",
        "contents",
        "text",
        "texts",
        "body",
        "message",
        "messages",
        "prompt",
        "prompts",
        "query",
        "queries",
        "question",
        "description",
        "note",
        "notes",
        "comment",
        "comments",
        "summary",
        "title",
        "subject",
        "instructions",
        "markdown",
        "html",
        "reason",
    ]
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
URL = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]*://")


def read_arguments(tool: Tool | None, call: Call) -> list[Argument]:
    """Every string of the call, at any depth, each container once under each name; a list of words for a command is one command."""
    runs_shell = tool is not None and "shell.execute" in tool.requires
    found: list[Argument] = []
    waiting: list[tuple[str, str, object]] = [("", "", call.arguments)]
    seen: set[tuple[int, str]] = set()
    while waiting:
        place, name, value = waiting.pop()
        text = _as_text(value)
        if text is not None:
            found.append(Argument(place=place, name=name, text=text, role=_role(name, text, runs_shell=runs_shell)))
        elif isinstance(value, dict | list | tuple | set | frozenset) and (id(value), name) not in seen:
            seen.add((id(value), name))
            found.extend(_argument_vector(place, name, value, runs_shell=runs_shell))
            waiting.extend(reversed(list(_inside(place, name, value))))
    return found


def last_part(name: str) -> str:
    """The word of a name that says what it holds: `outputFile` and `output_file` hold a file."""
    return CAMEL.sub("_", name).replace("-", "_").lower().rpartition("_")[2]


def _inside(place: str, name: str, value: object) -> Iterator[tuple[str, str, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            inner = _join(place, key)
            if place:
                yield f"{inner} (its name)", name, key
            yield inner, str(key), item
    elif isinstance(value, list | tuple | set | frozenset):
        # Words of one command are judged together; alone, `-c` or `/etc` would be taken for commands.
        inner_name = "" if _is_command(name) else name
        for position, item in enumerate(value):
            yield f"{place}[{position}]", inner_name, item


def _argument_vector(place: str, name: str, value: object, *, runs_shell: bool) -> Iterator[Argument]:
    """The commands that are written as a list of words, or as a program beside the list of its arguments."""
    if isinstance(value, list | tuple) and _is_command(name):
        words = _words(value)
        text = words[0] if len(words) == 1 else shlex.join(words)
        yield Argument(place=place, name=name, text=text, role=Role.COMMAND)
    if isinstance(value, dict):
        yield from _program_beside_arguments(place, value, runs_shell=runs_shell)


def _program_beside_arguments(place: str, value: Mapping[object, object], *, runs_shell: bool) -> Iterator[Argument]:
    for key, program in value.items():
        if not isinstance(program, str) or _role(str(key), program, runs_shell=runs_shell) is not Role.COMMAND:
            continue
        for name in ARGUMENT_VECTORS:
            rest = value.get(name)
            if isinstance(rest, list | tuple) and rest:
                text = f"{program} {shlex.join(_words(rest))}"
                yield Argument(place=f"{_join(place, key)} with {name}", name=str(key), text=text, role=Role.COMMAND)


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return os.fsdecode(value) if isinstance(value, os.PathLike) else None


def _join(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def _words(items: Sequence[object]) -> list[str]:
    texts = (str(item) if isinstance(item, int | float) else _as_text(item) for item in items)
    return [text for text in texts if text is not None]


def _is_command(name: str) -> bool:
    return last_part(name) in COMMAND_NAMES


def _role(name: str, text: str, *, runs_shell: bool) -> Role:
    last = last_part(name)
    if last in COMMAND_NAMES | LISTS_OF_COMMANDS or (runs_shell and last in SHELL_NAMES):
        return Role.COMMAND
    if last in PATH_NAMES:
        return Role.PATH
    if last in TEXT_NAMES:
        return Role.TEXT
    return Role.PATH if looks_like_a_path(text) else Role.VALUE


def looks_like_a_path(text: str) -> bool:
    """Whether a string with no telling name is judged as a path."""
    plain = text.replace("\\", "/")
    if plain.startswith(("/", "~", "./", "../")):
        return True
    return "/" in plain and not URL.match(plain) and not any(letter.isspace() for letter in plain)
