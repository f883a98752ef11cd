"""Which schemas are let in: valid, local, of bounded size, and such that a check of any value ends soon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.schema.graph import Graph, UnresolvedReferenceError, is_schema, write_pointer

if TYPE_CHECKING:
    from toolcrib.pure.schema.graph import Place

MAX_BYTES = 64_000
MAX_DEPTH = 32
MAX_NESTING = 64
MAX_EXPANDED_DEPTH = 128
MAX_SUBSCHEMAS = 2_000
SHOWN = 200
TYPES = "array, boolean, integer, null, number, object, string"


class Validator(Protocol):
    """A compiled schema."""

    def is_valid(self, instance: object) -> bool:
        """Whether the schema accepts the value."""


def check_schema(schema: object, place: str) -> None:
    """Refuse a schema that is wrong, reaches outside itself, or could make a check run without end."""
    if not is_schema(schema):
        raise _refusal(place, (), f"a schema is an object, not {type(schema).__name__}")
    _check_size(schema, place)
    try:
        graph = Graph(schema)
    except UnresolvedReferenceError as error:
        raise _refusal(place, error.place, error.problem) from None
    _check_nodes(graph, place)
    _check_expansion(graph, place)
    _check_cycles(graph, place)
    compile_schema(schema, place)


def check_parameters(schema: object, place: str) -> None:
    """Refuse what `check_schema` refuses, and a schema that does not describe an object of arguments."""
    check_schema(schema, place)
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise _refusal(place, (), 'the schema of the arguments must say "type": "object"; wrap it in properties')


def compile_schema(schema: object, place: str = "schema") -> Validator:
    """Make a schema ready to check values: formats asserted, patterns linear, nothing fetched."""
    import jsonschema_rs

    if not isinstance(schema, bool):
        schema = dict(cast("Mapping[str, object]", schema))
    try:
        return jsonschema_rs.validator_for(
            schema, pattern_options=jsonschema_rs.RegexOptions(), validate_formats=True, retriever=refuse_to_fetch
        )
    except jsonschema_rs.ValidationError as error:
        raise _refusal(place, tuple(str(step) for step in error.instance_path), _problem(error)) from None
    except (ValueError, TypeError) as error:
        raise _refusal(place, (), f"not JSON: {error}") from None


def refuse_to_fetch(uri: str) -> None:
    """Nothing is fetched to read a schema."""
    message = f"{uri} is not fetched"
    raise ValueError(message)


def _problem(error: object) -> str:
    import jsonschema_rs

    kinds = jsonschema_rs.ValidationErrorKind
    known = cast("jsonschema_rs.ValidationError", error)
    if isinstance(known.kind, kinds.Format) and known.kind.format == "regex":
        from toolcrib.pure.schema.patterns import explain_pattern

        return explain_pattern(str(known.instance))
    if known.instance_path and known.instance_path[-1] == "type":
        return f"type {known.instance!r:.80} is unknown; write one of {TYPES}"
    if known.message.startswith("Unknown meta-schema"):
        return 'unknown "$schema"; remove it or write "https://json-schema.org/draft/2020-12/schema"'
    return known.message[:SHOWN]


def _check_size(schema: object, place: str) -> None:
    """Measure without writing the JSON out: objects shared in memory could make the text endless."""
    size = 0
    waiting = [(schema, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise _refusal(place, (), f"nested deeper than {MAX_NESTING} levels; flatten it")
        size += len(value) + 2 if isinstance(value, str) else 5
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if not isinstance(name, str):
                    raise _refusal(place, (), f"the key {name!r:.80} is not a string; quote it")
                size += len(name) + 3
                waiting.append((inner, depth + 1))
        elif isinstance(value, list):
            waiting.extend((inner, depth + 1) for inner in value)
        if size > MAX_BYTES:
            raise _refusal(place, (), f"larger than {MAX_BYTES:,} bytes; shorten it")


def _check_nodes(graph: Graph, place: str) -> None:
    # An id moves the base of every #/… below it, so that the graph and the engine could read a $ref differently.
    draft = graph.root.get("$schema", "") if isinstance(graph.root, Mapping) else ""
    renamer = "id" if "draft-04" in str(draft) else "$id"
    for at, node in graph.nodes.items():
        if node.depth > MAX_DEPTH:
            raise _refusal(place, at, f"deeper than {MAX_DEPTH} subschemas; flatten it")
        if at and renamer in node.schema:
            raise _refusal(place, (*at, renamer), "only the outermost schema may have an id; use #/$defs/NAME")
        if node.schema.get("enum") == []:
            text = "must be a list of at least one value; write the values or remove it"
            raise _refusal(place, (*at, "enum"), text)


def _check_expansion(graph: Graph, place: str) -> None:
    """Refuse a schema that unfolds to too many subschemas; one that contains itself counts once per turn."""
    known: dict[Place, tuple[int, int]] = {}
    opened: set[Place] = set()

    def measure(at: Place, depth: int) -> tuple[int, int]:
        if at in known or at in opened or at not in graph.nodes:
            count, height = known.get(at, (1, 0))
            _check_expanded_depth(depth + height, at, place)
            return count, height
        _check_expanded_depth(depth, at, place)
        opened.add(at)
        node = graph.nodes[at]
        parts = [measure(child, depth + 1) for child in (*node.same, *node.inside)]
        opened.discard(at)
        known[at] = 1 + sum(part[0] for part in parts), 1 + max((part[1] for part in parts), default=0)
        return known[at]

    count, _ = measure((), 0)
    if max(count, len(graph.nodes)) > MAX_SUBSCHEMAS:
        raise _refusal(place, (), f"unfolds to more than {MAX_SUBSCHEMAS:,} subschemas; make it smaller")


def _check_expanded_depth(depth: int, at: Place, place: str) -> None:
    if depth > MAX_EXPANDED_DEPTH:
        raise _refusal(place, at, f"unfolds deeper than {MAX_EXPANDED_DEPTH} subschemas; flatten it")


def _check_cycles(graph: Graph, place: str) -> None:
    """Refuse a circle of references that never looks at a smaller part of the value."""
    if not graph.has_references():
        return
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter({at: node.same for at, node in graph.nodes.items()}).prepare()
    except CycleError as error:
        circle: list[Place] = error.args[1]
        text = " -> ".join(write_pointer(at) for at in circle[:6])
        raise _refusal(place, circle[0], f"refers to itself without end ({text}); put a property between") from None


def _refusal(place: str, at: Place, problem: str) -> ToolError:
    pointer = write_pointer(at)
    text = f"{place}: {problem}" if pointer == "#" else f"{place}: {pointer}: {problem}"
    return ToolError(Kind.VALIDATION, text, details={"place": place, "pointer": pointer})
