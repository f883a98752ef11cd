"""What each restricted form of a schema can say; the vendors' packages and documents are the source."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

OPENAI_NAME = "OpenAI"
ANTHROPIC_NAME = "Anthropic"
GEMINI_NAME = "Gemini"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One restricted form.

    `keywords` are what it enforces beside types, properties, items and alternatives. `formats` and `enums` name the formats
    of text and the types of listed values that it takes; None means all. `most_least_items` is the largest `minItems`.
    """

    label: str
    keywords: frozenset[str]
    formats: frozenset[str] | None
    enums: frozenset[str]
    recursive: bool = False
    most_least_items: float = math.inf


# "Structured outputs: supported schemas" of OpenAI; lengths of text are not among them.
OPENAI_STRICT = Target(
    label="OpenAI's strict mode",
    keywords=frozenset(
        ("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    )
    | {"minItems", "maxItems"},
    formats=frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")),
    enums=frozenset(("string", "integer", "number", "boolean")),
    recursive=True,
)

# What `anthropic.transform_schema` leaves as it is; it moves all else into the description.
ANTHROPIC_STRICT = Target(
    label="Anthropic's strict mode",
    keywords=frozenset(("format", "minItems")),
    formats=frozenset(("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")),
    enums=frozenset(("string", "integer", "number", "boolean")),
    most_least_items=1,
)

# The fields of `google.genai.types.Schema`. Its `ref` and `defs` are left alone: the package itself writes references out and
# stops at the first circle, and one of Google's two services does not know them, nor `additionalProperties`.
GEMINI = Target(
    label="Gemini",
    keywords=frozenset(("default", "pattern", "format", "minimum", "maximum"))
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"},
    formats=None,
    enums=frozenset({"string"}),
)

# Names of top-level arguments that a provider takes; it refuses the whole request for another one.
ARGUMENT_NAMES = {
    ANTHROPIC_NAME: re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    GEMINI_NAME: re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
}
