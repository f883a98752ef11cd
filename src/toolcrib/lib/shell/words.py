"""Turn the spelling of a shell word into what it says: quotes, backslashes, globs, braces and expansions."""

from __future__ import annotations

import math
import posixpath
import re
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tree_sitter import Node

    Values = Mapping[str, set[str]]

UNKNOWN = "\0"
GLOB = "\x03"  # in outlines only; a command line holds no control characters
CONTINUATION = re.compile(rb"(?:\\\n)*")
GLOB_LETTERS = frozenset("*?[")
OPEN_BRACE, CLOSE_BRACE = "\x01", "\x02"  # unquoted braces while a word is put together; a command line holds neither
BRACES = re.compile(f"{OPEN_BRACE}[^{OPEN_BRACE}{CLOSE_BRACE}]*(?:,|\\.\\.)[^{OPEN_BRACE}{CLOSE_BRACE}]*{CLOSE_BRACE}")
GLOBS = re.compile(r"[*?\[]")
BRACKETS = re.compile(f"{GLOB}[^/{GLOB}{UNKNOWN}\\]]*\\]")  # what a glob letter leaves of `[a-z]`
IN_QUOTES = re.compile(r'\\([$`"\\\n])')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
NAMED_ESCAPES = {"n": "\n", "t": "\t", "e": "\x1b", "E": "\x1b", "a": "\a", "b": "\b", "f": "\f", "r": "\r", "v": "\v"}
MAX_OUTLINES = 32
MAX_GUESS = 16_384  # variables that hold each other twice grow without end
# What the shell itself sets; a place of its own, or a number.
PRESET = {
    "HOME": "~",
    "PWD": ".",
    **dict.fromkeys(["?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "PPID"], "0"),
}
PIPE = "/dev/fd/63"
FIXED = {"process_substitution": PIPE, "arithmetic_expansion": "0"}
EXPANSIONS = frozenset({"command_substitution", "brace_expression", "subshell"})


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
    """A word whose value is unknown before it runs."""
    return Word(text=text, shape=UNKNOWN, computed=True, source=source)


def unreadable(why: str) -> ToolError:
    """The refusal of a line that cannot be read with certainty."""
    return ToolError(Kind.VALIDATION, f"the command cannot be parsed: {why}; write it plainer, or as several calls")


class Speller:
    """Puts words together from the nodes of a syntax tree; `values` are the outlines of all that a variable is ever given."""

    def __init__(self, code: bytes, variables: Mapping[str, Word], values: Values) -> None:
        self.code = code
        self.variables = variables
        self.values = values

    def text(self, node: Node) -> str:
        """The code of a node; offsets count bytes, so the bytes are cut and not the text."""
        return self.code[node.start_byte : node.end_byte].decode()

    def word(self, nodes: Sequence[Node]) -> Word:
        """The word that these nodes spell together."""
        draft = _Draft()
        for node in nodes:
            self._spell(node, draft)
        return draft.finish()

    def _spell(self, node: Node, draft: _Draft) -> None:
        if node.type == "raw_string":
            draft.literal(self.text(node)[1:-1])
        elif node.type == "ansi_c_string":
            draft.escaped(self.text(node)[2:-1])
        elif node.type in {"string", "translated_string"}:
            self._spell_quoted(node, draft)
        elif node.type in {"simple_expansion", "expansion"}:
            self._spell_variable(node, draft)
        elif node.type == "``":
            draft.expansion("", source="")
        elif node.type in FIXED:
            draft.expansion(self.text(node), source=self.text(node), values=(FIXED[node.type],))
        elif node.type in EXPANSIONS:
            draft.expansion(self.text(node), source=self.text(node))
        elif node.type in {"concatenation", "command_name"}:
            self.check_touching(node.children)
            for child in node.children:
                self._spell(child, draft)
        else:
            draft.bare(self.text(node))

    def check_touching(self, nodes: Sequence[Node]) -> None:
        """Refuse a word with a gap in it, as the grammar makes one out of `a ``` and the line after it."""
        for node, following in pairwise(nodes):
            if CONTINUATION.fullmatch(self.code[node.end_byte : following.start_byte]) is None:
                raise unreadable("a word has a gap in it")

    def _spell_quoted(self, node: Node, draft: _Draft) -> None:
        string = node if node.type == "string" else node.children[-1]
        position = string.start_byte + 1
        for child in string.children[1:-1]:
            draft.quoted(self.code[position : child.start_byte].decode())
            if child.type == "string_content":
                draft.quoted(self.text(child))
            else:
                self._spell(child, draft)
            position = child.end_byte
        draft.quoted(self.code[position : string.end_byte - 1].decode())

    def _spell_variable(self, node: Node, draft: _Draft) -> None:
        names = [child for child in node.children if child.is_named]
        known = self.variables.get(self.text(names[0])) if len(names) == 1 else None
        simple = node.type == "simple_expansion" or len(node.children) == 3  # noqa: PLR2004  `${`, the name, `}`
        if known is not None and simple:
            draft.expansion(known.text, source=known.source, values=self._values(self.text(names[0])))
        else:
            spelled = self.text(node)
            if node.type == "simple_expansion" and spelled.split() != [spelled]:
                raise unreadable("a blank follows a dollar sign")  # the grammar looks for the name behind the blank
            values = self._values(self.text(names[0])) if simple and len(names) == 1 else (UNKNOWN,)
            draft.expansion(spelled, source=spelled, values=values)

    def _values(self, name: str) -> tuple[str, ...]:
        """All that a variable can hold, whole and word by word, because the shell splits what it expands."""
        if name not in self.values:
            return (PRESET.get(name, UNKNOWN),)
        whole = {GLOBS.sub(GLOB, value) for value in self.values[name]}
        return tuple(sorted({part for value in whole for part in (value, *value.split())}))


class _Draft:
    """A word while it is put together."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.shape: list[str] = []
        self.values: list[tuple[str, ...]] = []
        self.sources: list[str] = []
        self.computed = False

    def literal(self, text: str) -> None:
        self._add(text, text, (text,))

    def quoted(self, text: str) -> None:
        self.literal(IN_QUOTES.sub(lambda match: match[1].replace("\n", ""), text))

    def escaped(self, text: str) -> None:
        if "\\" in text:
            self.computed = True
        said = ESCAPE.sub(_escape, text)
        shape = said if said.replace("\n", " ").replace("\t", " ").isprintable() else UNKNOWN
        self._add(said, shape, (shape,))

    def bare(self, text: str) -> None:
        letters = iter(text)
        for letter in letters:
            if letter == "\\":
                self.literal(next(letters, "\\").replace("\n", ""))
                continue
            if letter in " \t\n":
                raise unreadable("a backslash begins a line")  # the grammar counts such a line to the one before
            shape = _bare_shape(letter)
            self._add(letter, shape, (GLOB if shape == UNKNOWN else shape,))

    def expansion(self, guess: str, *, source: str, values: tuple[str, ...] = (UNKNOWN,)) -> None:
        self.computed = True
        self._add(guess, UNKNOWN, values)
        self.sources.append(source)

    def _add(self, said: str, shape: str, values: tuple[str, ...]) -> None:
        self.said.append(said)
        self.shape.append(shape)
        self.values.append(values)

    def finish(self) -> Word:
        if sum(map(len, self.said)) > MAX_GUESS:
            raise unreadable(f"a word comes to more than {MAX_GUESS} letters")
        shape, braces = _without_braces("".join(self.shape))
        return Word(
            text="".join(self.said),
            shape=shape,
            computed=self.computed or braces,
            source=" ".join(self.sources),
            guesses=self._outlines(),
        )

    def _outlines(self) -> tuple[str, ...]:
        longest = sum(max(map(len, values)) for values in self.values)
        if longest > MAX_GUESS or math.prod(map(len, self.values)) > MAX_OUTLINES:
            return (UNKNOWN,)
        spelled = (_without_braces("".join(parts))[0] for parts in product(*self.values))
        return tuple(dict.fromkeys(BRACKETS.sub(GLOB, outline) for outline in spelled))


def _bare_shape(letter: str) -> str:
    if letter in GLOB_LETTERS:
        return UNKNOWN
    return {"{": OPEN_BRACE, "}": CLOSE_BRACE}.get(letter, letter)


def _without_braces(shape: str) -> tuple[str, bool]:
    found = False
    while True:
        shape, count = BRACES.subn(UNKNOWN, shape)
        if not count:
            return shape.replace(OPEN_BRACE, "{").replace(CLOSE_BRACE, "}"), found
        found = True


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return _letter(int(code[1:], 16))
    if code[0] in "01234567":
        return _letter(int(code, 8))
    if code[0] == "c" and len(code) > 1:
        return _letter(ord(code[1]) & 0x1F)
    return NAMED_ESCAPES.get(code, code)


def _letter(number: int) -> str:
    surrogate = 0xD800 <= number <= 0xDFFF  # noqa: PLR2004  the range that is no letter of its own
    return UNKNOWN if surrogate or number > 0x10FFFF else chr(number)  # noqa: PLR2004  the last letter there is
