"""What a command line is made of."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from toolcrib.model.errors import Kind, ToolError

UNKNOWN = "\0"
GLOB = "\x03"  # in outlines only; a command line holds no control characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word after quote removal.

    `text` is the best guess: an expansion keeps its spelling unless the line itself says what it holds. `shape` is the
    text with `UNKNOWN` in place of every stretch that only the shell knows, expansions and globs alike. `computed` says
    that there is an expansion. `source` is the code whose output the word holds, as far as it can be seen. `guesses` are
    the outlines of a word with expansions.
    """

    text: str
    shape: str
    computed: bool = False
    source: str = ""
    guesses: tuple[str, ...] = ()

    @property
    def outlines(self) -> tuple[str, ...]:
        """All that the word can come to: the shape with every value that the line gives its variables, globs as `GLOB`."""
        return self.guesses or (self.shape,)

    @property
    def certain(self) -> bool:
        """Whether the text is exactly what the program will get."""
        return not self.computed and UNKNOWN not in self.shape


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A variable that is given a value: a prefix of a command, a statement, an element of an array, a value of a loop."""

    name: str
    value: Word


@dataclass(frozen=True, kw_only=True, slots=True)
class Redirection:
    """An operator and its target; the target of a here-document is its body."""

    operator: str
    target: Word


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A simple command. Without words it is only assignments or redirections.

    `upstream` is the code whose output is piped into it, `functions` are the functions whose bodies it stands in, and
    `forked` says that the shell makes a process of its own for it: in a pipeline, in the background, in a subshell.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    upstream: str = ""
    functions: frozenset[str] = frozenset()
    forked: bool = False

    @property
    def name(self) -> str:
        """The last part of the command word, or nothing."""
        return posixpath.basename(self.words[0].text) if self.words else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the command word."""
        return self.words[1:]


def plain(text: str) -> Word:
    """A word that is exactly this text."""
    return Word(text=text, shape=text)


def unknown(text: str = "", source: str = "") -> Word:
    """A word that nobody can know before it runs."""
    return Word(text=text, shape=UNKNOWN, computed=True, source=source)


def unreadable(why: str) -> ToolError:
    """The refusal of a line that cannot be read with certainty."""
    return ToolError(Kind.VALIDATION, f"the command cannot be parsed: {why}; write it plainer, or as several calls")
