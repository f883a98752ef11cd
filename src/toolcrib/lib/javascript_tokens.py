"""Tokenise JavaScript and TypeScript in linear time, match brackets, and evaluate literals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, NUMBER, STRING, TEMPLATE, REGEX, SIGN = "name", "number", "string", "template", "regex", "sign"
MAX_DEPTH = 200
MAX_LITERALS = 5_000

_TOKEN = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<name>[A-Za-z_$#@\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)"
    r"|(?P<number>(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?)n?)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*(?:\"|\n|\Z)|'(?:[^'\\\n]|\\.)*(?:'|\n|\Z))"
    r"|(?P<sign>=>|\.\.\.|\?\?=|\?\?|\?\.(?!\d)|===|!==|==|!=|<=|>=|&&=|\|\|=|&&|\|\||\*\*|\+\+|--|[-+*%&|^]=|[{}()\[\];,<>+\-*/%&|^!~?:=.@#])",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_TEMPLATE_PART = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
# After one of these words a slash begins a regular expression.
_BEFORE_REGEX = frozenset(
    {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "instanceof", "else", "do", "await"}
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `value` is the content of a string."""

    kind: str
    text: str
    line: int
    value: str = ""


class NotLiteralError(Exception):
    """An expression that is not a literal, so that its value is only known when the code runs."""


class Tokens:
    """The tokens of a file; raises ToolError if its brackets do not match."""

    def __init__(self, text: str, place: str = "") -> None:
        self.place = place
        self.tokens: list[Token] = []
        self.comments: dict[int, str] = {}
        self._cut(text)
        self.partners = self._match()

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index] if 0 <= index < len(self.tokens) else Token(SIGN, "", 0)

    def texts(self, where: range) -> list[str]:
        """The texts of a range of tokens."""
        return [self.tokens[index].text for index in where if index < len(self.tokens)]

    def inside(self, opening: int) -> range:
        """The range between a bracket and its closing one."""
        return range(opening + 1, self.partners.get(opening, opening + 1))

    def split(self, where: range, sign: str = ",") -> list[range]:
        """Split a range at the signs that are not inside nested brackets; an empty last part is omitted."""
        parts, start, index = [], where.start, where.start
        while index < where.stop:
            if self[index].text == sign and self[index].kind == SIGN:
                parts.append(range(start, index))
                start = index + 1
            index = self.partners.get(index, index) + 1
        if start < where.stop:
            parts.append(range(start, where.stop))
        return parts

    def find(self, *words: str, where: range | None = None) -> Iterator[int]:
        """Every index at which this sequence of tokens begins."""
        tokens = self.tokens
        span = range(len(tokens)) if where is None else where
        first, count = words[0], len(words)
        for index in span:
            is_first = tokens[index].text == first and tokens[index].kind != STRING
            if is_first and all(self[index + more].text == words[more] for more in range(1, count)):
                yield index

    @cached_property
    def openings(self) -> dict[int, int]:
        """The index of the opening bracket of each closing one."""
        return {closing: opening for opening, closing in self.partners.items()}

    def literal(self, where: range, budget: list[int] | None = None) -> object:
        """The value of a literal expression; raises NotLiteralError."""
        left = budget if budget is not None else [MAX_LITERALS]
        left[0] -= 1
        if not len(where) or left[0] < 0:
            raise NotLiteralError
        first, last = self[where.start], where.stop - 1
        if len(where) == 1:
            return _simple(first)
        if first.text == "-" and len(where) == 2 and self[last].kind == NUMBER:  # noqa: PLR2004 - the sign and the number
            return -_number(self[last].text)
        if self.partners.get(where.start) != last:
            as_const = first.text in "[{" and self.texts(range(self.partners.get(where.start, last) + 1, where.stop))
            if as_const == ["as", "const"]:
                return self.literal(range(where.start, last - 1), left)
            raise NotLiteralError
        inner = self.inside(where.start)
        if first.text == "(":
            return self.literal(inner, left)
        if first.text == "[":
            return [self.literal(part, left) for part in self.split(inner)]
        return self._object(inner, left)

    def entries(self, where: range) -> dict[str, range]:
        """The members of an object literal, each with the range of its value, without methods and spreads."""
        found: dict[str, range] = {}
        if self[where.start].text != "{":
            return found
        for part in self.split(self.inside(where.start)):
            key = self[part.start]
            if key.kind not in {NAME, STRING, NUMBER}:
                continue
            name = key.value if key.kind == STRING else key.text
            if self[part.start + 1].text == ":" and len(part) > 1:
                found[name] = range(part.start + 2, part.stop)
            elif len(part) == 1:
                found[name] = part
        return found

    def _object(self, inner: range, left: list[int]) -> dict[str, object]:
        found: dict[str, object] = {}
        for part in self.split(inner):
            key = self[part.start]
            if key.kind not in {NAME, STRING, NUMBER} or self[part.start + 1].text != ":":
                raise NotLiteralError
            found[key.value if key.kind == STRING else key.text] = self.literal(range(part.start + 2, part.stop), left)
        return found

    def _cut(self, text: str) -> None:
        position = text.find("\n") if text.startswith("#!") else 0
        position, line, size = max(position, 0), 1, len(text)
        note = ""
        while position < size:
            letter = text[position]
            if letter == "`":
                position, token = self._template(text, position, line)
            elif letter == "/" and self._begins_regex() and (regex := _REGEX.match(text, position)):
                position, token = regex.end(), Token(REGEX, regex[0], line)
            else:
                found = _TOKEN.match(text, position)
                if found is None:
                    position += 1
                    continue
                position = found.end()
                kind, whole = found.lastgroup or SIGN, found[0]
                if kind in {"blank", "comment"}:
                    note = whole if kind == "comment" else note
                    line += whole.count("\n")
                    continue
                value = _unescape(whole[1:-1]) if kind == STRING else ""
                token = Token(kind, whole, line, value)
            if note:
                self.comments[len(self.tokens)] = note
                note = ""
            line += token.text.count("\n")
            self.tokens.append(token)

    def _template(self, text: str, position: int, line: int) -> tuple[int, Token]:
        """A template literal; the code in its slots is skipped."""
        start, depth, has_slots = position, 0, False
        position += 1
        while position < len(text):
            if depth == 0:
                position = _TEMPLATE_PART.match(text, position).end()  # type: ignore[union-attr]  # it also matches the empty text
                if text.startswith("${", position):
                    depth, has_slots, position = 1, True, position + 2
                    continue
                position += 1
                break
            letter = text[position]
            depth += (letter == "{") - (letter == "}")
            position += 2 if letter == "\\" else 1
        whole = text[start:position]
        if has_slots:
            return position, Token(TEMPLATE, whole, line)
        return position, Token(STRING, whole, line, _unescape(whole[1:-1]))

    def _begins_regex(self) -> bool:
        if not self.tokens:
            return True
        last = self.tokens[-1]
        if last.kind == NAME:
            return last.text in _BEFORE_REGEX
        return last.kind == SIGN and last.text not in {")", "]", "}", "++", "--"}

    def _match(self) -> dict[int, int]:
        partners: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.kind != SIGN:
                continue
            if token.text in _OPENING:
                stack.append(index)
            elif token.text in _CLOSING:
                if not stack or _OPENING[self.tokens[stack[-1]].text] != token.text:
                    raise self._unreadable(token.line, f"{token.text!r} closes nothing")
                partners[stack.pop()] = index
            if len(stack) > MAX_DEPTH:
                raise self._unreadable(token.line, f"brackets are nested more than {MAX_DEPTH} deep")
        if stack:
            opening = self.tokens[stack[-1]]
            raise self._unreadable(opening.line, f"{opening.text!r} is not closed")
        return partners

    def _unreadable(self, line: int, why: str) -> ToolError:
        return ToolError(Kind.VALIDATION, f"{self.place}:{line}: {why}; correct the line")


def _simple(token: Token) -> object:
    if token.kind == STRING:
        return token.value
    if token.kind == NUMBER:
        return _number(token.text)
    words = {"true": True, "false": False, "null": None, "undefined": None}
    if token.kind == NAME and token.text in words:
        return words[token.text]
    raise NotLiteralError


def _number(text: str) -> int | float:
    plain = text.replace("_", "").removesuffix("n")
    try:
        if plain[:2].lower() in {"0x", "0b", "0o"}:
            return int(plain, 0)
        value = float(plain)
    except (ValueError, OverflowError):
        raise NotLiteralError from None
    return int(value) if value.is_integer() and abs(value) < 2**53 and "." not in plain else value


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    whole = _ESCAPE.sub(_letter, text)
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _letter(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return _ESCAPES.get(found[4], found[4])
