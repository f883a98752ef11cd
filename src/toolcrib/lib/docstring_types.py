"""Read the types that docstrings name: `int`, `list of str`, `{'a', 'b'}`, `str, optional`; only what JSON has values for."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from toolcrib.lib.schema_structure import any_of, is_json
from toolcrib.lib.type_schemas import TYPE_NAMES, array_schema, enumeration

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = dict[str, object]

MAX_LETTERS = 200
WORDS: dict[str, Schema] = {
    **{word: {"type": "string"} for word in ("str", "string", "text")},
    **{word: {"type": "integer"} for word in ("int", "integer")},
    **{word: {"type": "number"} for word in ("float", "number", "double", "numeric")},
    **{word: {"type": "boolean"} for word in ("bool", "boolean")},
    **{word: {"type": "array"} for word in ("list", "array", "sequence", "iterable")},
    **{word: {"type": "object"} for word in ("dict", "dictionary", "mapping", "object")},
    **{word: {"type": "null"} for word in ("none", "null")},
}
EXTRAS = re.compile(r"\b(?:optional|required|default(?:s to|=|:)?\s*\S*|by default)\s*$")
# Types around another one, each with the schema that it makes of that one's.
WRAPPERS: tuple[tuple[re.Pattern[str], Callable[[Schema], Schema]], ...] = (
    (re.compile(r"(?:list|array|sequence|iterable)s? of (\w+?)s?"), array_schema),
    (re.compile(r"(?:list|sequence|iterable)\[(.+)\]"), array_schema),
    (re.compile(r"optional\[(.+)\]"), lambda inner: any_of([inner, {"type": "null"}])),
    (
        re.compile(r"(?:dict|mapping)\[str(?:ing)?, ?(.+)\]"),
        lambda inner: {"type": "object", "additionalProperties": inner},
    ),
)
MAX_DEPTH = 4


def read_docstring_type(text: str) -> Schema | None:
    """The schema of a type as people write it; None if it is anything else than plain JSON."""
    if len(text) > MAX_LETTERS:
        return None
    words = text.strip().strip("`")
    while (shorter := EXTRAS.sub("", words).rstrip(" ,;(")) != words:
        words = shorter
    return _read(words, 0)


def _read(text: str, depth: int) -> Schema | None:
    plain = text.strip().strip("`").lower()
    if plain in WORDS or depth > MAX_DEPTH:
        return WORDS.get(plain)
    if plain.startswith("{"):
        return _choices(text.strip())
    for pattern, wrap in WRAPPERS:
        if found := pattern.fullmatch(plain):
            inner = _read(found[1], depth + 1)
            return None if inner is None else wrap(inner)
    parts = re.split(r" or |\|", text)
    members = [_read(part, depth + 1) for part in parts] if len(parts) > 1 else [None]
    return None if None in members else any_of([member for member in members if member is not None])


def _choices(text: str) -> Schema | None:
    """The values of `{'a', 'b'}`, as NumPy writes them; in the order of the text."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)] if isinstance(node, ast.Set) else []
    if not values or not all(type(value) in TYPE_NAMES and is_json(value) for value in values):
        return None
    return enumeration(list(values))
