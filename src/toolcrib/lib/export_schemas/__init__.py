"""Convert JSON Schemas to the restricted subsets that model providers accept.

This module holds the subset of each provider and the conversion of the common form to it, following the vendors' packages
and documentation.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from toolcrib.lib.hidden_text import restore_hidden
from toolcrib.lib.schema import accepts
from toolcrib.lib.schema_structure import look_up, parse_pointer
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.schema_structure import Place
    from toolcrib.model.tool import Tool


Json = dict[str, object]
NULL: Json = {"type": "null"}
MAX_PROPERTIES = 5_000
MAX_LEVELS = 10
MAX_VALUES = 1_000
MAX_LETTERS = 120_000
COUNTS = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
OPENAI_NAME = "OpenAI"
ANTHROPIC_NAME = "Anthropic"
GEMINI_NAME = "Gemini"
# Names of top-level arguments that a provider accepts; it refuses the whole request for any other name.
ARGUMENT_NAMES = {
    ANTHROPIC_NAME: re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    GEMINI_NAME: re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One restricted subset of JSON Schema.

    `keywords` are those that it enforces besides types, properties, items and alternatives. `formats` and `enums` are the
    accepted formats of strings and types of enum values; None means all. `most_least_items` is the largest `minItems`.
    """

    label: str
    keywords: frozenset[str]
    formats: frozenset[str] | None
    enums: frozenset[str]
    recursive: bool = False
    most_least_items: float = math.inf


# The fields of `google.genai.types.Schema`. Its `ref` and `defs` are not used: the package itself inlines references and stops
# at the first cycle, and one of Google's two services supports neither them nor `additionalProperties`.
GEMINI = Target(
    label="Gemini",
    keywords=frozenset(("default", "pattern", "format", "minimum", "maximum"))
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"},
    formats=None,
    enums=frozenset({"string"}),
)


class Provider(StrEnum):
    """The providers, each with its own form of a tool definition."""

    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"
    GEMINI = "gemini"
    ANTHROPIC = "anthropic"
    MCP = "mcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One rule of the schema that the provider will not enforce; `path` points into the parameters of the tool."""

    path: str
    keyword: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.keyword}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """A tool in the form of one provider.

    `definition` is sent to the provider, `parameters` is the schema in it. `absent` are the places in that schema where null
    means that an argument is omitted, `renamed` maps the names that the provider accepts to the tool's own, and `escaped` maps
    names and values whose hidden characters are escaped to those of the tool.
    """

    tool: Tool
    name: str
    definition: Json
    losses: tuple[Loss, ...]
    parameters: Json
    absent: frozenset[Place] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    escaped: Mapping[str, str] = field(default_factory=dict)

    def restore(self, arguments: Mapping[str, object]) -> Json:
        """Convert the arguments that a model sent to those of the tool; returns a copy."""
        restored = dict(arguments)
        if self.absent:
            kept = self._restore((), restored)
            restored = kept if isinstance(kept, dict) else restored
        if self.renamed:
            restored = {self.renamed.get(name, name): value for name, value in restored.items()}
        return cast("Json", restore_hidden(restored, self.escaped)) if self.escaped else restored

    def _restore(self, place: Place, value: object) -> object:
        if not isinstance(value, dict | list):
            return value
        place = self._where(place, value)
        if isinstance(value, list):
            return [self._restore((*place, "items"), item) for item in value]
        kept: Json = {}
        for name, inner in value.items():
            at = (*place, "properties", name)
            if inner is not None or at not in self.absent:
                kept[name] = self._restore(at, inner)
        return kept

    def _where(self, place: Place, value: object) -> Place:
        """The place of the schema that applies to the value: references resolved, and the first branch that accepts it."""
        schema = look_up(self.parameters, place)
        if not isinstance(schema, dict):
            return place
        if isinstance(schema.get("$ref"), str):
            return self._where(parse_pointer(schema["$ref"]), value)
        branches = schema.get("anyOf")
        for index, branch in enumerate(branches if isinstance(branches, list) else ()):
            if accepts(branch, value, definitions_of(self.parameters)):
                return self._where((*place, "anyOf", str(index)), value)
        return place


def definitions_of(schema: Json) -> Json:
    """The definitions of a schema."""
    definitions = schema.get("$defs")
    return definitions if isinstance(definitions, dict) else {}


def to_strict(form: Json) -> tuple[Json, frozenset[Place]]:
    """The form for OpenAI's strict mode, and the places where null means that an argument is omitted."""
    strict = _Strict(definitions_of(form))
    return strict.write(form, (), 1), frozenset(strict.absent)


def to_gemini(form: Json) -> Json:
    """The form of `google.genai.types.Schema`."""
    if "anyOf" in form:
        return _gemini_union(form)
    written: Json = {"type": str(form["type"]).upper()}
    for keyword, value in form.items():
        if keyword in COUNTS:
            written[keyword] = int(cast("int", value))
        elif keyword == "properties" and value:
            written[keyword] = {name: to_gemini(inner) for name, inner in cast("dict[str, Json]", value).items()}
        elif keyword == "items":
            written[keyword] = to_gemini(cast("Json", value))
        elif keyword not in {"type", "properties", "additionalProperties", "required"} or (
            keyword == "required" and value
        ):
            written[keyword] = value
    return written


# From "Structured outputs: supported schemas" of OpenAI, which has no lengths of text.
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


# Keywords that `anthropic.transform_schema` keeps; it moves all others into the description.
ANTHROPIC_STRICT = Target(
    label="Anthropic's strict mode",
    keywords=frozenset(("format", "minItems")),
    formats=frozenset(("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")),
    enums=frozenset(("string", "integer", "number", "boolean")),
    most_least_items=1,
)


class _Strict:
    """Writes the strict form: requires every property, writes `X or null` as a list of types, and checks the limits."""

    def __init__(self, definitions: Json) -> None:
        self.definitions = definitions
        self.absent: set[Place] = set()
        self._properties = self._values = self._letters = 0

    def write(self, form: Json, place: Place, levels: int) -> Json:
        form = _fold(form)
        written = dict(form)
        if "properties" in form:
            self._write_properties(written, place, levels)
        if "items" in form:
            written["items"] = self.write(cast("Json", form["items"]), (*place, "items"), levels)
        if "anyOf" in form:
            branches = enumerate(cast("list[Json]", form["anyOf"]))
            written["anyOf"] = [self.write(part, (*place, "anyOf", str(index)), levels) for index, part in branches]
        if "$defs" in form:
            definitions = cast("dict[str, Json]", form["$defs"]).items()
            written["$defs"] = {name: self.write(part, ("$defs", name), 1) for name, part in definitions}
        if "enum" in form:
            values = cast("list[object]", form["enum"])
            self._count(values=len(values), letters=sum(len(str(value)) for value in values))
        return written

    def _write_properties(self, form: Json, place: Place, levels: int) -> None:
        if levels > MAX_LEVELS:
            raise _too_large()
        properties = cast("dict[str, Json]", form["properties"])
        self._count(properties=len(properties), letters=sum(map(len, properties)))
        required = set(cast("list[str]", form["required"]))
        written = {}
        for name, part in properties.items():
            at = (*place, "properties", name)
            if name in required or self._accepts_null(part, frozenset()):
                written[name] = self.write(part, at, levels + 1)
            else:
                self.absent.add(at)
                written[name] = self.write(_nullable(part), at, levels + 1)
        form["properties"] = written
        form["required"] = list(written)

    def _accepts_null(self, form: Json, seen: frozenset[str]) -> bool:
        if "$ref" in form:
            name = str(form["$ref"]).removeprefix("#/$defs/")
            return name not in seen and self._accepts_null(cast("Json", self.definitions[name]), seen | {name})
        if "anyOf" in form:
            return any(self._accepts_null(branch, seen) for branch in cast("list[Json]", form["anyOf"]))
        return form["type"] == "null"

    def _count(self, *, properties: int = 0, values: int = 0, letters: int = 0) -> None:
        self._properties += properties
        self._values += values
        self._letters += letters
        if self._properties > MAX_PROPERTIES or self._values > MAX_VALUES or self._letters > MAX_LETTERS:
            raise _too_large()


def _fold(form: Json) -> Json:
    """Write `X or null` as a list of types, if X has a type."""
    if "anyOf" not in form:
        return form
    branches = cast("list[Json]", form["anyOf"])
    others = [branch for branch in branches if branch.get("type") != "null"]
    if len(others) != 1 or len(others) == len(branches) or "type" not in others[0]:
        return form
    folded = {**others[0], **{keyword: value for keyword, value in form.items() if keyword != "anyOf"}}
    texts = [str(part["description"]) for part in (form, others[0]) if "description" in part]
    if texts:
        folded["description"] = " ".join(texts)
    if "enum" in folded:
        folded["enum"] = [*cast("list[object]", folded["enum"]), None]
    return {**folded, "type": [others[0]["type"], "null"]}


def _nullable(form: Json) -> Json:
    if "anyOf" in form:
        return {**form, "anyOf": [*cast("list[Json]", form["anyOf"]), NULL]}
    return {"anyOf": [form, NULL]}


def _too_large() -> ToolError:
    limits = (
        f"{MAX_LEVELS} levels, {MAX_PROPERTIES:,} properties, {MAX_VALUES:,} listed values, {MAX_LETTERS:,} letters"
    )
    message = f"parameters: OpenAI's strict mode takes no more than {limits}; export the tool without it"
    return ToolError(Kind.LIMIT_EXCEEDED, message)


def _gemini_union(form: Json) -> Json:
    """`anyOf` without other keywords, which are copied into each alternative."""
    all_branches = cast("list[Json]", form["anyOf"])
    branches = [to_gemini(branch) for branch in all_branches if branch.get("type") != "null"]
    said = [str(form[keyword]) for keyword in ("title", "description") if keyword in form]
    for branch in branches:
        for inner in cast("list[Json]", branch.get("anyOf", [branch])):
            texts = [*said, *([str(inner["description"])] if "description" in inner else [])]
            inner.update({"description": " ".join(texts)} if texts else {})
            inner.update({"nullable": True} if len(branches) < len(all_branches) else {})
    flat = [inner for branch in branches for inner in cast("list[Json]", branch.get("anyOf", [branch]))]
    if len(flat) != 1:
        return {"anyOf": flat} if flat else {"type": "NULL"}
    return {**flat[0], "default": form["default"]} if "default" in form else flat[0]
