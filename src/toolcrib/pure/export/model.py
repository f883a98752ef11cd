"""What an export is: a tool as one provider takes it, and what the provider will not enforce of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.pure.schema import accepts
from toolcrib.pure.schema.graph import look_up, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Tool
    from toolcrib.pure.schema.graph import Place

Json = dict[str, object]


class Provider(StrEnum):
    """Who is offered the tool, by the form of its definition."""

    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"
    GEMINI = "gemini"
    ANTHROPIC = "anthropic"
    MCP = "mcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One thing that the provider will not enforce; `path` points into the parameters of the tool."""

    path: str
    keyword: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.keyword}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """A tool as one provider takes it.

    `definition` is what goes over the wire, `parameters` the schema in it. `absent` are the places in that schema where
    null stands for an argument that was left out, and `renamed` leads from the names that the provider takes to the tool's.
    """

    tool: Tool
    name: str
    definition: Json
    losses: tuple[Loss, ...]
    parameters: Json
    absent: frozenset[Place] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def restore(self, arguments: Mapping[str, object]) -> Json:
        """The arguments that the tool takes, from those that a model sent; what it sent is not changed."""
        restored = dict(arguments)
        if self.absent:
            kept = self._restore((), restored)
            restored = kept if isinstance(kept, dict) else restored
        if self.renamed:
            restored = {self.renamed.get(name, name): value for name, value in restored.items()}
        return restored

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
        """The place of the schema that says the parts of this value: behind references, in the first branch that fits."""
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
    """What the references of a schema lead to."""
    definitions = schema.get("$defs")
    return definitions if isinstance(definitions, dict) else {}
