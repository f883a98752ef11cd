"""Commands that destroy more than anybody asked for."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolcrib.core.rules import strictest_of, unreadable
from toolcrib.features.safety_rules.arguments import Argument, Role, read_arguments, runs_command_line
from toolcrib.lib.schema_structure import holds_text
from toolcrib.lib.shell.reader import read_commands
from toolcrib.lib.shell.words import UNKNOWN, Command, Redirection, Word
from toolcrib.model.errors import ToolError
from toolcrib.model.result import Verdict, confirm, deny

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool

CURE = "use a narrower command; an operator may leave the rule out with safety_rules.off = ['dangerous_commands'] in toolcrib.toml"

NEVER = frozenset(
    [
        "dd",
        "shutdown",
        "reboot",
        "halt",
        "poweroff",
        "fdisk",
        "sfdisk",
        "cfdisk",
        "gdisk",
        "sgdisk",
        "parted",
        "wipefs",
        "shred",
        "blkdiscard",
        "mke2fs",
        "mkswap",
        "kexec",
        "telinit",
    ]
)
NEVER_BEGINS = ("mkfs.", "mkfs")
SYSTEM_VERBS = frozenset({"poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency"})
OWNERS = frozenset({"chmod", "chown", "chgrp"})
WRITERS = frozenset({"tee", "cp", "mv", "install", "truncate", "sponge", "ln"})
DOWNLOADERS = frozenset(
    {"curl", "wget", "fetch", "aria2c", "axel", "http", "https", "nc", "ncat", "netcat", "lynx", "ftp"}
)
ROOTS = frozenset(
    [
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib64",
        "/opt",
        "/proc",
        "/root",
        "/sbin",
        "/sys",
        "/usr",
        "/var",
        "~",
        "$HOME",
        "${HOME}",
        ".",
        "..",
    ]
)
SYSTEM_ROOTS = ROOTS - {".", ".."}
HARMLESS_DEVICES = re.compile(
    r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty|ptmx|random|urandom|fd/\d+|pts/\d+|shm/[^\0]+)"
)
WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/")


class DangerousCommands:
    """Denies a command that is known to destroy, and asks about one whose words only the shell knows."""

    name = "dangerous_commands"

    def __init__(self, *, where: str = "built-in rule", cure: str = CURE) -> None:
        self.where = where
        self.cure = cure

    def concerns(self, tool: Tool) -> bool:
        """Whether a call of the tool can hold a command at all."""
        return holds_text(tool.parameters) or runs_command_line(tool)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge every command of every command line."""
        arguments = (argument for argument in read_arguments(tool, call) if argument.role is Role.COMMAND)
        return strictest_of(verdict for argument in arguments for verdict in self._judge(argument))

    def _judge(self, argument: Argument) -> Iterator[Verdict]:
        try:
            commands = read_commands(argument.text)
        except ToolError as error:
            if argument.sure:
                yield unreadable(argument.place, error, rule=self.name, where=self.where)
            return
        for command in commands:
            danger = _danger(command)
            if danger:
                yield self._denied(argument, danger)
            doubt = _doubt(command)
            if doubt:
                yield self._asked(argument, doubt)

    def _denied(self, argument: Argument, danger: str) -> Verdict:
        reason = f"rule {self.name!r}: {argument.place} {danger}"
        return deny(reason, rule=self.name, where=self.where, cure=self.cure, details={"argument": argument.place})

    def _asked(self, argument: Argument, doubt: str) -> Verdict:
        reason = f"rule {self.name!r}: {argument.place} {doubt}"
        return confirm(reason, rule=self.name, where=self.where, cure="confirm it, or write the words out")


def _danger(command: Command) -> str:
    """What the command would do, or nothing."""
    name = command.name
    target = next(filter(None, map(_dangerous_target, command.redirections)), "")
    if target:
        return target
    if name in NEVER or name.startswith(NEVER_BEGINS):
        return f"runs {name}"
    if name in command.functions and command.forked:
        return f"starts itself again and again (the function {name!r})"
    if command.words and command.words[0].computed and _is_downloaded(command.words[0]):
        return "runs what it downloads"
    return _danger_by_name(name, command)


def _danger_by_name(name: str, command: Command) -> str:
    options, operands = _split(command)
    if name == "rm" and _has(options, "rR", "--recursive"):
        forced = _has(options, "f", "--force")
        if forced or any(_is_root(word, ROOTS) for word in operands):
            return (
                "runs rm, recursive and forced" if forced else "runs rm, recursive, on a folder that holds everything"
            )
    texts = {word.text for word in command.arguments}
    if any(_is_root(word, SYSTEM_ROOTS) for word in _changed(name, options, operands, texts)):
        return f"runs {name} on a folder of the system"
    if (name == "systemctl" and texts & SYSTEM_VERBS) or (name == "init" and texts & {"0", "6"}):
        return f"runs {name} to stop the machine"
    if name == "kill" and "-1" in {word.text for word in command.words[2:]}:
        return "runs kill on every process"
    device = next((word.text for word in operands if name in WRITERS and _is_device(word)), "")
    return f"writes to the device {device!r}" if device else ""


def _doubt(command: Command) -> str:
    """What of the command only the shell knows, where that decides what it is."""
    if not command.words:
        return _doubtful_target(command)
    first = command.words[0]
    if not first.certain and not first.text:
        return f"runs code that is only made when it runs ({first.source.strip()[:100]!r})"
    if not first.certain:
        return f"computes the name of a command ({first.text[:100]!r})"
    if any(letter.isspace() for letter in first.text):
        return f"runs a command with blanks in its name ({first.text[:100]!r})"
    if command.name in OWNERS | {"rm", "find", "systemctl", "init"} and any(
        map(_may_be_option, _before_dashes(command))
    ):
        return f"computes words of {command.name} that may be options"
    return _doubtful_target(command)


def _doubtful_target(command: Command) -> str:
    for found in command.redirections:
        if found.operator in WRITES and UNKNOWN in found.target.shape and found.target.shape.startswith("/dev/"):
            return f"computes the device that it writes to ({found.target.text[:100]!r})"
    return ""


def _dangerous_target(redirection: Redirection) -> str:
    target = posixpath.normpath(redirection.target.text) if redirection.target.text else ""
    if NETWORK_DEVICE.match(target):
        return f"opens the connection {target[:100]!r}"
    writes = redirection.operator in WRITES and _is_device(redirection.target)
    return f"writes to the device {target[:100]!r}" if writes else ""


def _is_device(word: Word) -> bool:
    path = re.sub("^/+", "/", posixpath.normpath(word.text)) if word.text else ""
    return path.startswith("/dev/") and HARMLESS_DEVICES.fullmatch(path) is None and UNKNOWN not in word.shape


def _is_downloaded(word: Word) -> bool:
    return not DOWNLOADERS.isdisjoint(re.findall(r"[\w.+-]+", word.source))


def _is_root(word: Word, roots: frozenset[str]) -> bool:
    text = word.text.removesuffix("*") or ("." if word.text else "")
    return re.sub("^/+", "/", posixpath.normpath(text)) in roots if text else False


def _changed(name: str, options: list[str], operands: list[Word], texts: set[str]) -> list[Word]:
    """What the command changes with all that is in it; the last operand of mv is where it puts the others."""
    if name == "mv":
        return operands if _has(options, "t", "--target-directory") else operands[:-1]
    changes = (name in OWNERS and _has(options, "R", "--recursive")) or (name == "find" and "-delete" in texts)
    return operands if changes else []


def _split(command: Command) -> tuple[list[str], list[Word]]:
    """The options and the operands of a program that takes them in any order, as GNU's do."""
    before = _before_dashes(command)
    options = [word.text for word in before if word.text.startswith("-")]
    operands = [word for word in before if not word.text.startswith("-")]
    return options, operands + list(command.arguments[len(before) + 1 :])


def _before_dashes(command: Command) -> list[Word]:
    texts = [word.text for word in command.arguments]
    end = texts.index("--") if "--" in texts else len(texts)
    return list(command.arguments[:end])


def _has(options: list[str], letters: str, long: str) -> bool:
    """Whether an option is given: by letter, alone or with others, or by name, in full or cut short."""
    return any(
        (len(option) > 2 and long.startswith(option.partition("=")[0]))  # noqa: PLR2004  `--` alone is no option
        if option.startswith("--")
        else any(letter in option for letter in letters)
        for option in options
    )


def _may_be_option(word: Word) -> bool:
    return word.computed and word.shape.startswith(("-", UNKNOWN))
