"""Hold a secret that is shown only on request, and mask it in everything that is reported afterwards.

It is found in its usual spellings: verbatim, in a URL, JSON or HTML, in base64, in hexadecimal, in escaped text, and in the wrong character set.
"""

from __future__ import annotations

import hmac
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from toolcrib.infra.secrets.chunk_mask import Beginnings, ChunkMask
from toolcrib.model.errors import Cure, Kind, Reader, ToolError
from toolcrib.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.result import Outcome

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
# Values that are not stored, such as access tokens, must not fill the memory; the oldest are forgotten.
MAX_VALUES = 1_000
# The spellings of a thousand random secrets of 40 letters fit in this; it takes too long to compile more.
MAX_PATTERN_BYTES = 64 * 1024 * 1024
MAX_PATTERN_TEXTS = 60_000
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
    """Remember values and mask them in texts, in all their usual spellings.

    `stored` gives all stored values, the same object while there are no others; they are masked before anything has used them,
    and never forgotten.
    """

    def __init__(self, stored: Callable[[], frozenset[str]] = frozenset) -> None:
        self._stored = stored
        self._seen: frozenset[str] = frozenset()
        self._known = _Known({})
        self._beginnings = Beginnings(())
        # Reentrant: garbage collection may end a call of a closed event loop at any line, and its error is masked.
        self._changing = threading.RLock()
        self._on_first: Callable[[], None] = lambda: None

    def __bool__(self) -> bool:
        return bool(self.spelled())

    def when_known(self, tell: Callable[[], None]) -> None:
        """Call this as soon as there is a value to mask, at once if there is one."""
        self._on_first = tell
        if self._known.values:
            tell()

    def add(self, *values: str) -> None:
        """Mask these values from now on."""
        fresh = {value: spellings(value) for value in values if value not in self._known.values}
        if not fresh:
            return
        self._change(lambda known: {**known, **fresh})
        self._on_first()

    def forget(self, *values: str) -> None:
        """Stop masking these values, which are no longer valid; this makes room for others."""
        self._change(lambda known: {value: spelled for value, spelled in known.items() if value not in values})

    def _change(self, change: Callable[[dict[str, frozenset[str]]], dict[str, frozenset[str]]]) -> None:
        with self._changing:
            while True:
                before, stored = self._known, self._stored()
                values = change(before.values)
                passing = [value for value in values if value not in stored]
                for value in passing[: max(0, len(passing) - MAX_VALUES)]:
                    del values[value]
                after = _Known(values)
                if self._known is before:  # else garbage collection has added one in this very thread
                    self._known = after
                    return

    def is_in(self, text: str) -> bool:
        """Whether the text contains anything to mask."""
        return bool(self.spelled()) and (self._finds(text) or self._is_meant(text))

    def hide(self, text: str) -> str:
        """The text with every value masked; only the mask if a value is found behind escapes."""
        spelled = self.spelled()
        if not spelled:
            return text
        if self._finds(text):
            for spelling in spelled:
                text = str.replace(text, spelling, MASK)
        return MASK if self._is_meant(text) else text

    def hide_in(self, value: object) -> object:
        """A JSON value with every string masked, including the names of members; an object that shows a value becomes masked JSON.

        What cannot be searched is masked as a whole. The items of a list may be the pieces of a stream: a value that is split over them is masked too.
        """
        if not self.spelled():
            return value
        try:
            return self._hide_in(self.chunks().hide_split(value) if isinstance(value, list) else value)
        except Exception:  # noqa: BLE001 - foreign code, or it contains itself; masking must not fail because of it
            return MASK

    def beginnings(self) -> Beginnings:
        """Finds what may be the beginning of a value."""
        spelled = self.spelled()
        if self._beginnings.spelled is not spelled:
            self._beginnings = Beginnings(spelled)
        return self._beginnings

    def chunks(self, *, is_one_text: bool = False) -> ChunkMask:
        """Masks the chunks of one stream, also across their borders."""
        return ChunkMask(self, MASK, is_one_text=is_one_text)

    def hide_error(self, error: ToolError) -> ToolError:
        """The same error, masked, also in its notes and in what a class of a tool adds to it."""
        added = {name: self.hide_in(fact) for name, fact in error.__dict__.items() if name not in error.FACTS}
        return error.replace(
            **added,
            reason=self.hide(error.reason),
            cure=Cure(*(self.hide(error.cure.words_for(reader)) for reader in Reader)),
            details={str(self._hide_name(name)): self.hide_in(detail) for name, detail in error.details.items()},
            value=self.hide_in(error.value),
        )

    def hide_raised(self, raised: BaseException) -> BaseException:
        """The exception, or one of the same name without what it reveals, itself or by its chain."""
        # Of a group, every one is searched: not every formatter shows only the first of them.
        shown, text = _formatted(raised, sys.maxsize), _text_of(raised)
        if shown and self.hide(shown) == shown and self.hide(text) == text:
            return raised
        stand_in = _stand_in(raised, self.hide(text))
        # Lines of source, which a traceback shows, may contain the value too.
        is_clean = not self.is_in("".join(traceback.format_tb(raised.__traceback__)))
        return stand_in if is_clean else stand_in.with_traceback(None)

    def _hide_in(self, value: object) -> object:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self._hide_name(name): self._hide_in(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._hide_in(item) for item in value]
        if value is None or isinstance(value, (int, float)):  # a union would be made anew at each call
            return value
        shown = _shown(value)
        hidden = self._hide_in(shown)
        if hidden != shown:
            return hidden
        # The journal, a terminal and a text around it show its text, which may contain more than its JSON.
        texts = (_text_of(value, write) for write in (str, repr))
        return next((self.hide(text) for text in texts if self.is_in(text)), value)

    def _hide_name(self, name: object) -> object:
        """The name of a member, which is written as its text."""
        text = _text_of(name)
        hidden = self.hide(text)
        return name if hidden == text else hidden

    def spelled(self) -> tuple[str, ...]:
        """All spellings, after a look at what was stored meanwhile."""
        stored = self._stored()
        if stored is not self._seen:
            self.add(*stored)
            # Last, because another thread that finds it here relies on it.
            self._seen = stored
        return self._known.spelled

    def _finds(self, text: str, *, joined_lines: bool = False) -> bool:
        known = self._known
        return (known.long_pattern if joined_lines else known.pattern).is_in(text)

    def _is_meant(self, text: str) -> bool:
        """Whether another reading of the text contains a value."""
        others = list(readings(text))
        if any(map(self._finds, others)):
            return True
        lines = (line for other in (text, *others) if (line := joined(other)))
        return any(self._finds(line, joined_lines=True) for line in lines)


class _Known:
    """Values with their spellings. It never changes, so that a search of one thread and a change of another do not mix."""

    def __init__(self, values: dict[str, frozenset[str]]) -> None:
        self.values = values
        every = {text for spelled in values.values() for text in spelled}
        # The longest first: one that is a prefix of another must not leave its end behind.
        self.spelled = tuple(sorted(every, key=len, reverse=True))

    @cached_property
    def pattern(self) -> _Pattern:
        """Finds any spelling."""
        return _Pattern(self.spelled)

    @cached_property
    def long_pattern(self) -> _Pattern:
        """Finds those spellings that joined lines do not contain by chance."""
        return _Pattern(tuple(text for text in self.spelled if len(text) >= SHORTEST_JOINED))


class _Pattern:
    """Finds any of many texts in one pass; looking for one after the other takes a hundred times as long."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts
        self._search: Callable[[str], object] | None = None
        if not texts or len(texts) > MAX_PATTERN_TEXTS:
            return
        import re2

        options = re2.Options()
        options.max_mem = MAX_PATTERN_BYTES
        options.log_errors = False
        try:
            # Sorted, because RE2 joins the common beginnings of neighbours only; without that a search is a thousand times slower.
            self._search = re2.compile("|".join(map(re2.escape, sorted(texts))), options).search
        except (re2.error, UnicodeEncodeError):  # too many for its memory, or one with a lone surrogate
            self._search = None

    def is_in(self, text: str) -> bool:
        """Whether the text contains one of them."""
        if self._search is not None:
            try:
                return self._search(text) is not None
            except UnicodeEncodeError:  # a lone surrogate
                pass
        heads = self._heads
        return any(text.startswith(heads.get(text[at : at + SHORTEST], ()), at) for at in range(len(text)))

    @cached_property
    def _heads(self) -> dict[str, tuple[str, ...]]:
        """The texts by their first letters."""
        heads: dict[str, list[str]] = {}
        for text in self._texts:
            heads.setdefault(text[:SHORTEST], []).append(text)
        return {head: tuple(group) for head, group in heads.items()}


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

    def hide_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with its error and what was printed masked."""
        error = None if outcome.error is None else self.hide_error(outcome.error)
        meta = outcome.meta
        printed = {name: self.hide(str(meta[name])) for name in ("stdout", "stderr") if name in meta}
        return replace(outcome, error=error, meta={**meta, **printed})

    def _hide_in(self, value: object) -> object:
        """Mask every number, too, whose digits would reveal a value."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.hide(repr(value)) != repr(value) else value
        return super()._hide_in(value)


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
            # A formatter writes every field as its text, so objects are searched too.
            if name != "exc_info":
                record.__dict__[name] = self._masking.hide_in(field)
        return True

    def _hide_raised(self, record: logging.LogRecord, raised: BaseException) -> None:
        """Replace an exception that reveals a secret; the formatted text is masked like any other field."""
        record.exc_text = record.exc_text or _formatted(raised).rstrip("\n")
        stand_in = self._masking.hide_raised(raised)
        record.exc_info = type(stand_in), stand_in, stand_in.__traceback__


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
    once = {value, *_misread(value), *_in_json(value), *_in_url(value), *_in_html(value)}
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


def _misread(value: str) -> set[str]:
    """The value as a server shows it that takes its UTF-8 for an older character set and sends that on as text."""
    raw = value.encode("utf-8", "surrogatepass")
    misread = {raw.decode(codec, "replace") for codec in ("latin-1", "cp1252")}
    # What stands for bytes that a character set does not know stands for the bytes of many other texts too.
    return set() if value.isascii() else {text for text in misread if "\ufffd" not in text}


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


def _shown(value: object) -> object:
    """What is written of an object: its JSON, or its text if it has none."""
    if isinstance(value, Iterator):  # its items can be read only once
        return _text_of(value)
    try:
        return to_json(value)
    except Exception:  # noqa: BLE001 - it may convert itself, with foreign code
        return _text_of(value)


def _text_of(value: object, write: Callable[[object], str] = str) -> str:
    try:
        return write(value)
    except (Exception, SystemExit):  # noqa: BLE001 - foreign code; masking must not fail because of it
        return f"<{type(value).__name__} without a text>"


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (Exception, SystemExit):  # noqa: BLE001 - the arguments are foreign code; logging must not fail because of them
        return f"{_text_of(record.msg)} (its arguments do not fit)"


def _formatted(raised: BaseException, most: int = 15) -> str:
    """The exception with its traceback and its chain, and with so many of a group; nothing if it cannot be formatted."""
    try:
        report = traceback.TracebackException.from_exception(raised, max_group_width=most, max_group_depth=most)
        return "".join(report.format())
    except Exception:  # noqa: BLE001 - its attributes are foreign; reporting it must not fail because of them
        return ""


def _stand_in(raised: BaseException, text: str) -> Exception:
    """An exception of the same name with only this text, and without a chain."""
    stand_in: Exception = type(type(raised).__name__, (Exception,), {})(text)
    return stand_in.with_traceback(raised.__traceback__)
