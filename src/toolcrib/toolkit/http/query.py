"""Read a query: each parameter known, each once unless it is a list, each within its bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl

from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.contract import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.toolkit.http.contract import Parameter

MAX_PARAMETERS = 1_024
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"[0-9]{1,15}")


class Query:
    """The parameters that a client gave, as values of their types."""

    def __init__(self, values: Mapping[str, object], given: frozenset[str]) -> None:
        self._values = values
        self._given = given

    def has(self, name: str) -> bool:
        """Whether the parameter was given."""
        return name in self._given

    def text(self, name: str) -> str:
        """A text; empty where it is absent."""
        return cast("str", self._values.get(name, ""))

    def words(self, name: str) -> tuple[str, ...]:
        """A list; empty where it is absent."""
        return cast("tuple[str, ...]", self._values.get(name, ()))

    def switch(self, name: str) -> bool:
        """Whether it is on; off where it is absent."""
        return cast("bool", self._values.get(name, False))

    def number(self, name: str) -> int | None:
        """A whole number; its default where it is absent, or None."""
        return cast("int | None", self._values.get(name))


class QueryReader:
    """Reads the query of one endpoint."""

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._known = {parameter.name: parameter for parameter in parameters}
        self._defaults = {
            name: parameter.schema["default"]
            for name, parameter in self._known.items()
            if "default" in parameter.schema
        }
        self._absent = Query(self._defaults, frozenset())

    def read(self, raw: bytes) -> Query:
        """The parameters; raises for one that is unknown, repeated or not what it should be."""
        if not raw:
            return self._absent
        found: dict[str, list[str]] = {}
        for name, value in _pairs(raw):
            parameter = self._known.get(name)
            if parameter is None:
                hint = f"known are {', '.join(sorted(self._known))}" if self._known else "this path takes none"
                raise ToolError(Kind.VALIDATION, f"query: unknown parameter {name[:80]!r}; {hint}")
            if name in found and parameter.schema["type"] != "array":
                raise ToolError(Kind.VALIDATION, f"query: {name} stands more than once; write it once")
            found.setdefault(name, []).append(value)
        values = {name: _value(self._known[name], given) for name, given in found.items()}
        return Query({**self._defaults, **values}, frozenset(found))


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        if _HALF_ESCAPE.search(raw):
            raise ValueError
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = "query: is no list of name=value; write other than ASCII letters as percent-encoded UTF-8"
        raise ToolError(Kind.VALIDATION, message) from None


def _value(parameter: Parameter, given: list[str]) -> object:
    kind = parameter.schema["type"]
    if kind == "array":
        return _words(parameter, given)
    [value] = given
    if kind == "boolean":
        if value not in ("true", "false"):
            raise _bad(parameter, f"write true or false, not {value[:80]!r}")
        return value == "true"
    if kind == "integer":
        return _number(parameter, value)
    return _text(parameter, value)


def _words(parameter: Parameter, given: list[str]) -> tuple[str, ...]:
    """A list, written with commas, by repeating the parameter, or both."""
    words = [word for value in given for word in value.split(",")]
    if "" in words:
        raise _bad(parameter, "holds nothing between two commas; write words, or leave the parameter out")
    most = cast("int", parameter.schema["maxItems"])
    if len(words) > most:
        raise _bad(parameter, f"holds more than {most} words; ask in several requests")
    return tuple(words)


def _number(parameter: Parameter, value: str) -> int:
    least, most = cast("int", parameter.schema["minimum"]), cast("int", parameter.schema["maximum"])
    number = int(value) if _DIGITS.fullmatch(value) else -1
    if not least <= number <= most:
        bounds = f"from {least} on" if most == UNBOUNDED else f"from {least} to {most}"
        raise _bad(parameter, f"write a whole number {bounds}, not {value[:80]!r}")
    return number


def _text(parameter: Parameter, value: str) -> str:
    words = parameter.schema.get("enum")
    if isinstance(words, list):
        if value not in words:
            raise _bad(parameter, f"write one of {', '.join(words)}")
    elif len(value) > cast("int", parameter.schema["maxLength"]):
        raise _bad(parameter, parameter.too_long)
    return value


def _bad(parameter: Parameter, reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"query: {parameter.name}: {reason}")
