"""The ways in which a secret can be written: as it is, in a URL, in JSON, in HTML, in base64, in hexadecimal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Hiding every "1" and "eu" would make messages unreadable and keep nothing secret.
SHORTEST = 4
# A piece of base64 that begins in the middle of other text is short on letters of its own.
SHORTEST_PIECE = 8
SHORTEST_LINE = 16
# What is longer, such as a certificate, is not looked for in one spelling within another: working these out takes too long.
LONGEST_TWICE = 4_000

# What the parts of a URL leave as it is: nothing, a path, a query, and what some write although they need not.
_SAFE = ("", "/", "!$'()*,:@/?", "!$&'()*+,;=:@/?", "!$&'()*+,;=:@/?#[]")


def spellings(value: str) -> frozenset[str]:
    """Every usual spelling of the value, and one within another; none of a value that is too short to be hidden."""
    if len(value) < SHORTEST:
        return frozenset()
    once = {value, *_in_json(value), *_in_url(value), *_in_html(value)}
    outer = once if len(value) <= LONGEST_TWICE else {value}
    twice = {text for spelled in outer for text in (*_in_json(spelled), *_in_url(spelled), *_encoded(spelled))}
    lines = {line for line in value.splitlines() if len(line) >= SHORTEST_LINE}
    # Names of hosts and of headers come back in one case, whatever they were sent in.
    cased = {text for same in (value.lower(), value.upper()) for text in (same, *_in_url(same), *_in_json(same))}
    found = {*once, *twice, *lines, *cased, value.strip(), " ".join(value.split())}
    return frozenset(text for text in found if len(text) >= SHORTEST)


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
    """Which letters the value alone decides where so many bytes stand before it, as in `name:password`."""
    first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
    return ((text, first, last) for text in _in_base64(bytes(offset) + raw))


def _in_base64(raw: bytes) -> set[str]:
    import base64

    return {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
