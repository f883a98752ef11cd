"""Deny calls that contain a pattern of the operator."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from toolcrib.core.rules import strictest_of, unreadable
from toolcrib.features.safety_rules.arguments import Argument, read_arguments
from toolcrib.features.safety_rules.roles import Role
from toolcrib.features.safety_rules.settings import RulesSettings
from toolcrib.lib.schema_structure import holds_text
from toolcrib.lib.shell.reader import read_line
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Verdict, confirm, deny

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.lib.shell import Command
    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


def rules_of_settings(resources: Resources) -> list[SafetyRule]:
    """The rules that the operator wrote in the settings."""
    where = resources.settings.where("rules")
    return [
        SafetyRule(
            name=rule.name,
            forbidden_patterns=rule.forbidden_patterns,
            include_text=rule.include_text,
            where=where,
        )
        for rule in resources.settings.table(RulesSettings).rules
    ]


class SafetyRule:
    """Denies a call whose tool name, commands, paths or other values contain a forbidden pattern.

    Patterns are plain text, compared without case. One that begins or ends with a letter, digit or `_` matches only
    where a word begins or ends: `nc` is not in `sync`. In a command it also matches by name and options, so `rm -rf`
    is found in `/bin/rm -f -r x`. Free text, such as the content of a file, is only searched with `include_text`.
    """

    def __init__(
        self,
        name: str,
        forbidden_patterns: Iterable[str],
        *,
        include_text: bool = False,
        where: str = "a rule of the host program",
    ) -> None:
        self.name = name
        self.patterns = tuple(_Pattern(text, name) for text in _several(forbidden_patterns, name))
        self.include_text = include_text
        self.where = where

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool's name is forbidden or a call of it can contain text."""
        return holds_text(tool.parameters) or any(pattern.is_in_name(tool.name) for pattern in self.patterns)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Search the name, commands, paths and values of the call for every pattern."""
        return strictest_of(self._verdicts(tool, call))

    def _verdicts(self, tool: Tool | None, call: Call) -> Iterator[Verdict]:
        names = {call.name, call.name if tool is None else tool.name}
        for pattern in self.patterns:
            if any(pattern.is_in_name(name) for name in names):
                yield self._denied(pattern, f"the tool {call.name[:80]!r}")
        for argument in read_arguments(tool, call):
            if argument.role is Role.COMMAND:
                yield from self._judge_command(argument)
            elif argument.role is not Role.TEXT or self.include_text:
                yield from self._judge_text(argument)

    def _judge_text(self, argument: Argument) -> Iterator[Verdict]:
        texts = [argument.text]
        if argument.role is Role.PATH:
            texts.append(posixpath.normpath(argument.text.replace("\\", "/")))
        for pattern in self.patterns:
            if any(pattern.is_in(text) for text in texts):
                yield self._denied(pattern, f"{argument.place} {argument.text[:200]!r}")

    def _judge_command(self, argument: Argument) -> Iterator[Verdict]:
        try:
            commands = read_line(argument.text).commands
        except ToolError as error:
            if argument.sure:
                yield unreadable(argument.place, error, rule=self.name, where=self.where)
            return
        spoken = [" ".join(word.text for word in command.words) for command in commands]
        for pattern in self.patterns:
            if any(map(pattern.is_in, (argument.text, *spoken))) or any(map(pattern.is_command, commands)):
                yield self._denied(pattern, f"{argument.place} {argument.text[:200]!r}")
        for command in commands:
            if command.words and not command.words[0].certain:
                reason = f"rule {self.name!r}: {argument.place} computes the name of a command"
                yield confirm(reason, rule=self.name, where=self.where, cure="confirm it, or write the name out")

    def _denied(self, pattern: _Pattern, what: str) -> Verdict:
        return deny(
            f"rule {self.name!r} forbids {pattern.text!r}, found in {what}",
            rule=self.name,
            where=self.where,
            cure=f"take {pattern.text!r} out of forbidden_patterns to allow it",
        )


class _Pattern:
    """A forbidden text, prepared once."""

    def __init__(self, text: object, rule: str) -> None:
        if not isinstance(text, str) or not text.strip():
            raise ToolError(Kind.VALIDATION, f"rule {rule!r}: a forbidden pattern is empty; write the text to look for")
        self.text = text
        self.folded = text.casefold()
        name, *rest = text.split()
        self.command = posixpath.basename(name)
        self.features = _features(rest)

    def is_in(self, text: str) -> bool:
        """Whether the text contains the pattern."""
        return _holds(text.casefold(), self.folded)

    def is_in_name(self, name: str) -> bool:
        """Whether a tool's name contains it; dashes and underscores are equal."""
        return _holds(name.casefold().replace("-", "_"), self.folded.replace("-", "_"))

    def is_command(self, command: Command) -> bool:
        """Whether it is this command: the same name, and at least the same options and operands."""
        if not command.words or command.name != self.command:
            return False
        return self.features <= _features(word.text for word in command.arguments)


def _holds(text: str, pattern: str) -> bool:
    """Whether the pattern occurs at word boundaries."""
    start = text.find(pattern)
    while start >= 0:
        if not _is_inside_a_word(text, start) and not _is_inside_a_word(text, start + len(pattern)):
            return True
        start = text.find(pattern, start + 1)
    return False


def _is_inside_a_word(text: str, position: int) -> bool:
    return 0 < position < len(text) and all(
        letter == "_" or letter.isalnum() for letter in text[position - 1 : position + 1]
    )


def _features(words: Iterable[str]) -> frozenset[str]:
    """Options, letter by letter, and operands: `-rf x` is `-r`, `-f` and `x`."""
    found: set[str] = set()
    for word in words:
        is_letters = word.startswith("-") and not word.startswith("--")
        found.update((f"-{letter}" for letter in word[1:]) if is_letters else (word,))
    return frozenset(found)


def _several(patterns: Iterable[str], rule: str) -> tuple[str, ...]:
    if isinstance(patterns, str):
        raise ToolError(Kind.VALIDATION, f"rule {rule!r}: forbidden_patterns is one text; write a list of texts")
    return tuple(patterns)
