"""Parse JSON, JSON with comments and TOML within limits of size and depth; all values must be JSON values. Write JSON.

Ordinary JSON objects take a fast path; documents that parsers could read differently are left to the strict parser.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, NoReturn, cast

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_DEPTH = 64
MAX_DEFINITION_BYTES = 256_000
MAX_ARGUMENT_BYTES = 1_000_000
SMALLEST_INTEGER = -(2**63)
LARGEST_INTEGER = 2**64 - 1
SHOWN_KEYS = 8
# Larger integers have more digits than the interpreter writes.
MAX_BITS = 14_000

_TOML_NAME = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"?+|'[^'\n]*+'?+)"""
# The second branch consumes a name without a dot after it, so that matching is linear.
_TOML_DOTTED = re.compile(rf"((?:{_TOML_NAME}[ \t]*+\.[ \t]*+)++)|{_TOML_NAME}")
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# Strings come first, so that comment marks inside them are kept; an unterminated string extends to the end of the text.
# No possessive groups: Python 3.11.2 matches those wrongly. An unterminated comment is refused where it begins, so that its
# end is searched for only once.
_PART = re.compile(r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*"?)|//[^\r\n]*|/\*.*?\*/|(?P<open>/\*)', re.DOTALL)
_LETTER = re.compile(r"[^\r\n]")


SHOWN_LETTERS = 80


def point_at(line: str, column: int) -> str:
    """The line, and below it a caret at the column, which is 1-based; a long line is shortened around it."""
    start = max(0, column - 1 - SHOWN_LETTERS // 2)
    text = line.rstrip().replace("\t", " ")[start : start + SHOWN_LETTERS]
    indent = len(text) - len(text.lstrip())
    if not text.strip():
        return ""
    return f"{text.strip()}\n{' ' * max(0, column - 1 - start - indent)}^"


def read_json(
    document: str | bytes,
    *,
    place: str = "document",
    max_bytes: int = MAX_DEFINITION_BYTES,
    max_depth: int = MAX_DEPTH,
) -> object:
    """Parse a definition strictly: integers may have any size; duplicate keys and other ambiguities are refused."""
    text = decode(document, place, max_bytes)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_integer,
        )
        _check(value, 0, _Limits(max_depth, any_integer=True))
    except _FaultError as fault:
        raise fault.to_error(place) from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}; correct the JSON there"
        raise _refusal(f"{place}:{error.lineno}:{error.colno}: {reason}", error.lineno, error.colno) from None
    except RecursionError:
        raise _too_deep(max_depth).to_error(place) from None
    return value


def write_json(value: object) -> bytes:
    """JSON, including what orjson refuses: integers beyond 64 bits, lone surrogates, other objects as strings.

    What has no JSON form at all is written as far as it has one: a log message of a tool, say, must not cost its result.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return _dump(value)
    except (TypeError, ValueError, RecursionError):
        return _dump(_writable(value, MAX_DEPTH))


def _dump(value: object) -> bytes:
    text = json.dumps(value, separators=(",", ":"), default=str, allow_nan=False, ensure_ascii=False)
    # Only lone surrogates cannot be encoded; JSON spells them as this does.
    return text.encode("utf-8", "backslashreplace")


def _writable(value: object, depth: int) -> object:
    """What JSON can hold of a value: null in place of a float that is not a number, strings in place of other keys and objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() <= MAX_BITS else hex(value)
    if isinstance(value, dict) and depth:
        return {str(key): _writable(each, depth - 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [_writable(each, depth - 1) for each in value]
    if value is None or isinstance(value, str):
        return value
    return str(value) if depth else "…"


def check_plain(value: object, *, place: str = "arguments", max_depth: int = MAX_DEPTH) -> None:
    """Refuse values that JSON does not preserve: other types, deep nesting, lone surrogates, integers beyond 64 bit."""
    try:
        _check(value, 0, _Limits(max_depth))
    except _FaultError as fault:
        raise fault.to_error(place) from None


def read_toml(text: str, place: str, *, max_bytes: int = MAX_DEFINITION_BYTES) -> dict[str, object]:
    """Parse a TOML document, whose values must be JSON values."""
    import tomllib

    text = decode(text, place, max_bytes)
    _refuse_long_dotted_names(text, place)
    try:
        value: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _toml_refusal(str(error), text, place) from None
    except RecursionError:
        raise _too_deep(MAX_DEPTH).to_error(place) from None
    except ValueError:  # the interpreter's limit on digits
        raise _refusal(f"{place}: an integer has too many digits; write a shorter one") from None
    check_plain(value, place=place)
    return value


def decode(document: str | bytes, place: str, max_bytes: int = MAX_DEFINITION_BYTES) -> str:
    """Decode a document, without a byte order mark; raises ToolError if it is too large or not UTF-8."""
    raw = document if isinstance(document, bytes) else document.encode("utf-8", "surrogatepass")
    _check_size(len(raw), place, max_bytes)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise _refusal(f"{place}:{line}:{column}: is not UTF-8; save the document as UTF-8", line, column) from None
    return text.removeprefix("\ufeff")


def read_jsonc(document: str | bytes, place: str = "document", *, max_bytes: int = MAX_DEFINITION_BYTES) -> object:
    """Parse a definition with comments, within all limits of `read_json`."""
    return read_json(without_comments(document, place, max_bytes=max_bytes), place=place, max_bytes=max_bytes)


def without_comments(document: str | bytes, place: str = "document", *, max_bytes: int = MAX_DEFINITION_BYTES) -> str:
    """The text with comments replaced by spaces, so that all other positions stay the same."""
    text = decode(document, place, max_bytes)

    def blank(part: re.Match[str]) -> str:
        if part["text"]:
            return part[0]
        if part["open"]:
            raise _open_comment(text, part.start(), place)
        return _LETTER.sub(" ", part[0])

    return _PART.sub(blank, text)


@record(kw_only=False)
class _Limits:
    """Limits of a value."""

    max_depth: int
    any_integer: bool = False


class _FaultError(Exception):
    """A problem inside a value; `path` is collected while the exception propagates, innermost key first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[object] = []

    def to_error(self, place: str) -> ToolError:
        """The ToolError, with at most SHOWN_KEYS keys of the path."""
        where = "".join(map(_spell_key, self.path[: -SHOWN_KEYS - 1 : -1])).removeprefix(".")
        more = "…" if len(self.path) > SHOWN_KEYS else ""
        return _refusal(f"{place}: {where}{more}: {self.message}" if where else f"{place}: {self.message}")


def _check_size(size: int, place: str, max_bytes: int) -> None:
    if size > max_bytes:
        message = f"{place}: has {size} bytes, the limit is {max_bytes}; make it smaller"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": max_bytes})


def _unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _FaultError(f"the key {key[:80]!r} stands twice in one object; remove one")
        found[key] = value
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise _FaultError(f"{word} is not a JSON value; write a finite number or null")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _FaultError(f"the number {digits[:40]} is too large; write a number below 1.8e308")
    return number


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # the interpreter's limit on digits
        raise _FaultError(f"an integer of {len(digits)} digits is too long; write a shorter one") from None


def _check(value: object, depth: int, limits: _Limits) -> None:
    kind = type(value)
    if kind is str:
        _check_text(cast("str", value))
    elif kind is dict:
        _check_items(cast("dict[object, object]", value).items(), depth + 1, limits)
    elif kind is list:
        _check_items(enumerate(cast("list[object]", value)), depth + 1, limits)
    elif kind is int:
        if not (limits.any_integer or SMALLEST_INTEGER <= cast("int", value) <= LARGEST_INTEGER):
            raise _beyond_64_bit()
    elif kind is float:
        if not math.isfinite(cast("float", value)):
            raise _FaultError(f"{value} is not a JSON value; write a finite number or null")
    elif kind is not bool and value is not None:
        raise _FaultError(f"a {kind.__name__} is not a JSON value; write text, a number, a list or an object")


def _check_items(items: Iterable[tuple[object, object]], depth: int, limits: _Limits) -> None:
    if depth > limits.max_depth:
        raise _too_deep(limits.max_depth)
    for key, item in items:
        if type(key) is str:
            _check_text(key)
        elif not isinstance(items, enumerate):
            raise _FaultError(f"the key {str(key)[:80]!r} is not text; write it in quotes")
        try:
            _check(item, depth, limits)
        except _FaultError as fault:
            fault.path.append(key)
            raise


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _FaultError(
            "text with half of a surrogate pair cannot be written to disk; write the whole character"
        ) from None


def _spell_key(key: object) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if str(key).isidentifier() else f"[{str(key)[:80]!r}]"


def _too_deep(max_depth: int) -> _FaultError:
    return _FaultError(f"nested deeper than {max_depth} levels; make it flatter")


def _beyond_64_bit() -> _FaultError:
    return _FaultError("an integer beyond 64 bit does not arrive unchanged; write it as text")


def _refuse_long_dotted_names(text: str, place: str) -> None:
    """Refuse `a.a.a…` before tomllib parses it: it stores every prefix of such a name, 64 GB for 256 kB."""
    for match in _TOML_DOTTED.finditer(text):
        dotted = match[1]
        if dotted is not None and dotted.count(".") >= MAX_DEPTH:
            raise _too_deep(MAX_DEPTH).to_error(f"{place}:{text.count(chr(10), 0, match.start()) + 1}")


def _toml_refusal(message: str, text: str, place: str) -> ToolError:
    position = _TOML_POSITION.search(message)
    reason = _TOML_POSITION.sub("", message)
    reason = f"{reason[:1].lower()}{reason[1:]}; correct the TOML there"
    if position is None:
        return _refusal(f"{place}: {reason}")
    line = int(position[1] or text.count("\n") + 1)
    column = int(position[2] or len(text) - text.rfind("\n"))
    return _refusal(f"{place}:{line}:{column}: {reason}", line, column)


def _refusal(message: str, line: int | None = None, column: int | None = None) -> ToolError:
    details = {} if line is None else {"line": line, "column": column}
    return ToolError(Kind.VALIDATION, message, details=details)


def _open_comment(text: str, position: int, place: str) -> ToolError:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    message = f"{place}:{line}:{column}: the comment has no end; write */ after it"
    return ToolError(Kind.VALIDATION, message, details={"line": line, "column": column})


# Guards check every argument of a call on the event loop; with this many keys they take a few milliseconds.
MAX_KEYS = 10_000
# A float from here on may be an integer that orjson rounded.
LARGE = 2.0**63


def read_plain(raw: bytes) -> dict[str, object] | None:
    """Fast path for the object of an ordinary document; None leaves it to the strict parser.

    orjson is several times faster, but keeps only the last of duplicate keys. Every string has two quotation marks, so a value
    with fewer strings than half the marks of its document may have lost one to a duplicate key.
    """
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    is_plain = isinstance(found, dict) and 2 * _texts(found, 1) == raw.count(b'"')
    return found if is_plain else None


def _texts(value: dict[str, object] | list[object], depth: int) -> float:
    """The number of strings in a value, keys included; NaN for a value that is too deep or may be rounded."""
    if depth > MAX_DEPTH:
        return math.nan
    found: float = len(value) if isinstance(value, dict) else 0
    for item in value.values() if isinstance(value, dict) else value:
        # orjson returns no subclasses, and this check is half of the time of a small message.
        kind = type(item)
        if kind is str:
            found += 1
        elif kind is dict or kind is list:
            found += _texts(item, depth + 1)  # type: ignore[arg-type]  # a dict or a list
        elif kind is float and abs(item) >= LARGE:  # type: ignore[arg-type]  # a float
            return math.nan
    return found


def has_too_many_keys(raw: bytes, value: object) -> bool:
    """Whether the objects of a document have more than MAX_KEYS keys together."""
    # Every key has a colon, and counting bytes is fast.
    return raw.count(b":") > MAX_KEYS and _keys(value) > MAX_KEYS


def _keys(value: object) -> int:
    """The number of keys of all objects in a value."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0
