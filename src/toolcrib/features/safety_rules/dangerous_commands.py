"""Judge shell commands: deny destructive ones, allow read-only ones, ask for confirmation of all others.

Destructive commands (`NEVER` and below) are denied in every spelling that can be parsed, also as arguments of a command that
runs its arguments. Allowed commands are listed in `lib/shell/programs.py` or by the operator. A line that the small grammar of
`lib/shell/reader.py` cannot parse unambiguously is never allowed. None of this is a security boundary: the sandbox is.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolcrib.core.rules import strictest_of, unreadable
from toolcrib.features.safety_rules.arguments import Argument, CommandOrigin, read_arguments, runs_command_line
from toolcrib.features.safety_rules.roles import Role
from toolcrib.lib.protected_names import OPEN, judge
from toolcrib.lib.schema_structure import holds_text
from toolcrib.lib.shell import GLOB, UNKNOWN, Command, Redirection, Word
from toolcrib.lib.shell.programs import (
    DECLARES,
    INTERPRETERS,
    RUNS_PROGRAMS,
    SETS_VARIABLES,
    SHELLS,
    STEERING,
    WRAPPERS,
    does_more,
    is_listed,
    split_words,
)
from toolcrib.lib.shell.reader import read_line
from toolcrib.model.errors import Cure, ToolError
from toolcrib.model.result import Verdict, confirm, deny

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolcrib.lib.shell import Line
    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool

CURE = Cure(
    "use a narrower command; an operator may leave the rule out with safety_rules.off = ['dangerous_commands'] in toolcrib.toml",
    "use a narrower command",
)
CURE_OF_DOUBT = "confirm it, or write the words out"
CURE_OF_UNLISTED = Cure(
    "confirm it; an operator may allow it with safety_rules.commands = ['make test'] in toolcrib.toml",
    "let a person confirm it",
)

NEVER = frozenset(
    (
        *("dd", "shutdown", "reboot", "halt", "poweroff", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted"),
        *("wipefs", "shred", "blkdiscard", "mke2fs", "mkswap", "kexec", "telinit"),
    )
)
NEVER_BEGINS = ("mkfs.", "mkfs")
SYSTEM_VERBS = frozenset({"poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency"})
OWNERS = frozenset({"chmod", "chown", "chgrp"})
WRITERS = frozenset({"tee", "cp", "mv", "install", "truncate", "sponge", "ln"})
DOWNLOADERS = frozenset(
    {"curl", "wget", "fetch", "aria2c", "axel", "http", "https", "nc", "ncat", "netcat", "lynx", "ftp"}
)
CODE_TAKERS = SHELLS | INTERPRETERS | {"eval", "source", ".", "at", "batch"}
SYSTEM_ROOTS = frozenset(
    (
        *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/sys"),
        *("/usr", "/var", "~", "$HOME", "${HOME}"),
    )
)
ROOTS = SYSTEM_ROOTS | {".", ".."}
HARMLESS_DEVICES = re.compile(
    r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty|ptmx|random|urandom|fd/\d+|pts/\d+|shm/[^\0]+)"
)
# A function that starts itself twice: `f() { f | f & }`.
FORK_BOMB = re.compile(
    r"(?<![^\s;&|(){}'\"])(?:function\s+([^\s;&|(){}]{1,99})|([^\s;&|(){}]{1,99})\s*\(\s*\))\s*(?:\(\s*\))?\s*[{(]"
    r"[^}]{0,200}?(?<![^\s;&|(){}])(?:\1|\2)\s*\)?\s*[|&](?![|&])"
)
NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/")
WRITES = frozenset({">", ">>", ">|", ">&", "<>"})
DESTROYS_BY_OPTION = OWNERS | {"rm", "find", "systemctl", "init"}
OWN_PROGRAM = re.compile(r"-\w*[cemr]")
VERSION = re.compile(r"[\d.]+$")
COMPUTED = re.compile(rf"[{UNKNOWN}{GLOB}\s\[]")  # an index is calculated, which may run commands
# Bash runs the commands in the value of an array.
RUNS_VALUES = re.compile(r"[-+]\w*[aA]")
NAME_OPTION = re.compile(r"^-\w*?[av]")  # `read -ra name` and `printf -v name`, which may be one word


class DangerousCommands:
    """Denies a command that is known to be destructive, and needs confirmation for one that is not known to only read.

    `allowed` are commands that the operator allows, each by its first words: `make`, `npm test`.
    """

    name = "dangerous_commands"
    where = "built-in rule"

    def __init__(self, *, allowed: Iterable[str] = ()) -> None:
        self.allowed = [command.split() for command in allowed]

    def concerns(self, tool: Tool) -> bool:
        """Whether a call of the tool can contain a command."""
        return holds_text(tool.parameters) or runs_command_line(tool)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge every command of every command line."""
        arguments = (argument for argument in read_arguments(tool, call) if argument.role is Role.COMMAND)
        return strictest_of(verdict for argument in arguments for verdict in self._judge(argument))

    def _judge(self, argument: Argument) -> Iterator[Verdict]:
        try:
            line = read_line(argument.text)
        except ToolError as error:
            if argument.sure:
                yield unreadable(argument.place, error, rule=self.name, where=self.where)
            return
        for danger in _dangers(line):
            yield self._denied(argument, danger)
        if FORK_BOMB.search(argument.text):
            yield self._denied(argument, "starts itself again and again")
        for command in line.commands:
            if not command.guessed:
                yield from self._questions(argument, command)
        if argument.reading is not CommandOrigin.AUTHOR and any(map(_leaves, line.commands)):
            written = (
                found.target.text for command in line.commands for found in command.redirections if _writes(found)
            )
            yield from (
                self._asked(argument, f"writes to {target[:100]!r} after it goes elsewhere", CURE_OF_DOUBT)
                for target in written
            )
        if argument.reading is CommandOrigin.SHELL and line.unclear:
            yield self._asked(argument, f"uses {', '.join(line.unclear)}", CURE_OF_DOUBT)

    def _questions(self, argument: Argument, command: Command) -> Iterator[Verdict]:
        """What needs confirmation in one command; in a line that the author of a tool wrote, only what the call decides."""
        doubt = _doubt(command)
        if doubt:
            yield self._asked(argument, doubt, CURE_OF_DOUBT)
        if argument.reading is CommandOrigin.AUTHOR:
            return
        more = _changes_surroundings(command) or ("" if self._is_allowed(command) else _does_more(command))
        if more:
            yield self._asked(argument, more, CURE_OF_UNLISTED)
        elif argument.reading is CommandOrigin.SHELL and not (is_listed(command) or self._is_allowed(command)):
            yield self._asked(argument, f"runs {command.name[:100]}, which is not known to only read", CURE_OF_UNLISTED)

    def _is_allowed(self, command: Command) -> bool:
        """Whether the operator allowed it by its first words, or there is no command."""
        texts = [word.text for word in command.words]
        plain = all(word.certain for word in command.words[: max(map(len, self.allowed), default=0)])
        return not texts or (plain and any(texts[: len(words)] == words for words in self.allowed))

    def _denied(self, argument: Argument, danger: str) -> Verdict:
        reason = f"rule {self.name!r}: {argument.place} {danger}"
        return deny(reason, rule=self.name, where=self.where, cure=CURE, details={"argument": argument.place})

    def _asked(self, argument: Argument, doubt: str, cure: Cure | str) -> Verdict:
        return confirm(f"rule {self.name!r}: {argument.place} {doubt}", rule=self.name, where=self.where, cure=cure)


# Denied commands


def _dangers(line: Line) -> Iterator[str]:
    yield from filter(None, map(_danger, line.commands))
    if any(command.name in DOWNLOADERS for command in line.commands) and any(map(_runs_unseen_code, line.commands)):
        yield "runs what it downloads"


def _danger(command: Command) -> str:
    """The danger of the command; empty if there is none."""
    name = command.name
    target = next(filter(None, map(_dangerous_target, command.redirections)), "")
    if target:
        return target
    if name in NEVER or name.startswith(NEVER_BEGINS):
        return f"runs {name}"
    return _danger_by_name(name, command)


def _danger_by_name(name: str, command: Command) -> str:
    options, operands = _split(command)
    if name == "rm" and _has(options, "rR", "--recursive"):
        if _has(options, "f", "--force"):
            return "runs rm, recursive and forced"
        if any(_is_root(word, ROOTS) for word in operands):
            return "runs rm, recursive, on a folder that holds everything"
    texts = {word.text for word in command.arguments}
    if any(_is_root(word, SYSTEM_ROOTS) for word in _changed(name, options, operands, texts)):
        return f"runs {name} on a folder of the system"
    if (name == "systemctl" and texts & SYSTEM_VERBS) or (name == "init" and texts & {"0", "6"}):
        return f"runs {name} to stop the machine"
    if name == "kill" and "-1" in {word.text for word in command.words[2:]}:
        return "runs kill on every process"
    device = next((word.text for word in operands if name in WRITERS and _is_device(word)), "")
    return f"writes to the device {device!r}" if device else ""


def _runs_unseen_code(command: Command) -> bool:
    """Whether it runs code that is only known at run time: from a pipe, or from an expansion."""
    name = VERSION.sub("", command.name)
    if name in {"xargs", "parallel"}:
        return command.piped and any(posixpath.basename(word.text) in CODE_TAKERS for word in command.arguments)
    if name not in CODE_TAKERS:
        return False
    if any(UNKNOWN in outline for word in command.arguments for outline in word.outlines):
        return True
    given = any(UNKNOWN in outline for found in command.redirections for outline in found.target.outlines)
    own = any(not word.text.startswith("-") or OWN_PROGRAM.match(word.text) for word in command.arguments)
    return given or (command.piped and (not own or "-s" in {word.text for word in command.arguments}))


def _dangerous_target(redirection: Redirection) -> str:
    target = posixpath.normpath(redirection.target.text) if redirection.target.text else ""
    if NETWORK_DEVICE.match(target):
        return f"opens the connection {target[:100]!r}"
    writes = redirection.operator in WRITES and _is_device(redirection.target)
    return f"writes to the device {target[:100]!r}" if writes else ""


def _is_device(word: Word) -> bool:
    path = re.sub("^/+", "/", posixpath.normpath(word.text)) if word.text else ""
    return path.startswith("/dev/") and HARMLESS_DEVICES.fullmatch(path) is None and UNKNOWN not in word.outlines[0]


def _is_root(word: Word, roots: frozenset[str]) -> bool:
    text = word.text.removesuffix("*") or ("." if word.text else "")
    return re.sub("^/+", "/", posixpath.normpath(text)) in roots if text else False


def _changed(name: str, options: Sequence[str], operands: list[Word], texts: set[str]) -> list[Word]:
    """The operands that the command changes recursively; the last operand of mv is the destination of the others."""
    if name == "mv":
        return operands if _has(options, "t", "--target-directory") else operands[:-1]
    changes = (name in OWNERS and _has(options, "R", "--recursive")) or (name == "find" and "-delete" in texts)
    return operands if changes else []


def _split(command: Command) -> tuple[list[str], list[Word]]:
    options, operands = split_words(command.arguments)
    return [word.text for word in options], [*operands, *(word for word in options if not word.text.startswith("-"))]


def _has(options: Sequence[str], letters: str, long: str) -> bool:
    """Whether an option is given: as a letter, alone or combined, or as a long name, in full or abbreviated."""
    return any(
        (len(option) > 2 and long.startswith(option.partition("=")[0]))  # noqa: PLR2004  `--` alone is not an option
        if option.startswith("--")
        else option.startswith("-") and any(letter in option for letter in letters)
        for option in options
    )


# Commands that need confirmation


def _doubt(command: Command) -> str:
    """The part of the command that is only known at run time and decides what it does; empty if there is none."""
    for found in command.redirections:
        shape = found.target.outlines[0]
        if found.operator in WRITES and UNKNOWN in shape and shape.startswith("/dev/"):
            return f"computes the device that it writes to ({found.target.text[:100]!r})"
    return _doubtful_name(command) if command.words else ""


def _doubtful_name(command: Command) -> str:
    first = command.words[0]
    if not first.certain:
        return f"computes the name of a command ({first.text[:100]!r})"
    if any(letter.isspace() for letter in first.text):
        return f"runs a command with blanks in its name ({first.text[:100]!r})"
    if _runs_unseen_code(command):
        return f"runs code that is only made when it runs ({command.name[:100]})"
    options, _ = split_words(command.arguments) if command.name in DESTROYS_BY_OPTION else ((), ())
    doubtful = any(word.computed and not word.text.startswith("--") for word in options)
    return f"computes words of {command.name} that may be options" if doubtful else ""


def _changes_surroundings(command: Command) -> str:
    """The effect of the command beyond itself: a variable that controls programs, or a file outside the workspace."""
    for name in _set_variables(command):
        if name == UNKNOWN:
            return "computes the name of a variable"
        if STEERING.fullmatch(name) or (command.words and command.assignments and not is_listed(command)):
            return f"sets {name[:100]}, which may decide what other programs do"
    options = [outline for word in command.arguments for outline in word.outlines] if command.name in DECLARES else []
    if any(map(RUNS_VALUES.match, options)):
        return f"runs {command.name} with an option by which a value may run commands"
    target = next((found.target.text for found in command.redirections if _writes_elsewhere(found)), None)
    return "" if target is None else f"writes to {target[:100]!r}, which is not a plain file of the workspace"


def _does_more(command: Command) -> str:
    """The words of a known program that make it do more than read; empty if there are none."""
    name = command.name
    if is_listed(command):
        more = does_more(command)
        return f"runs {name}, which {more}" if more else ""
    runs = name in WRAPPERS | RUNS_PROGRAMS or VERSION.sub("", name) in INTERPRETERS
    return f"runs {name} with words that it may run" if runs and command.arguments else ""


def _set_variables(command: Command) -> Iterator[str]:
    """The names of the variables that the command sets."""
    yield from (assignment.name for assignment in command.assignments)
    if command.name == "printf":
        names = any(word.may_be_option and not word.text.startswith("--") for word in command.arguments[:1])
    else:
        names = command.name in DECLARES | SETS_VARIABLES
    for word in command.arguments if names else ():
        for outline in word.outlines:
            name = NAME_OPTION.sub("", outline).partition("=")[0]
            yield UNKNOWN if COMPUTED.search(name) else name


def _leaves(command: Command) -> bool:
    """Whether it goes to another folder than a plain one of the workspace, where a relative path means another file."""
    if command.name not in {"cd", "pushd"}:
        return False
    _, operands = split_words(command.arguments)
    if not operands:
        return command.name == "cd"
    return any(_is_elsewhere(outline) or outline == "-" for word in operands for outline in word.outlines)


def _writes(redirection: Redirection) -> bool:
    return redirection.operator in WRITES and not HARMLESS_DEVICES.fullmatch(redirection.target.text)


def _writes_elsewhere(redirection: Redirection) -> bool:
    """Whether it writes to anything but a harmless device or a plain file of the workspace, as `write_file` may write."""
    if redirection.operator not in WRITES:
        return False
    return any(map(_is_elsewhere, redirection.target.outlines))


def _is_elsewhere(path: str) -> bool:
    if HARMLESS_DEVICES.fullmatch(path):
        return False
    hidden = any(part.startswith((".", "~")) and part != "." for part in path.split("/"))
    unsure = not path or UNKNOWN in path or GLOB in path
    return unsure or path.startswith("/") or hidden or judge(path) != OPEN
