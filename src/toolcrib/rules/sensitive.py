"""Keys, passwords and the crib's own folder are nobody's business."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.model.verdict import Verdict, confirm, deny
from toolcrib.pure.schema.words import holds_text
from toolcrib.pure.shell import Command, Word, read_commands
from toolcrib.rules.arguments import URL, Argument, Role, last_part, read_arguments
from toolcrib.rules.paths import could_be_sensitive, expand_home, is_sensitive, is_unmistakable, spellings
from toolcrib.rules.verdicts import strictest_of, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool

CURE = "name another file; an operator may leave the rule out with rules_off = ['sensitive_files'] in toolcrib.toml"
MAX_FOLDERS = 4
DELIMITERS = re.compile(r"[=@,:;\"'`()<>|&{}\[\]\s]+")
CODE_DELIMITERS = re.compile(r"[=@,:;\"'`()<>|&{}\[\]]+")
OPTION = re.compile(r"-\w(?=[/~.])|--?[\w-]*=?|\+")
CHANGES_FOLDER = frozenset({"cd", "pushd"})
FOLDER_OPTIONS = frozenset({"-C", "-D", "--chdir", "--directory", "--cwd"})
FOLDER_NAMES = frozenset({"cwd", "workdir", "dir", "directory", "root"})
EXCLUDING = frozenset({"grep", "egrep", "fgrep", "rsync", "tar", "du", "find", "tree", "diff"})
EXCLUDE_OPTIONS = frozenset({"--exclude", "--exclude-dir"})
FIND_TESTS = frozenset({"-path", "-wholename", "-ipath", "-name", "-iname"})


class SensitiveFiles:
    """Denies a path or command that names a sensitive file, and asks about one that might.

    Relative paths start at `workspace`, at a folder that the call names, or where the command goes with `cd`.
    """

    name = "sensitive_files"

    def __init__(self, workspace: Path, *, where: str = "built-in rule", cure: str = CURE) -> None:
        self.workspace = os.path.realpath(workspace)
        self.where = where
        self.cure = cure

    def concerns(self, tool: Tool) -> bool:
        """Whether a call of the tool can hold a path at all."""
        return holds_text(tool.parameters)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge every path and every word of every command."""
        return strictest_of(self._verdicts(read_arguments(tool, call)))

    def _verdicts(self, arguments: Sequence[Argument]) -> Iterator[Verdict]:
        folders = [argument.text for argument in arguments if last_part(argument.name) in FOLDER_NAMES]
        bases = self._bases(folders[:MAX_FOLDERS])
        for argument in arguments:
            if argument.role is Role.COMMAND:
                yield from self._judge_command(argument, folders)
            elif argument.role is Role.PATH and any(map(is_sensitive, _spellings(argument.text, bases))):
                yield self._denied(argument, argument.text)

    def _judge_command(self, argument: Argument, folders: Sequence[str]) -> Iterator[Verdict]:
        try:
            commands = read_commands(argument.text)
        except ToolError as error:
            yield unreadable(argument.place, error, rule=self.name, where=self.where)
            return
        bases = self._bases([*folders, *_folders(commands)][:MAX_FOLDERS])
        for word in dict.fromkeys(_words(commands)):
            if _names_sensitive(word, bases):
                yield self._denied(argument, word.text)
            elif not word.certain and any(map(could_be_sensitive, (*_wholes(word.shape), *_pieces(word.shape)))):
                yield self._asked(argument, word.text)

    def _bases(self, folders: Iterable[str]) -> list[str]:
        """Where a relative path may start: each folder from the workspace, and each from the one before it."""
        bases = [self.workspace]
        for folder in folders:
            opened = expand_home(folder)
            bases += [posixpath.join(bases[-1], opened), posixpath.join(self.workspace, opened)]
        return list(dict.fromkeys(bases))

    def _denied(self, argument: Argument, value: str) -> Verdict:
        reason = f"rule {self.name!r}: {argument.place} names the sensitive file {value[:200]!r}"
        return deny(reason, rule=self.name, where=self.where, cure=self.cure, details={"argument": argument.place})

    def _asked(self, argument: Argument, value: str) -> Verdict:
        reason = f"rule {self.name!r}: {value[:200]!r} in {argument.place} may come to a sensitive file"
        return confirm(reason, rule=self.name, where=self.where, cure="confirm it, or name the files one by one")


def _names_sensitive(word: Word, bases: Sequence[str]) -> bool:
    """Whether a word, a value in it or a piece of code in it names a file of the list."""
    if any(is_sensitive(spelling) for whole in _wholes(word.text) for spelling in _spellings(whole, bases)):
        return True
    for piece in _pieces(word.text):
        found = [spelling for spelling in _spellings(piece, bases) if is_sensitive(spelling)]
        # `secrets.token_hex()` and `.key` are ordinary code: what only looks like a file must be one.
        if any(is_unmistakable(spelling) or os.path.lexists(spelling) for spelling in found):
            return True
        if found and "/" in piece:
            return True
    return False


def _spellings(text: str, bases: Sequence[str]) -> list[str]:
    if URL.match(text):
        return []
    return list(spellings(text, bases))


def _wholes(text: str) -> Iterator[str]:
    """The texts in a word that are file names if anything is: the word itself, or the value of `--option=`, `name=` or `@`."""
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
    """The words but those that say which files to leave out."""
    before: tuple[str, str] = ("", "")
    for word in command.words:
        option = word.text.partition("=")[0]
        leaves_out = option in EXCLUDE_OPTIONS or before[1] in EXCLUDE_OPTIONS
        not_found = before[1] in FIND_TESTS and before[0] in {"!", "-not"}
        if command.name not in EXCLUDING or not (leaves_out or not_found):
            yield word
        before = (before[1], word.text)


def _folders(commands: Iterable[Command]) -> Iterator[str]:
    """Where the commands go before they open anything."""
    for command in commands:
        if command.name in CHANGES_FOLDER:
            yield from (word.text for word in command.arguments if not word.text.startswith("-"))
        for option, value in zip(command.words, command.words[1:], strict=False):
            if option.text in FOLDER_OPTIONS:
                yield value.text
            elif option.text.startswith(("--directory=", "--chdir=", "--cwd=")):
                yield option.text.partition("=")[2]
