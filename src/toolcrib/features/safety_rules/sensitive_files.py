"""Deny paths and commands that name keys, passwords or our own data folder."""

from __future__ import annotations

import os
import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolcrib.core.rules import strictest_of, unreadable
from toolcrib.features.safety_rules.arguments import Argument, read_arguments, runs_command_line
from toolcrib.features.safety_rules.roles import URL, Role, name_words
from toolcrib.lib.protected_names import ASKED, judge
from toolcrib.lib.schema_structure import holds_text
from toolcrib.lib.sensitive_paths import (
    could_be_sensitive,
    expand_home,
    is_anything,
    is_sensitive,
    is_unmistakable,
    pattern_outline,
    spellings,
)
from toolcrib.lib.shell import GLOB, UNKNOWN, Command, Word, plain
from toolcrib.lib.shell.programs import split_words
from toolcrib.lib.shell.reader import read_line
from toolcrib.model.errors import Cure, ToolError
from toolcrib.model.result import Verdict, confirm, deny
from toolcrib.model.tool import Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool

CURE = Cure(
    "name another file; an operator may open one with workspace.open = ['…'], or leave the rule out with safety_rules.off = ['sensitive_files'], in toolcrib.toml",
    "name another file",
)
MAX_FOLDERS = 4
WRITES = "fs.write"
DELIMITERS = re.compile(r"[=@,:;\"'`()<>|&{}\[\]\s]+")
CODE_DELIMITERS = re.compile(r"[=@,:;\"'`()<>|&{}\[\]]+")
OPTION = re.compile(r"-\w(?=[/~.])|--?[\w-]*=?|\+")
CHANGES_FOLDER = frozenset({"cd", "pushd"})
FOLDER_OPTIONS = frozenset({"-C", "-D", "--chdir", "--directory", "--cwd"})
FOLDER_NAMES = frozenset({"cwd", "workdir", "dir", "directory", "root"})
NO_FILE = frozenset({"<<", "<<-", "<<<"})
# Options whose value is left out by the program.
EXCLUDE_OPTIONS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rsync", "tar", "du"), frozenset({"--exclude", "--exclude-dir"})),
    "diff": frozenset({"--exclude", "-x"}),
    "tree": frozenset({"-I"}),
}
CHECKS_IGNORED = (plain("git"), plain("check-ignore"))
GREPS = frozenset({"grep", "egrep", "fgrep"})
GREP_SWITCHES = re.compile(r"-[cEFhHilLnoqrRsvwx]+")  # no option that has a value or makes the first operand a file
FIND_TESTS = frozenset({"-path", "-wholename", "-ipath", "-name", "-iname"})
OPENS_NOTHING = frozenset(
    (
        *(":", "[", "[[", "alias", "basename", "break", "continue", "date", "declare", "dirname", "echo", "exit"),
        *("export", "expr", "false", "getopts", "hash", "kill", "let", "local", "mkdir", "printf", "pwd", "read"),
        *("readonly", "return", "seq", "set", "shift", "sleep", "test", "touch", "trap", "true", "type", "typeset"),
        *("ulimit", "umask", "unset", "wait", "which"),
    )
)
MESSAGE_OPTIONS = {
    "git": frozenset({"-m", "-am", "--message"}),
    "gh": frozenset({"-b", "--body", "-t", "--title"}),
}


class SensitiveFiles:
    """Denies a path or command that names a sensitive file, and needs confirmation for one that might.

    Relative paths start at `workspace`, at a folder that the call names, or where the command goes with `cd`.
    """

    name = "sensitive_files"
    where = "built-in rule"

    def __init__(self, workspace: Path, *, opened: Iterable[str] = ()) -> None:
        self.workspace = os.path.realpath(workspace)
        self.opened = tuple(opened)

    def concerns(self, tool: Tool) -> bool:
        """Whether a call of the tool can contain a path."""
        return holds_text(tool.parameters) or runs_command_line(tool)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge every path and every word of every command."""
        arguments = read_arguments(tool, call)
        return strictest_of((*self._verdicts(arguments), *self._confirmations(tool, arguments)))

    def _verdicts(self, arguments: Sequence[Argument]) -> Iterator[Verdict]:
        folders = [argument.text for argument in arguments if not FOLDER_NAMES.isdisjoint(name_words(argument.name))]
        bases = self._bases(folders[:MAX_FOLDERS])
        for argument in arguments:
            if argument.role is Role.COMMAND:
                yield from self._judge_command(argument, folders)
            elif argument.role is Role.PATH:
                yield from self._judge_path(argument, bases)

    def _confirmations(self, tool: Tool | None, arguments: Sequence[Argument]) -> Iterator[Verdict]:
        """Confirmations before a host function writes a file that the host runs automatically; file tools cannot, by the sandbox."""
        if tool is None or WRITES not in tool.requires or not isinstance(tool.run, Function):
            return
        for argument in arguments:
            if argument.role is Role.PATH and any(map(self._is_host_code, _spellings(argument.text, [self.workspace]))):
                reason = f"rule {self.name!r}: {argument.place} names {argument.text[:200]!r}, which the host runs automatically"
                yield confirm(reason, rule=self.name, where=self.where, cure="confirm it, or write another file")

    def _is_host_code(self, path: str) -> bool:
        if not f"{path}/".startswith(f"{self.workspace}/"):
            return False
        return judge(path[len(self.workspace) :], opened=self.opened) == ASKED

    def _judge_path(self, argument: Argument, bases: Sequence[str]) -> Iterator[Verdict]:
        for text in dict.fromkeys((argument.text, argument.text.strip())):
            if any(map(self._is_sensitive, _spellings(text, bases))):
                yield self._denied(argument, text)
            elif not URL.match(text) and could_be_sensitive(pattern_outline(text)):
                yield self._asked(argument, text)

    def _judge_command(self, argument: Argument, folders: Sequence[str]) -> Iterator[Verdict]:
        try:
            commands = read_line(argument.text).commands
        except ToolError as error:
            if argument.sure:
                yield unreadable(argument.place, error, rule=self.name, where=self.where)
            return
        bases = self._bases([*folders, *_folders(commands)][:MAX_FOLDERS])
        for word in dict.fromkeys(_words(commands)):
            if any(self._names_sensitive(text, bases) for text in _texts(word)):
                yield self._denied(argument, word.text)
            elif not word.certain and any(map(_may_be_sensitive, word.outlines)):
                yield self._asked(argument, word.text)
        for word in dict.fromkeys(word for command in commands for word in _opened(command)):
            if any(map(_may_be_anything, word.outlines)):
                yield self._asked(argument, word.text)

    def _names_sensitive(self, text: str, bases: Sequence[str]) -> bool:
        """Whether a word, a value in it or a piece of code in it names a file of the list."""
        if any(self._is_sensitive(spelling) for whole in _wholes(text) for spelling in _spellings(whole, bases)):
            return True
        for piece in _pieces(text):
            found = [spelling for spelling in _spellings(piece, bases) if self._is_sensitive(spelling)]
            # `secrets.token_hex()` and `.key` are ordinary code, so such a name counts only if it is unmistakable or exists.
            if any(is_unmistakable(spelling, root=self.workspace) or os.path.lexists(spelling) for spelling in found):
                return True
            if found and "/" in piece:
                return True
        return False

    def _is_sensitive(self, path: str) -> bool:
        return is_sensitive(path, root=self.workspace, opened=self.opened)

    def _bases(self, folders: Iterable[str]) -> list[str]:
        """The folders that a relative path may start at: each relative to the workspace, and each relative to the one before."""
        bases = [self.workspace]
        for folder in folders:
            opened = expand_home(folder)
            bases += [posixpath.join(bases[-1], opened), posixpath.join(self.workspace, opened)]
        return list(dict.fromkeys(bases))

    def _denied(self, argument: Argument, value: str) -> Verdict:
        reason = f"rule {self.name!r}: {argument.place} names the sensitive file {value[:200]!r}"
        return deny(reason, rule=self.name, where=self.where, cure=CURE, details={"argument": argument.place})

    def _asked(self, argument: Argument, value: str) -> Verdict:
        reason = f"rule {self.name!r}: {value[:200]!r} in {argument.place} may come to a sensitive file"
        return confirm(reason, rule=self.name, where=self.where, cure="confirm it, or name the files one by one")


def _texts(word: Word) -> Iterator[str]:
    """The text of the word, and every value that its variables are known to have."""
    yield word.text
    yield from (
        outline for outline in word.outlines if outline != word.text and UNKNOWN not in outline and GLOB not in outline
    )


def _may_be_sensitive(outline: str) -> bool:
    return any(map(could_be_sensitive, (*_wholes(outline), *_pieces(outline))))


def _may_be_anything(outline: str) -> bool:
    value = OPTION.sub("", outline, count=1) if outline.startswith(("-", "+")) else outline
    return any(map(is_anything, (value, value.partition("=")[2], value.lstrip("@"))))


def _opened(command: Command) -> Iterator[Word]:
    """The words with expansions that the command may open as files."""
    yield from (
        found.target for found in command.redirections if found.target.computed and found.operator not in NO_FILE
    )
    if command.name in OPENS_NOTHING:
        return
    messages = MESSAGE_OPTIONS.get(command.name, frozenset())
    for before, word in pairwise(command.words):
        if word.computed and before.text not in messages and word.text.partition("=")[0] not in messages:
            yield word


def _spellings(text: str, bases: Sequence[str]) -> list[str]:
    if URL.match(text):
        return []
    return list(spellings(text, bases))


def _wholes(text: str) -> Iterator[str]:
    """The most likely file names in a word: the word itself, or the value of `--option=`, `name=` or `@`."""
    value = OPTION.sub("", text, count=1) if text.startswith(("-", "+")) else text
    for whole in (value, value.partition("=")[2], value.lstrip("@")):
        if ("." in whole or "/" in whole) and DELIMITERS.search(whole) is None:
            yield whole


def _pieces(text: str) -> Iterator[str]:
    """Everything else in a word that could be a file name, as in `python -c "open('.env')"`."""
    for piece in CODE_DELIMITERS.split(text) if not URL.match(text) else ():
        yield piece.strip()
        yield from (part for part in piece.split() if "/" in part)


def _words(commands: Iterable[Command]) -> Iterator[Word]:
    for command in commands:
        yield from _judged_words(command)
        yield from (assignment.value for assignment in command.assignments)
        yield from (found.target for found in command.redirections if found.operator not in {"<<", "<<-"})


def _judged_words(command: Command) -> Iterator[Word]:
    """The words of a command without those that exclude files, and without patterns and names that are not opened."""
    if command.words[:2] == CHECKS_IGNORED:
        return
    pattern = _grep_pattern(command)
    options = EXCLUDE_OPTIONS.get(command.name, frozenset())
    texts = ["", "", *(word.text for word in command.words), ""]
    for position, word in enumerate(command.words):
        negation, before, text, after = texts[position : position + 4]
        is_left_out = before in options or text.partition("=")[0] in options
        is_found = before not in FIND_TESTS or not (negation in {"!", "-not"} or after == "-prune")
        if not is_left_out and (is_found or command.name != "find") and word is not pattern:
            yield word


def _grep_pattern(command: Command) -> Word | None:
    """What a grep with plain switches searches for; None if that is not certain."""
    options, operands = split_words(command.arguments)
    is_plain = all(word.certain and GREP_SWITCHES.fullmatch(word.text) for word in options)
    return operands[0] if command.name in GREPS and is_plain and operands and operands[0].certain else None


def _folders(commands: Iterable[Command]) -> Iterator[str]:
    """The folders that the commands change to."""
    for command in commands:
        if command.name in CHANGES_FOLDER:
            yield from (word.text for word in command.arguments if not word.text.startswith("-"))
        for option, value in zip(command.words, command.words[1:], strict=False):
            if option.text in FOLDER_OPTIONS:
                yield value.text
            elif option.text.startswith(("--directory=", "--chdir=", "--cwd=")):
                yield option.text.partition("=")[2]
