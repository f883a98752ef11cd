"""Fill the command line of a tool with the values of a call as quoted words, and find values that may be run as code.

A value becomes one parameter of the shell, which the shell does not parse as code. Programs may: `eval`, `sh -c`, `xargs` and
the like, and the shell itself in arithmetic and in names of variables.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import TYPE_CHECKING

from toolcrib.lib.command_arguments import SHELLS, spell
from toolcrib.lib.shell.programs import DECLARES, INTERPRETERS, RUNS_PROGRAMS, SHELL_CODE, WRAPPERS
from toolcrib.lib.shell.reader import MAX_LENGTH, read_line
from toolcrib.lib.templates import Name, Text, compile_template, read_braces
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.lib.shell import Command, Word
    from toolcrib.lib.templates import Slot
    from toolcrib.model.tool import Chained

    # How a value is written into the line.
    Write = Callable[[object], str]

OPAQUE = '"$1"'
# A shell accepts these characters; our parser of command lines refuses them.
UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# Where bash evaluates arithmetic, or takes a text as the name of a variable: `((…))`, `[[…]]`, `${…}`, `$[…]`, `name[…]`.
ARITHMETIC = re.compile(r"\(\(|\[\[|\$\{|\$\[|\w\[")
# Programs, other than shells, that take code, the name of a program or that of a variable as one of their words.
TAKES_CODE = (
    (WRAPPERS - SHELLS)
    | RUNS_PROGRAMS
    | SHELL_CODE
    | DECLARES
    | {"awk", "gawk", "mawk", "nawk", "sed", "sort", "man", "crontab"}
)
NAMES_A_VARIABLE = frozenset({"[", "printf", "test"})
CODE_OPTION = re.compile(r"-\w*[ceEpr]")
VERSION = re.compile(r"[\d.]+$")


def write_line(run: Chained, arguments: Mapping[str, object]) -> str:
    """The line with every value as a quoted word; in a line that is too long, each value is a placeholder."""
    if reads_code(run, arguments):
        return _fill(run, arguments, lambda value: shlex.quote(str(value)))
    line = _fill(run, arguments, lambda value: shlex.quote(UNWRITABLE.sub("\ufffd", str(value))))
    return line if len(line.encode()) <= MAX_LENGTH else _fill(run, arguments, lambda _: OPAQUE)


def reads_code(run: Chained, arguments: Mapping[str, object]) -> bool:
    """Whether anything in the line may read a value as code; assumed for a line that is unknown or unreadable."""
    if "command" not in run.config or ARITHMETIC.search(_written(run)):
        return True
    try:
        line = read_line(_fill(run, arguments, lambda _: OPAQUE))
    except ToolError:
        return True
    is_piped_to_shell = any(command.piped and _reads_input(command) for command in line.commands)
    return is_piped_to_shell or any(map(_takes_code, line.commands))


def _written(run: Chained) -> str:
    """The text that the author wrote, without the slots."""
    return " ".join(piece for piece in _pieces(_line(run)) if isinstance(piece, str))


def _fill(run: Chained, arguments: Mapping[str, object], write: Write) -> str:
    """The line, followed by the words of `args` and by the arguments that no slot takes."""

    def put(text: str, literal: Callable[[str], str]) -> str:
        return "".join(
            literal(piece) if isinstance(piece, str) else write(_value(piece, arguments)) for piece in _pieces(text)
        )

    words = [put(word, shlex.quote) for word in _own_words(run)]
    return " ".join([put(_line(run), str), *words, *_unmentioned(run, arguments, write)])


def _unmentioned(run: Chained, arguments: Mapping[str, object], write: Write) -> Iterator[str]:
    if run.action:
        yield shlex.quote(run.action)
    mentioned = compile_template([run.config.get(key) for key in ("command", "args", "env", "cwd")]).names
    for name, value in arguments.items():
        if name in mentioned:
            continue
        try:
            words = spell({name: value})
        except (ToolError, TypeError, ValueError):
            words = [f"--{name}", str(value)]
        yield from (shlex.quote(word) if word == f"--{name}" else write(word) for word in words)


def _line(run: Chained) -> str:
    line = run.config.get("command", run.executor)
    return line if isinstance(line, str) else ""


def _own_words(run: Chained) -> list[str]:
    words = run.config.get("args")
    return [str(word) for word in words] if isinstance(words, list) else []


def _pieces(text: str) -> tuple[str | Slot, ...]:
    read = read_braces(text)
    return read.pieces if isinstance(read, Text) else (read,)


def _value(slot: Slot, arguments: Mapping[str, object]) -> object:
    return arguments.get(slot.name, slot.name) if isinstance(slot, Name) else slot.name


def _takes_code(command: Command) -> bool:
    """Whether a value in this command may be run, or decide what is run."""
    if command.words and not command.words[0].certain:
        return True
    if not any(word.computed for word in command.arguments):
        sets = any(found.value.computed for found in command.assignments)
        # Variables control programs: PAGER, GIT_SSH_COMMAND, `declare -i`.
        return command.name == "xargs" or (bool(command.words) and sets)
    name = VERSION.sub("", command.name).lower()
    texts = {word.text for word in command.arguments}
    if name in TAKES_CODE or (name in NAMES_A_VARIABLE and "-v" in texts):
        return True
    return (name in SHELLS | INTERPRETERS and _is_program(command.arguments)) or _follows_shell(command.arguments)


def _reads_input(command: Command) -> bool:
    """Whether a shell takes its code from standard input."""
    operands = [word.text for word in command.arguments if not word.text.startswith("-")]
    return command.name in SHELLS | {"xargs", "parallel"} and (command.name not in SHELLS or not operands)


def _is_program(words: tuple[Word, ...]) -> bool:
    """Whether a value is the program that an interpreter runs, or an option of it; what follows the program is data."""
    before = ""
    for word in words:
        if word.computed:
            return True
        if not word.text.startswith("-") and (not before.startswith("-") or CODE_OPTION.fullmatch(before)):
            return False
        before = word.text
    return False


def _follows_shell(words: tuple[Word, ...]) -> bool:
    """Whether a value follows the name of a shell, as in `docker run image sh -c {code}`."""
    names = [VERSION.sub("", posixpath.basename(word.text)) for word in words]
    shells = [position for position, name in enumerate(names) if name in SHELLS | INTERPRETERS]
    return bool(shells) and any(word.computed for word in words[shells[0] :])
