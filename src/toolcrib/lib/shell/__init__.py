"""Shell commands, read without running them. Here: what a line consists of: words, assignments, redirections, commands."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from toolcrib.model.errors import Kind, ToolError

# In outlines only; a command line holds no control characters.
UNKNOWN = "\0"
GLOB = "\x03"


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word as far as it is known: `text` is the best guess.

    `outlines` are all that it can come to, with `UNKNOWN` for what only the shell knows and `GLOB` for a pattern; `computed`
    says that it has expansions.
    """

    text: str
    outlines: tuple[str, ...]
    computed: bool = False

    @property
    def certain(self) -> bool:
        """Whether the text is exactly what the program will get."""
        return not self.computed and self.outlines == (self.text,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A variable that is given a value: a prefix of a command, a statement, an element of an array, a value of a loop."""

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

    `piped` says that a pipe may feed it. A `guessed` one is read from the words of a command that runs its words, and may be
    none.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    piped: bool = False
    guessed: bool = False

    @property
    def name(self) -> str:
        """The last part of the command word, or nothing."""
        return posixpath.basename(self.words[0].text) if self.words else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the command word."""
        return self.words[1:]


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The commands of a line; `unclear` names the constructs that are not read for certain."""

    commands: tuple[Command, ...]
    unclear: tuple[str, ...]


def plain(text: str) -> Word:
    """A word that is exactly this text."""
    return Word(text=text, outlines=(text,))


def unknown() -> Word:
    """A word of which only the shell knows what it comes to."""
    return Word(text="", outlines=(UNKNOWN,), computed=True)


def unreadable(why: str) -> ToolError:
    """The refusal of a line of which not even the commands can be told apart."""
    return ToolError(Kind.VALIDATION, f"the command cannot be parsed: {why}; write it plainer, or as several calls")
