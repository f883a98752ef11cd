"""Phrases for the keywords of a schema, which descriptions state when a provider does not enforce them."""

from __future__ import annotations

import json
from copy import deepcopy

from toolcrib.lib.hidden_text import show_hidden, show_hidden_in
from toolcrib.model.errors import Kind, ToolError

MAX_SAID = 1_000
MAX_NESTING = 128
DATA = frozenset(("default", "const", "enum", "examples"))

UNQUOTED = frozenset(("pattern", "format", "contentEncoding", "contentMediaType"))
SAYINGS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} {letters}",
    "maxLength": "at most {} {letters}",
    "pattern": "matches the pattern {}",
    "format": "in the format {}",
    "minItems": "at least {} {items}",
    "maxItems": "at most {} {items}",
    "uniqueItems": "no item twice",
    "minProperties": "at least {} {properties}",
    "maxProperties": "at most {} {properties}",
    "default": "default: {}",
    "examples": "for example {}",
    "deprecated": "deprecated",
    "readOnly": "read only",
    "writeOnly": "write only",
    "contentEncoding": "encoded as {}",
    "contentMediaType": "holds {}",
    "additionalProperties": "further properties: {}",
    "unevaluatedProperties": "other properties: {}",
    "patternProperties": "properties by the pattern of their names: {}",
    "propertyNames": "names of properties: {}",
    "dependentRequired": "properties that need others: {}",
    "dependentSchemas": "properties that demand more: {}",
    "prefixItems": "items in this order: {}",
    "contains": "among the items: {}",
    "minContains": "of these at least {}",
    "maxContains": "of these at most {}",
    "not": "never {}",
    "anyOf": "any of {}",
    "oneOf": "exactly one of {}",
    "const": "always {}",
}


def say(keyword: str, value: object) -> str:
    """The phrase for a keyword; a keyword without one is quoted with its value."""
    if keyword == "enum" and isinstance(value, list):
        return f"one of {', '.join(map(write, value))}"
    if keyword == "examples" and isinstance(value, list):
        return f"for example {', '.join(map(write, value))}"
    saying = SAYINGS.get(keyword)
    if saying is None:
        return f"{keyword}: {write(value)}"
    plural = {"letters": "letters", "items": "items", "properties": "properties"}
    if value == 1:
        plural = {"letters": "letter", "items": "item", "properties": "property"}
    shown = value if keyword in UNQUOTED else write(value)
    return saying.format(shown, **plural)


def write(value: object) -> str:
    """A value as JSON, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SAID else f"{text[:MAX_SAID]}…"


def join(text: str, notes: list[str]) -> str:
    """A description with notes appended."""
    said = "; ".join(dict.fromkeys(notes))
    if not said:
        return text
    return f"{text} ({said})" if text else f"{said[0].upper()}{said[1:]}"


def clean(text: str) -> str:
    """The text with hidden characters escaped, so that a model reads what a person sees."""
    return show_hidden(text)


def copy(value: object, depth: int = 0) -> object:
    """A deep copy of a schema, with hidden characters escaped everywhere: a model reads names, values and comments too."""
    if depth > MAX_NESTING:
        raise ToolError(Kind.VALIDATION, f"parameters: nested deeper than {MAX_NESTING} levels; flatten it")
    if isinstance(value, dict):
        return {clean(name): _copy_entry(name, inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, str):
        return clean(value)
    return [copy(inner, depth + 1) for inner in value] if isinstance(value, list | tuple) else value


def _copy_entry(name: str, value: object, depth: int) -> object:
    return show_hidden_in(deepcopy(value)) if name in DATA else copy(value, depth)
