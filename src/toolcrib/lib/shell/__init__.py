"""Parse shell commands without running them. This module holds the nodes: words, assignments, redirections, commands."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from toolcrib.model.errors import Kind, ToolError

# These occur in outlines only: a command line with control characters is refused.
UNKNOWN = "\0"
GLOB = "\x03"


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word of a command; `text` is the best guess at its value.

    `outlines` are all its possible values, with `UNKNOWN` for a part that only the shell knows and `GLOB` for a pattern;
    `computed` says that it has expansions, and `splits` that an expansion may make several words of it.
    """

    text: str
    outlines: tuple[str, ...]
    computed: bool = False
    splits: bool = False

    @property
    def certain(self) -> bool:
        """Whether the program gets exactly this text."""
        return not self.computed and self.outlines == (self.text,)

    @property
    def may_be_option(self) -> bool:
        """Whether the program may get an option for it."""
        return self.splits or any(outline.startswith(("-", UNKNOWN, GLOB)) for outline in self.outlines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A value of a variable: from a prefix of a command, a statement, an element of an array, or a loop."""

    name: str
    value: Word


@dataclass(frozen=True, kw_only=True, slots=True)
class Redirection:
    """An operator and its target; a here-document has no target."""

    operator: str
    target: Word


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A simple command. Without words it is only assignments or redirections.

    `piped` says that its input may come from a pipe. A `guessed` command was read from the arguments of a command that runs
    its arguments, such as `xargs`, and may not be a command at all.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    piped: bool = False
    guessed: bool = False

    @property
    def name(self) -> str:
        """The last part of the path of the command; empty if it has no words."""
        return posixpath.basename(self.words[0].text) if self.words else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the command word."""
        return self.words[1:]

    @property
    def all_words(self) -> tuple[Word, ...]:
        """The words, with the values of assignments and the targets of redirections."""
        values = (given.value for given in self.assignments)
        return (*self.words, *values, *(found.target for found in self.redirections))


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The commands of a line; `unclear` names the constructs that the parser does not understand for certain."""

    commands: tuple[Command, ...]
    unclear: tuple[str, ...]


def plain(text: str) -> Word:
    """A word that is exactly this text."""
    return Word(text=text, outlines=(text,))


def unknown() -> Word:
    """A word whose value only the shell knows."""
    return Word(text="", outlines=(UNKNOWN,), computed=True, splits=True)


def unreadable(why: str) -> ToolError:
    """The error for a line that cannot be split into commands."""
    return ToolError(Kind.VALIDATION, f"the command cannot be parsed: {why}; write it plainer, or as several calls")
