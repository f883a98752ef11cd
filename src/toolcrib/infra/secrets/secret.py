"""Hold a secret that is shown only on request, and mask it in everything that is reported afterwards.

It is found in its usual spellings: verbatim, in a URL, JSON or HTML, in base64, in hexadecimal, and in escaped text.
"""

from __future__ import annotations

import hmac
import logging
import re
import threading
import traceback
from typing import TYPE_CHECKING, NoReturn

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MASK = "***"
MAX_BYTES = 64_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Masking every "1" and "eu" would make messages unreadable and keep nothing secret.
SHORTEST = 4
# A base64 fragment inside other text has few characters of its own.
SHORTEST_PIECE = 8
SHORTEST_LINE = 16
# A longer value, such as a certificate, is not searched in nested spellings: computing these takes too long.
LONGEST_TWICE = 4_000
# Secrets that change repeatedly must not fill the memory; the oldest are forgotten.
MAX_VALUES = 1_000
# Joined lines contain any short value sooner or later.
SHORTEST_JOINED = 16

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\"'/\\bfnrt]))")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# The characters that parts of a URL leave unquoted: none, a path, a query, and what some clients leave.
_SAFE = ("", "/", "!$'()*,:@/?", "!$&'()*+,;=:@/?", "!$&'()*+,;=:@/?#[]")


class Secret:
    """A secret: masked wherever it is printed, formatted or serialized; only `reveal` gives the text."""

    # Neither fields nor a dictionary: a serializer must find nothing to write.
    __slots__ = ("_text", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._text = value

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, {MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = (text.encode("utf-8", "surrogatepass") for text in (self._text, other.reveal()))
        # The duration of the comparison must not reveal how much matches.
        return hmac.compare_digest(mine, theirs)

    __hash__ = None  # type: ignore[assignment]  # a dictionary compares keys in variable time

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied; hand on its name")


def check_name(name: str) -> None:
    """Refuse an invalid name of a secret."""
    if not NAME.fullmatch(name):
        # Never quoted: a caller that mixes up the two has written the secret itself.
        message = "this cannot be the name of a secret; write letters, digits and '_', at most 64 and no digit first"
        raise ToolError(Kind.VALIDATION, message)


def check_value(name: str, value: str) -> None:
    """Refuse an invalid value, without quoting it."""
    if problem := _problem_of(value):
        raise ToolError(Kind.VALIDATION, f"secret {name}: {problem}")


class Masking:
    """Remember values and mask them in texts, in all their usual spellings."""

    def __init__(self) -> None:
        self._values: dict[str, frozenset[str]] = {}
        self._spelled: tuple[str, ...] = ()
        self._changing = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._spelled)

    def add(self, value: str) -> None:
        """Mask this value from now on."""
        if value in self._values:
            return
        with self._changing:
            values = {**self._values, value: spellings(value)}
            while len(values) > MAX_VALUES:
                del values[next(iter(values))]
            every = {text for spelled in values.values() for text in spelled}
            # The longest first: one that is a prefix of another must not leave its end behind.
            self._spelled = tuple(sorted(every, key=len, reverse=True))
            self._values = values

    def is_in(self, text: str) -> bool:
        """Whether the text contains anything to mask."""
        return any(spelling in text for spelling in self._spelled) or self._is_meant(text)

    def hide(self, text: str) -> str:
        """The text with every value masked; only the mask if a value is found behind escapes."""
        for spelling in self._spelled:
            text = text.replace(spelling, MASK)
        return MASK if self._is_meant(text) else text

    def _is_meant(self, text: str) -> bool:
        """Whether another reading of the text contains a value."""
        if not self._spelled:
            return False
        others = list(readings(text))
        if any(spelling in other for other in others for spelling in self._spelled):
            return True
        lines = [line for other in (text, *others) if (line := joined(other))]
        return any(spelling in line for line in lines for spelling in self._spelled if len(spelling) >= SHORTEST_JOINED)

    def hide_in(self, value: object) -> object:
        """A JSON value with every string masked, including the names of members."""
        if not self._spelled:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide_in(key): self.hide_in(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(item) for item in value]
        return value


class VariableMasking(Masking):
    """Looks up variables, remembers the values, and masks them in everything reported afterwards."""

    def __init__(self, variable: Callable[[str], str | None] = lambda _: None) -> None:
        super().__init__()
        self._variable = variable

    def variable(self, name: str) -> str | None:
        """The variable of the host."""
        value = self._variable(name)
        if value is not None:
            self.add(value)
        return value

    def hide_in(self, value: object) -> object:
        """A JSON value with every string masked, and every number whose digits would reveal a value."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.hide(repr(value)) != repr(value) else value
        return super().hide_in(value)

    def hide_error(self, error: ToolError) -> ToolError:
        """The same error, masked."""
        return ToolError(
            error.kind,
            self.hide(error.message),
            retryable=error.retryable,
            partial_side_effects=error.partial_side_effects,
            details={name: self.hide_in(detail) for name, detail in error.details.items()},
            value=self.hide_in(error.value),
        )


class HideSecrets(logging.Filter):
    """Masks secrets in log records: message, arguments, extra fields, and exceptions.

    Add it to a handler: a logger applies its filters only to records logged through itself.
    """

    def __init__(self, masking: Masking) -> None:
        super().__init__()
        self._masking = masking

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record and let it pass."""
        if not self._masking:
            return True
        record.msg, record.args = _message_of(record), ()
        if record.exc_info and record.exc_info[1] is not None:
            self._hide_raised(record, record.exc_info[1])
        for name, field in tuple(record.__dict__.items()):
            if isinstance(field, str | dict | list | tuple) and name != "exc_info":
                record.__dict__[name] = self._masking.hide_in(field)
        return True

    def _hide_raised(self, record: logging.LogRecord, raised: BaseException) -> None:
        """Replace an exception that reveals a secret, itself or by its chain, which formatting would show."""
        record.exc_text = record.exc_text or "".join(traceback.format_exception(raised)).rstrip("\n")
        texts = record.exc_text, str(raised)
        if any(self._masking.hide(text) != text for text in texts):
            stand_in = _stand_in(raised, self._masking.hide(texts[1]))
            record.exc_info = type(stand_in), stand_in, raised.__traceback__


def readings(text: str) -> Iterator[str]:
    """Every other reading of the text; none if it has no escapes."""
    for read in (_unquoted, _unescaped, _without_entities):
        other = read(text)
        if other != text:
            yield other


def joined(text: str) -> str:
    """The text on one line without blanks, as for base64 that mail breaks into lines."""
    return "".join(text.split()) if "\n" in text or "\r" in text else ""


def spellings(value: str) -> frozenset[str]:
    """Every usual spelling of the value, also nested; none of a value that is too short to be masked."""
    if len(value) < SHORTEST:
        return frozenset()
    once = {value, *_in_json(value), *_in_url(value), *_in_html(value)}
    outer = once if len(value) <= LONGEST_TWICE else {value}
    twice = {text for spelled in outer for text in (*_in_json(spelled), *_in_url(spelled), *_encoded(spelled))}
    lines = {line for line in value.splitlines() if len(line) >= SHORTEST_LINE}
    # Host and header names come back in one case.
    cased = {text for same in (value.lower(), value.upper()) for text in (same, *_in_url(same), *_in_json(same))}
    found = {*once, *twice, *lines, *cased, value.strip(), " ".join(value.split())}
    return frozenset(text for text in found if len(text) >= SHORTEST)


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text) if "%" in text else text


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # Combine surrogate pairs into one character.
    return _ESCAPE.sub(_letter, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _letter(found: re.Match[str]) -> str:
    number = found[1] or found[2]
    return chr(int(number, 16)) if number else _LETTERS.get(found[3], found[3])


def _without_entities(text: str) -> str:
    import html

    return html.unescape(text) if "&" in text else text


def _problem_of(value: str) -> str:
    if not value:
        return "there is nothing in it; give at least one letter"
    if "\0" in value:
        return "it holds a NUL; write it as text, such as base64"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is not UTF-8; write it as text, such as base64"
    return f"it has {size} bytes, and {MAX_BYTES} are the most" if size > MAX_BYTES else ""


def _in_url(value: str) -> set[str]:
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    quoted = {quote_plus(raw), *(quote(raw, safe=safe) for safe in _SAFE)}
    return quoted | {_with_small_digits(text) for text in quoted}


def _with_small_digits(text: str) -> str:
    first, *rest = text.split("%")
    return "%".join([first, *(f"{piece[:2].lower()}{piece[2:]}" for piece in rest)])


def _in_json(value: str) -> set[str]:
    import json

    plain = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return plain | {text.replace("/", "\\/") for text in plain} | {repr(value)[1:-1]}


def _in_html(value: str) -> set[str]:
    import html

    return {html.escape(value), html.escape(value, quote=False)}


def _encoded(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    whole = {text.rstrip("=") for text in _in_base64(raw)}
    pieces = {text[first:last] for offset in range(3) for text, first, last in _inside_base64(raw, offset)}
    return whole | {piece for piece in pieces if len(piece) >= SHORTEST_PIECE} | {raw.hex(), raw.hex().upper()}


def _inside_base64(raw: bytes, offset: int) -> Iterator[tuple[str, int, int]]:
    """The characters that the value alone determines after so many bytes, as in `name:password`."""
    first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
    return ((text, first, last) for text in _in_base64(bytes(offset) + raw))


def _in_base64(raw: bytes) -> set[str]:
    import base64

    return {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - the arguments are foreign code; logging must not fail because of them
        return f"{record.msg} (its arguments do not fit)"


def _stand_in(raised: BaseException, text: str) -> Exception:
    """An exception of the same name with only this text, and without a chain."""
    stand_in: Exception = type(type(raised).__name__, (Exception,), {})(text)
    return stand_in.with_traceback(raised.__traceback__)
