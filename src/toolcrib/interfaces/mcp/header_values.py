"""Compare what a request says in its headers with what it says in its body, as gateways rely on."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.messages import Code, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.interfaces.mcp.messages import Params, Request

KEYWORD = "x-mcp-header"
PREFIX = b"mcp-param-"
TYPES = frozenset({"string", "integer", "boolean"})
# The parameter that the header Mcp-Name repeats.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_NUMBER = re.compile(r"(-?[0-9]+)(?:\.0+)?")
# Keywords whose parts are schemas too; an annotation there could not be found by a gateway.
_INNER = frozenset(
    (
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else", "contentSchema", "allOf", "anyOf", "oneOf", "prefixItems"),
        *("patternProperties", "dependentSchemas", "$defs", "definitions"),
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeaderRule:
    """An argument, by its path in the arguments, that a client repeats in the header `Mcp-Param-NAME`."""

    path: tuple[str, ...]
    header: bytes
    type: str


def header_rules(schema: Mapping[str, object]) -> tuple[HeaderRule, ...]:
    """The arguments that the schema wants repeated; none if one annotation is wrong, because clients then send none."""
    try:
        rules = tuple(_rules(schema, ()))
    except (ValueError, RecursionError):
        return ()
    return rules if len({rule.header for rule in rules}) == len(rules) else ()


def _rules(schema: object, path: tuple[str, ...]) -> Iterator[HeaderRule]:
    if not isinstance(schema, dict):
        return
    if KEYWORD in schema:
        name, kind = schema[KEYWORD], schema.get("type")
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name) or kind not in TYPES:
            raise ValueError
        yield HeaderRule(path=path, header=PREFIX + name.lower().encode(), type=str(kind))
    for keyword, part in schema.items():
        if keyword == "properties" and isinstance(part, dict):
            for name, inner in part.items():
                yield from _rules(inner, (*path, name))
        elif keyword in _INNER and _mentions(part):
            raise ValueError


def _mentions(part: object) -> bool:
    """Whether an annotation stands anywhere in it."""
    if isinstance(part, dict):
        return KEYWORD in part or any(map(_mentions, part.values()))
    return isinstance(part, list) and any(map(_mentions, part))


def check_standard(request: Request, fields: Mapping[bytes, bytes], version: object) -> None:
    """Refuse a request whose headers do not repeat its version, its method and what it names."""
    if _value(fields, b"mcp-protocol-version") != version:
        raise _mismatch("MCP-Protocol-Version", "the version in params._meta")
    if _value(fields, b"mcp-method") != request.method:
        raise _mismatch("Mcp-Method", "the method")
    key = NAMED.get(request.method)
    if key is not None and (named := request.params.get(key)) is not None and _decoded(fields, b"mcp-name") != named:
        raise _mismatch("Mcp-Name", f"params.{key}")


def check_arguments(rules: tuple[HeaderRule, ...], arguments: Params, headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse a call whose headers do not repeat the arguments that its tool wants repeated."""
    given: dict[bytes, bytes] = {}
    for name, value in headers:
        if name.startswith(PREFIX) and given.setdefault(name, value) is not value:
            raise _mismatch(name.decode("latin-1"), "itself, because it stands there twice")
    for rule in rules:
        argument = _at(arguments, rule.path)
        place = f"params.arguments.{'.'.join(rule.path)}"
        written = _written(argument)
        if rule.header not in given:
            if written is None:
                continue
            raise _mismatch(rule.header.decode(), place)
        decoded = _decoded(given, rule.header)
        if written is None or decoded is None or not _is_same(rule.type, argument, written, decoded):
            raise _mismatch(rule.header.decode(), place)


def argument_headers(rules: tuple[HeaderRule, ...], arguments: object) -> dict[str, str]:
    """The headers that a client repeats these arguments in."""
    written = {rule.header.decode(): _written(_at(arguments, rule.path)) for rule in rules}
    return {header: encode(value) for header, value in written.items() if value is not None}


def encode(text: str) -> str:
    """A text as a header can hold it."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _is_same(kind: str, value: object, written: str, decoded: str) -> bool:
    number = _NUMBER.fullmatch(decoded)
    # Clients may write a whole number as 42 or as 42.0.
    if kind == "integer" and number is not None:
        whole = str(int(value)) if isinstance(value, float) and value.is_integer() else written
        return number[1] == whole
    return decoded == written


def _written(value: object) -> str | None:
    """An argument as a header spells it; None for what is absent and for what no header can hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _at(arguments: object, path: tuple[str, ...]) -> object:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def _value(fields: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = fields.get(name)
    # httptools leaves the white space that HTTP allows around a value.
    return None if value is None else value.strip(b" \t").decode("latin-1")


def _decoded(fields: Mapping[bytes, bytes], name: bytes) -> str | None:
    """A header that may be encoded; None if it is absent, or encoded wrongly."""
    value = _value(fields, name)
    encoded = None if value is None else _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        raw = base64.b64decode(encoded[1], validate=True)
        # One value has one spelling, or a gateway and the server could read it differently.
        return raw.decode() if base64.b64encode(raw).decode() == encoded[1] else None
    except (binascii.Error, ValueError):
        return None


def _mismatch(header: str, place: str) -> ProtocolError:
    return ProtocolError(Code.HEADER_MISMATCH, f"the header {header[:100]} must be the same as {place}")
