"""Parse the parameters of an SQL statement, and rewrite it with the placeholders of the database.

A parameter is written `:city`. It becomes a placeholder that the database binds, so no value is ever part of the text. The
checks here find mistakes of the author early; the database itself enforces that a call changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_STATEMENT = 50_000
MAX_VARIANTS = 64
# The characters of all statements that the choices of one tool make, which are parsed when it is stored.
MAX_TOGETHER = 200_000
SILENT = frozenset({"blank", "remark", "comment"})
JSON_ITEMS = "SELECT value FROM json_each(?{})"
READS = frozenset({"select", "values", "table", "with"})
WRITES = frozenset({"insert", "update", "delete", "replace", "merge"})
# Each row: what it is called, and how it begins; the first that fits counts.
_TOKENS = {
    "blank": r"\s++",
    "remark": r"--[^\n]*+",
    "comment": r"/\*",
    "escaped": r"[eE]'(?:[^'\\]|''|\\.)*+'",
    "text": r"(?:[uU]&|[bBxXnN])?'(?:[^']|'')*+'",
    "quoted": r'"(?:[^"]|"")*+"',
    "bracketed": r"`(?:[^`]|``)*+`|\[[^\]]*+\]",
    "dollars": r"\$(?:[^\W\d]\w*+)?\$",
    "cast": r"::",
    "parameter": r":(?P<name>[^\W\d]\w*)",
    "foreign": r"\?\d*|\$\w+|@\w+",
    "word": r"[^\W\d][\w$]*+",
    "number": r"\d[\w.]*+",
    "open": r"['\"`]",
    "sign": r".",
}
# Where the two databases read a text differently.
_ABSENT = {"sqlite": ("escaped", "dollars"), "postgresql": ("bracketed",)}


class Dialect(StrEnum):
    """The databases that statements are written for."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


_PATTERNS = {
    dialect: re.compile(
        "|".join(f"(?P<{name}>{text})" for name, text in _TOKENS.items() if name not in _ABSENT[dialect]), re.DOTALL
    )
    for dialect in Dialect
}
_COMMENT = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A piece of a statement; `text` of a parameter is its name."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The argument of a numbered placeholder, as one value or, after IN, as a list of values.

    PostgreSQL cannot infer a type where a value is only compared with NULL, so such a place stands apart.
    """

    name: str
    is_list: bool = False
    is_null_test: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as the database takes it, and the argument of each of its numbered places."""

    text: str
    places: tuple[Placeholder, ...]


def find_parameters(text: str, dialect: Dialect) -> list[str]:
    """The names of the parameters, each once, in their order."""
    return [*dict.fromkeys(token.text for token in read_tokens(text, dialect) if token.kind == "parameter")]


def read_tokens(text: str, dialect: Dialect) -> list[Token]:
    """The pieces of a statement, comments and blanks left out; raises ToolError for what cannot be read."""
    return [token for token in _tokens(text, dialect) if token.kind not in SILENT]


def check_statement(text: str, dialect: Dialect, *, write: bool) -> str:
    """Why a statement cannot be that of a tool, with the cure; empty if it can."""
    if len(text) > MAX_STATEMENT:
        return f"has {len(text)} characters, the limit is {MAX_STATEMENT}; shorten it"
    try:
        tokens = read_tokens(text, dialect)
    except ToolError as problem:
        return problem.message
    while tokens and tokens[-1] == ("sign", ";"):
        tokens.pop()
    if not tokens:
        return "holds no statement; write one, such as SELECT name FROM customers WHERE city = :city"
    if ("sign", ";") in tokens:
        return "holds several statements; write one statement for each tool"
    for token in tokens:
        if token.kind == "foreign" and not (dialect is Dialect.POSTGRESQL and token.text[0] in "?@"):
            return f"{token.text} is not a parameter; write its name after a colon, such as :city"
    return _check_verb(tokens, write=write)


def _check_verb(tokens: Sequence[Token], *, write: bool) -> str:
    first = next((token for token in tokens if token != ("sign", "(")), tokens[0])
    verb = first.text.lower()
    # A statement may change something in other ways, too, which the database refuses.
    if verb in WRITES and not write:
        return f'{verb.upper()} changes the database; write "write": true'
    if verb not in READS | WRITES:
        known = ", ".join(sorted(word.upper() for word in READS | WRITES))
        return f"begins with {first.text[:40]}; a tool runs one of {known}"
    return ""


def compile_statement(
    text: str, dialect: Dialect, *, choices: Mapping[str, Mapping[str, str]], lists: frozenset[str]
) -> dict[tuple[str, ...], Statement]:
    """The statement for each combination of choices; `lists` are the arguments that hold a list."""
    return {keys: _write(filled, dialect, lists) for keys, filled in fill_choices(text, dialect, choices).items()}


def fill_choices(text: str, dialect: Dialect, choices: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, ...], str]:
    """The text for each combination of choices, which are in the order of their names."""
    names = sorted(choices)
    return {
        keys: _fill(text, dialect, {name: choices[name][key] for name, key in zip(names, keys, strict=True)})
        for keys in product(*(choices[name] for name in names))
    }


def count_variants(choices: Mapping[str, Mapping[str, str]]) -> int:
    """How many statements the choices make."""
    count = 1
    for pieces in choices.values():
        count *= max(1, len(pieces))
    return count


def _fill(text: str, dialect: Dialect, pieces: Mapping[str, str]) -> str:
    """The statement with a piece of SQL, which its author wrote, in place of each choice."""
    if not pieces:
        return text
    return "".join(
        f" {pieces[token.text]} " if token.kind == "parameter" and token.text in pieces else _spell(token)
        for token in _tokens(text, dialect)
    )


def _write(text: str, dialect: Dialect, lists: frozenset[str]) -> Statement:
    places: list[Placeholder] = []
    written: list[str] = []
    tokens = list(_tokens(text, dialect))
    for index, token in enumerate(tokens):
        if token.kind != "parameter":
            written.append(_spell(token))
            continue
        after_in = token.text in lists and _stands_after_in(tokens, index, written, dialect)
        before_is = dialect is Dialect.POSTGRESQL and not after_in and _stands_before_is(tokens, index)
        place = Placeholder(token.text, after_in, before_is)
        if place not in places:
            places.append(place)
        number = places.index(place) + 1
        if dialect is Dialect.POSTGRESQL:
            written.append(f"${number}::text" if before_is else f"${number}")
        else:
            written.append(f"?{number}" if not after_in else JSON_ITEMS.format(number))
    return Statement("".join(written).rstrip().rstrip(";"), tuple(places))


def _stands_after_in(tokens: Sequence[Token], index: int, written: list[str], dialect: Dialect) -> bool:
    """Whether the parameter is the only item of IN (…); for PostgreSQL this IN becomes a comparison with an array."""
    before = [place for place in range(index) if tokens[place].kind not in SILENT]
    after = next((token for token in tokens[index + 1 :] if token.kind not in SILENT), None)
    if after != ("sign", ")") or len(before) < 2:  # noqa: PLR2004 - IN and its bracket
        return False
    word, bracket = before[-2], before[-1]
    if tokens[bracket] != ("sign", "(") or tokens[word].text.lower() != "in" or tokens[word].kind != "word":
        return False
    if dialect is Dialect.POSTGRESQL:
        negated = before[-3] if len(before) > 2 and tokens[before[-3]].text.lower() == "not" else None  # noqa: PLR2004 - see above
        written[word] = "= ANY" if negated is None else "<> ALL"
        if negated is not None:
            written[negated] = ""
    return True


def _stands_before_is(tokens: Sequence[Token], index: int) -> bool:
    """Whether a value is compared with NULL: :name IS NULL, :name IS NOT NULL."""
    after = (token.text.lower() for token in tokens[index + 1 :] if token.kind not in SILENT)
    words = [*islice(after, 3)]
    return words[:2] == ["is", "null"] or words == ["is", "not", "null"]


def _spell(token: Token) -> str:
    return f":{token.text}" if token.kind == "parameter" else token.text


def _tokens(text: str, dialect: Dialect) -> Iterator[Token]:
    pattern, place = _PATTERNS[dialect], 0
    while place < len(text):
        found = pattern.match(text, place)
        if found is None:  # cannot be: the last kind is any character
            raise ToolError(Kind.INTERNAL, f"character {place} cannot be read")
        kind, end = found.lastgroup or "", found.end()
        if kind == "comment":
            end = _end_of_comment(text, place, nested=dialect is Dialect.POSTGRESQL)
        elif kind == "dollars":
            closing = text.find(found[0], end)
            end = closing + len(found[0]) if closing >= 0 else 0
        # What is not closed ends the reading at once: to look for its end from each such sign would take quadratic time.
        if kind == "open" or end < found.end() or (dialect is Dialect.SQLITE and found[0] == "["):
            raise ToolError(Kind.VALIDATION, f"a quote at character {place + 1} is not closed; close it")
        yield Token(kind, found["name"] if kind == "parameter" else text[place:end])
        place = end


def _end_of_comment(text: str, place: int, *, nested: bool) -> int:
    depth = 0
    for mark in _COMMENT.finditer(text, place):
        if mark[0] == "*/":
            depth -= 1
        elif nested or depth == 0:
            depth += 1
        if depth == 0:
            return mark.end()
    raise ToolError(Kind.VALIDATION, f"a comment at character {place + 1} is not closed; close it with */")
