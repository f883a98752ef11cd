"""List the strings of a call with their roles, so that the rules can judge them."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.core.rules import SHARED, TooMuchToReadError
from toolcrib.features.safety_rules.command_line import reads_code, write_line
from toolcrib.features.safety_rules.roles import (
    LISTS_OF_COMMANDS,
    RUNS_SHELLS,
    Role,
    as_text,
    name_words,
    named_role,
    names_vector,
    role_of,
)
from toolcrib.lib.command_arguments import SHELLS
from toolcrib.lib.shell.reader import MAX_LENGTH
from toolcrib.lib.templates import compile_template
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


class CommandOrigin(StrEnum):
    """Why a string is read as a command."""

    SHELL = "shell"  # the tool passes it to a shell
    AUTHOR = "author"  # the author of the tool wrote it, and the call only fills it in
    GUESS = "guess"  # its name suggests it, or the tool may run it


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One string of a call, with its place in the arguments and the nearest name above it.

    `sure` is false where the string may be something else; then it need not be readable as a command.
    """

    place: str
    name: str
    text: str
    role: Role
    reading: CommandOrigin = CommandOrigin.GUESS
    sure: bool = True


KEY_MARK = " (its name)"
PLAIN_CONTAINERS = frozenset({dict, list})
NUMBERS = frozenset({int, float, bool, type(None)})
# The effort of judging a string, by its role; judging a call takes a fraction of a second at most.
EFFORT = {Role.VALUE: 1, Role.TEXT: 1, Role.PATH: 8, Role.COMMAND: 20}
LETTERS_PER_EFFORT = 2  # of a command
FOLDERS_PER_EFFORT = 8  # of a path
MAX_EFFORT = 20_000
MAX_LETTERS = 4_000_000
SHELL_LETTERS = re.compile(r"[\s;&|<>$`(){}*?\[\]'\"!#]")


def read_arguments(tool: Tool | None, call: Call) -> list[Argument]:
    """Every string of the call, at any depth, each container once under each name; a list of words of a command is one command.

    A tool that runs shells may run any argument: all but free text is read as a command as well. An executor passes values as
    separate words, also in a command line, unless something in that line reads them as code. Equal strings under one name are
    listed once. Raises TooMuchToReadError if judging would take too long. The rules of one call share the result.
    """
    shared = SHARED.get()
    if shared is None:
        return _read(tool, call)
    key = (id(tool), id(call))  # both live until all rules have judged
    if key not in shared:
        try:
            shared[key] = _read(tool, call)
        except TooMuchToReadError:
            shared[key] = None
    found: list[Argument] | None = shared[key]  # type: ignore[assignment]  # only written here
    if found is None:
        raise TooMuchToReadError
    return found


def _read(tool: Tool | None, call: Call) -> list[Argument]:
    runs_shell = tool is not None and RUNS_SHELLS in tool.requires and _reads_code(tool, call)
    is_shell = tool is None or (runs_shell and (not isinstance(tool.run, Chained) or tool.run.kind == "primitive"))
    found = _Found(
        [] if tool is None else _command_line(tool, call), CommandOrigin.SHELL if is_shell else CommandOrigin.GUESS
    )
    waiting: list[tuple[str, str, object]] = [("", "", call.arguments)]
    seen: set[tuple[int, str]] = set()
    while waiting:
        place, name, value = waiting.pop()
        # Checking for os.PathLike is slow, and these are not.
        text = None if type(value) in PLAIN_CONTAINERS else as_text(value)
        if text is not None:
            if found.is_new(place, name, text):
                found.add(_readings(place, name, text, runs_shell=runs_shell))
        elif isinstance(value, dict | list | tuple | set | frozenset) and (id(value), name) not in seen:
            seen.add((id(value), name))
            if isinstance(value, dict) and len(value) > MAX_EFFORT:
                raise TooMuchToReadError  # the keys of an object all differ, so each of them would be read
            if _holds_numbers_alone(value):
                waiting.extend((_key_place(place, key), name, key) for key in value if found.is_new_key(name, key))
                continue
            found.add(_argument_vector(place, name, value, runs_shell=runs_shell))
            waiting.extend(reversed(list(_inside(place, name, value))))
    return found.arguments


class _Found:
    """The strings found so far, bounded by the effort of judging them."""

    def __init__(self, arguments: Iterable[Argument], named: CommandOrigin) -> None:
        self.arguments: list[Argument] = []
        self._named = named  # the reading of strings that are named like a command
        self._seen: set[tuple[object, ...]] = set()
        self._effort = 0
        self._letters = 0
        self.add(arguments)

    def is_new(self, place: str, name: str, text: str) -> bool:
        """Whether no equal string was found; an item of a list is read differently from a string alone."""
        return self._note((name, text, place.endswith("]"), _is_key(place)))

    def is_new_key(self, name: str, key: object) -> bool:
        """Whether no object of numbers under this name had the key before."""
        return self._note((name, key))

    def add(self, arguments: Iterable[Argument]) -> None:
        """Add strings; raises TooMuchToReadError beyond the limit."""
        for argument in arguments:
            by_name = (
                argument.role is Role.COMMAND and argument.reading is CommandOrigin.GUESS and _is_named(argument.name)
            )
            self.arguments.append(replace(argument, reading=self._named) if by_name else argument)
            self._effort += _effort(argument)
            self._letters += 0 if argument.role is Role.TEXT else len(argument.text)
            if self._effort > MAX_EFFORT or self._letters > MAX_LETTERS:
                raise TooMuchToReadError

    def _note(self, fact: tuple[object, ...]) -> bool:
        count = len(self._seen)
        self._seen.add(fact)
        return len(self._seen) > count


def _effort(argument: Argument) -> int:
    effort = EFFORT[argument.role]
    if argument.role is Role.COMMAND:
        # A longer command is not parsed at all.
        return effort + min(len(argument.text), MAX_LENGTH) // LETTERS_PER_EFFORT
    return effort + argument.text.count("/") // FOLDERS_PER_EFFORT if argument.role is Role.PATH else effort


def _holds_numbers_alone(value: object) -> bool:
    """Whether an object holds only numbers, so that only its keys are read."""
    return isinstance(value, dict) and NUMBERS.issuperset(map(type, value.values()))


def runs_command_line(tool: Tool) -> bool:
    """Whether the tool is configured as a command line for a shell."""
    return isinstance(tool.run, Chained) and tool.run.is_command_line


def _reads_code(tool: Tool, call: Call) -> bool:
    """Whether an argument of the tool may become a command."""
    if not isinstance(tool.run, Chained) or not isinstance(call.arguments, dict):
        return True
    if not runs_command_line(tool):
        return tool.run.kind == "primitive"
    return tool.run.kind == "primitive" or reads_code(tool.run, call.arguments)


def _command_line(tool: Tool, call: Call) -> Iterator[Argument]:
    """The configured command line of a tool, with the values of this call as quoted words."""
    run = tool.run
    if not isinstance(run, Chained) or not isinstance(call.arguments, dict):
        return
    command, words = str(run.config.get("command", run.executor)), run.config.get("args")
    if runs_command_line(tool):
        text = write_line(run, call.arguments)
    elif posixpath.basename(command) in SHELLS and isinstance(words, list):
        text = shlex.join([command, *(_fill(word, call) for word in _words(words))])
    else:
        return
    yield Argument(place="config.command", name="command", text=text, role=Role.COMMAND, reading=CommandOrigin.AUTHOR)


def _fill(template: str, call: Call) -> str:
    return str(compile_template(template).render(lambda name: call.arguments.get(name, name), str, _as_word))


def _as_word(value: object, _before: str) -> str:
    return str(value)


def _readings(place: str, name: str, text: str, *, runs_shell: bool) -> Iterator[Argument]:
    """The role of a string by its name and form; for a tool that runs shells, also as a command."""
    role = role_of(name, text, runs_shell=runs_shell)
    yield Argument(place=place, name=name, text=text, role=role)
    if not runs_shell or role in {Role.COMMAND, Role.TEXT} or _is_key(place):
        return
    is_item, is_operand = place.endswith("]"), role is Role.PATH or names_vector(name)
    if (is_item and names_vector(name)) or ((is_item or is_operand) and SHELL_LETTERS.search(text) is None):
        return  # an item of an argument vector is read with its list or its program
    yield Argument(place=place, name=name, text=text, role=Role.COMMAND, sure=not is_operand)


def _inside(place: str, name: str, value: object) -> Iterator[tuple[str, str, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield _key_place(place, key), name, key
            if type(item) not in NUMBERS:
                yield _join(place, key), str(key), item
    elif isinstance(value, list | tuple | set | frozenset):
        # Words of one command are judged together; alone, `-c` or `/etc` would be taken for commands.
        inner_name = "args" if _is_command(name) else name
        for position, item in enumerate(value):
            if type(item) not in NUMBERS:
                yield f"{place}[{position}]", inner_name, item


def _argument_vector(place: str, name: str, value: object, *, runs_shell: bool) -> Iterator[Argument]:
    """Commands given as a list of words, or as a program beside its arguments."""
    if isinstance(value, list | tuple) and (_is_command(name) or (runs_shell and named_role(name) is not Role.TEXT)):
        words = _words(value)
        text = words[0] if len(words) == 1 else shlex.join(words)
        yield Argument(place=place, name=name, text=text, role=Role.COMMAND, sure=_is_command(name))
    if isinstance(value, dict):
        yield from _program_beside_arguments(place, value, runs_shell=runs_shell)


def _program_beside_arguments(place: str, value: Mapping[object, object], *, runs_shell: bool) -> Iterator[Argument]:
    vectors = [(str(key), _as_shell_words(rest)) for key, rest in value.items() if names_vector(str(key))]
    if not vectors:
        return
    for key, program in value.items():
        if not isinstance(program, str) or names_vector(str(key)):
            continue
        role = role_of(str(key), program, runs_shell=runs_shell)
        if role is not Role.COMMAND and not (runs_shell and role is not Role.TEXT):
            continue
        for name, rest in vectors:
            if rest:
                where = f"{_join(place, key)} with {name}"
                sure = role is Role.COMMAND
                yield Argument(place=where, name=str(key), text=f"{program} {rest}", role=Role.COMMAND, sure=sure)


def _as_shell_words(rest: object) -> str:
    """Arguments as shell words."""
    return shlex.join(_words(rest)) if isinstance(rest, list | tuple) else as_text(rest) or ""


def _key_place(place: str, key: object) -> str:
    return f"{_join(place, key)}{KEY_MARK}"


def _join(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def _words(items: Sequence[object]) -> list[str]:
    texts = (str(item) if isinstance(item, int | float) else as_text(item) for item in items)
    return [text for text in texts if text is not None]


def _is_key(place: str) -> bool:
    return place.endswith(KEY_MARK)


def _is_named(name: str) -> bool:
    return named_role(name) is Role.COMMAND


def _is_command(name: str) -> bool:
    return named_role(name) is Role.COMMAND and LISTS_OF_COMMANDS.isdisjoint(name_words(name))
