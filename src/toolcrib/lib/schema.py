"""Check and compile JSON Schemas, which must be valid, self-contained and bounded, and fill in their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.lib.schema_structure import (
    Graph,
    any_of,
    explain_pattern,
    is_schema,
    look_up,
    parse_pointer,
    write_pointer,
)
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    import jsonschema_rs

    from toolcrib.lib.schema_structure import Place

    Fault = tuple[Place, str]

MAX_BYTES = 64_000
MAX_DEPTH = 32
MAX_NESTING = 64
MAX_EXPANDED_DEPTH = 128
MAX_SUBSCHEMAS = 2_000
SHOWN = 200
# Cost of a comparison with a value of each type, in subschemas.
COSTS = {int: 10, dict: 20, list: 20, float: 40}
LOOKED_UP = ({str}, {int})
CHOICES = (
    "compares every value with too many others; write an enum of strings alone or integers alone, or fewer choices"
)
TYPES = "array, boolean, integer, null, number, object, string"
MAX_FILLED = 100_000
MAX_HOPS = 32
TYPE_NAMES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
Arguments = dict[str, object]
Schema = Mapping[str, object]
EXACT = 2**53
MAX_COMPARED = 200


class Validator(Protocol):
    """A compiled schema."""

    def is_valid(self, instance: object) -> bool:
        """Whether the schema accepts the value."""


def check_schema(schema: object, place: str) -> None:
    """Refuse a schema that is invalid, refers to something outside itself, or could make validation endless."""
    for at, problem in structural_faults(schema):
        raise _refusal(place, at, problem)
    compile_schema(schema, place)


def structural_faults(schema: object) -> Iterator[Fault]:
    """Problems with the structure of a schema, each with its place; a schema that is too large gets only that problem."""
    if fault := size_fault(schema):
        yield (), fault
        return
    graph = Graph(schema)
    yield from ((reference.place, reference.problem) for reference in graph.unresolved)
    yield from _node_faults(graph)
    yield from _expansion_faults(graph)
    yield from _cycle_faults(graph)


def check_parameters(schema: object, place: str) -> None:
    """Check a schema with `check_schema`, and that it describes an object of arguments."""
    check_schema(schema, place)
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise _refusal(place, (), 'the schema of the arguments must say "type": "object"; wrap it in properties')


def compile_schema(schema: object, place: str = "schema") -> Validator:
    """Compile a schema: formats are asserted, patterns run in linear time, and nothing is fetched."""
    import jsonschema_rs

    if not isinstance(schema, bool):
        schema = dict(cast("Mapping[str, object]", schema))
    try:
        validator: Validator = jsonschema_rs.validator_for(
            schema, pattern_options=jsonschema_rs.RegexOptions(), validate_formats=True, retriever=refuse_to_fetch
        )
    except jsonschema_rs.ValidationError as error:
        raise _refusal(place, tuple(str(step) for step in error.instance_path), describe_error(error)) from None
    except (ValueError, TypeError) as error:
        raise _refusal(place, (), f"not JSON: {error}") from None
    if not _asks_for_unique_items(schema):
        return validator

    return UniqueValidator(validator)


def refuse_to_fetch(uri: str) -> None:
    """Retriever of the engine that refuses every URI."""
    message = f"{uri} is not fetched"
    raise ValueError(message)


def describe_error(error: jsonschema_rs.ValidationError) -> str:
    """The engine's error about a schema, or a clearer message of our own."""
    import jsonschema_rs

    kinds = jsonschema_rs.ValidationErrorKind
    if isinstance(error.kind, kinds.Format) and error.kind.format == "regex":
        return explain_pattern(str(error.instance))
    if isinstance(error.kind, kinds.AnyOf) and error.instance_path[-1:] == ["type"]:
        return f"type {error.instance!r:.80} is unknown; write one of {TYPES}"
    if error.message.startswith("Unknown meta-schema"):
        return 'unknown "$schema"; remove it or write "https://json-schema.org/draft/2020-12/schema"'
    return error.message[:SHOWN]


def size_fault(schema: object) -> str:
    """Why a schema is too large or too deep; empty if it is neither."""
    # Not serialised to measure it: objects that are shared in memory could make the text endless.
    if not is_schema(schema):
        return f"a schema is an object, not {type(schema).__name__}"
    size = 0
    waiting = [(schema, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_NESTING:
            return f"nested deeper than {MAX_NESTING} levels; flatten it"
        size += len(value) + 2 if isinstance(value, str) else 5
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if not isinstance(name, str):
                    return f"the key {name!r:.80} is not a string; quote it"
                size += len(name) + 3
                waiting.append((inner, depth + 1))
        elif isinstance(value, list):
            waiting.extend((inner, depth + 1) for inner in value)
        if size > MAX_BYTES:
            return f"larger than {MAX_BYTES:,} bytes; shorten it"
    return ""


def fill_defaults(schema: object) -> Callable[[Arguments], Arguments] | None:
    """A function that adds defaults to arguments and returns a copy; None if the schema has no defaults."""
    if not isinstance(schema, Mapping):
        return None
    filler = _Filler(schema)
    defaults = filler.defaults(schema)
    if filler.has_deeper_defaults():
        return filler.complete
    if not defaults:
        return None
    if any(isinstance(value, list | dict) for value in defaults.values()):
        return lambda arguments: {**deepcopy(defaults), **arguments}
    return lambda arguments: {**defaults, **arguments}


def with_default(schema: Schema, default: object) -> Arguments:
    """The schema with a default; None makes it accept null, and any other default that it refuses is omitted."""
    if default is None and not accepts(schema, None):
        schema = any_of([schema, {"type": "null"}])
    return {**schema, "default": default} if accepts(schema, default) else dict(schema)


def accepts(schema: Schema, value: object, definitions: Schema | None = None) -> bool:
    """Whether a schema that refers only to these definitions accepts a value."""
    # The commonest schemas need no engine, and the engine takes long to import.
    if schema.keys() <= {"type", "description"} and type(schema.get("type")) is str and type(value) in TYPE_NAMES:
        return schema["type"] == TYPE_NAMES[type(value)] or (schema["type"] == "number" and type(value) is int)
    return not schema or compile_schema({**schema, "$defs": definitions or {}}).is_valid(value)


class UniqueValidator:
    """A compiled schema with `uniqueItems`, which raises ToolError instead of comparing too many numbers.

    The engine sorts numbers by the nearest float, and compares those with an equal float pairwise. Beyond 2^53 up to two
    thousand integers share a float, and any number of lists of them do: a few kilobytes would take minutes. For all other
    values its time grows only with the length of the list.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def is_valid(self, instance: object) -> bool:
        """Whether the schema accepts the value."""
        large = list(_large_numbers(instance))
        if len(large) > MAX_COMPARED and _share_a_float(large):
            message = (
                f"more than {MAX_COMPARED} numbers beyond 2^53, some next to each other, where the items of a list must differ; "
                "send fewer, or write them as text"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        return self._validator.is_valid(instance)


def _asks_for_unique_items(schema: object) -> bool:
    """Whether any part of the schema may have `uniqueItems`; a schema that the engine compiled has no cycles in memory."""
    if isinstance(schema, Mapping):
        return schema.get("uniqueItems") is True or any(map(_asks_for_unique_items, schema.values()))
    return isinstance(schema, list) and any(map(_asks_for_unique_items, schema))


def _node_faults(graph: Graph) -> Iterator[Fault]:
    # An id changes the base of every #/… below it, so that the graph and the engine could resolve a $ref differently.
    draft = graph.root.get("$schema", "") if isinstance(graph.root, Mapping) else ""
    renamer = "id" if "draft-04" in str(draft) else "$id"
    for at, node in graph.nodes.items():
        if node.depth > MAX_DEPTH:
            yield at, f"deeper than {MAX_DEPTH} subschemas; flatten it"
        if at and renamer in node.schema:
            yield (*at, renamer), "only the outermost schema may have an id; use #/$defs/NAME"
        if node.schema.get("enum") == []:
            yield (*at, "enum"), "must be a list of at least one value; write the values or remove it"


def _expansion_faults(graph: Graph) -> Iterator[Fault]:
    """Problems of a schema that expands to too many subschemas; a recursive one is counted once per cycle."""
    known: dict[Place, tuple[int, int]] = {}
    opened: set[Place] = set()

    def measure(at: Place, depth: int) -> tuple[int, int]:
        if at in known or at in opened or at not in graph.nodes:
            count, height = known.get(at, (1, 0))
            _check_expanded_depth(depth + height, at)
            return count, height
        _check_expanded_depth(depth, at)
        opened.add(at)
        node = graph.nodes[at]
        parts = [measure(child, depth + 1) for child in (*node.same, *node.inside)]
        opened.discard(at)
        known[at] = _cost(node.schema) + sum(part[0] for part in parts), 1 + max((part[1] for part in parts), default=0)
        return known[at]

    try:
        count, _ = measure((), 0)
    except _TooDeepError as error:
        yield error.place, f"unfolds deeper than {MAX_EXPANDED_DEPTH} subschemas; flatten it"
        return
    if max(count, len(graph.nodes)) > MAX_SUBSCHEMAS:
        dearest = max(graph.nodes, key=lambda at: _cost(graph.nodes[at].schema))
        if _cost(graph.nodes[dearest].schema) > 1:
            yield dearest, CHOICES
        else:
            yield (), f"unfolds to more than {MAX_SUBSCHEMAS:,} subschemas; make it smaller"


def _cost(schema: Mapping[str, object]) -> int:
    """Cost of validating this subschema in units of one subschema, without its own subschemas.

    The engine looks up an enum of only strings or only integers in a hash table; it compares all others one by one.
    """
    cost = 1
    if "const" in schema:
        cost += COSTS.get(type(schema["const"]), 0)
    choices = schema.get("enum")
    if isinstance(choices, list) and {type(choice) for choice in choices} not in LOOKED_UP:
        cost += sum(COSTS.get(type(choice), 1) for choice in choices)
    needed = schema.get("dependentRequired")
    return cost + (len(needed) if isinstance(needed, Mapping) else 0)


class _TooDeepError(Exception):
    """A schema expands deeper than the limit."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


def _check_expanded_depth(depth: int, at: Place) -> None:
    if depth > MAX_EXPANDED_DEPTH:
        raise _TooDeepError(at)


def _cycle_faults(graph: Graph) -> Iterator[Fault]:
    """Problems of reference cycles that never descend into a part of the value."""
    if not graph.has_references():
        return
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter({at: node.same for at, node in graph.nodes.items()}).prepare()
    except CycleError as error:
        circle: list[Place] = error.args[1]
        text = " -> ".join(write_pointer(at) for at in circle[:6])
        yield circle[0], f"refers to itself without end ({text}); put a property between"


def _refusal(place: str, at: Place, problem: str) -> ToolError:
    pointer = write_pointer(at)
    text = f"{place}: {problem}" if pointer == "#" else f"{place}: {pointer}: {problem}"
    return ToolError(Kind.VALIDATION, text, details={"place": place, "pointer": pointer})


class _Filler:
    """Adds defaults at every depth; only schemas with nested defaults need it."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def complete(self, arguments: Arguments) -> Arguments:
        filled = self._fill(self.root, arguments, [MAX_FILLED])
        return filled if isinstance(filled, dict) else arguments

    def defaults(self, schema: Schema) -> Arguments:
        resolved = self._resolve(schema)
        return {name: inner["default"] for name, inner in self._properties(resolved) if "default" in inner}

    def has_deeper_defaults(self) -> bool:
        seen: set[int] = set()
        waiting = [inner for _, inner in self._properties(self._resolve(self.root))]
        while waiting:
            schema = self._resolve(waiting.pop())
            if id(schema) in seen:
                continue
            seen.add(id(schema))
            if self.defaults(schema):
                return True
            waiting.extend(inner for _, inner in self._properties(schema))
            waiting.extend(self._items(schema))
        return False

    def _fill(self, schema: Schema, value: object, budget: list[int]) -> object:
        schema = self._resolve(schema)
        if isinstance(value, dict):
            return self._fill_object(schema, value, budget)
        if isinstance(value, list):
            for items in self._items(schema):
                return [self._fill(items, item, budget) for item in value]
        return value

    def _fill_object(self, schema: Schema, value: Arguments, budget: list[int]) -> Arguments:
        filled = dict(value)
        for name, inner in self._properties(schema):
            if name in filled:
                filled[name] = self._fill(inner, filled[name], budget)
            elif "default" in inner:
                _spend(budget, inner["default"])
                filled[name] = deepcopy(inner["default"])
        return filled

    def _properties(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from ((name, inner) for name, inner in properties.items() if isinstance(inner, Mapping))

    def _items(self, schema: Schema) -> Iterator[Schema]:
        # With prefixItems, `items` applies only to the rest; such lists are left unchanged.
        items = schema.get("items")
        if isinstance(items, Mapping) and "prefixItems" not in schema:
            yield items

    def _resolve(self, schema: Schema) -> Schema:
        for _ in range(MAX_HOPS):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or "properties" in schema:
                return schema
            target = look_up(self.root, parse_pointer(reference)) if reference[1:2] in ("", "/") else None
            if not isinstance(target, Mapping):
                return schema
            schema = target
        return schema


def _spend(budget: list[int], default: object) -> None:
    """Count the values of a default, so that many items times a large default do not become a huge argument."""
    budget[0] -= _count(default)
    if budget[0] < 0:
        message = f"the defaults of the schema would add more than {MAX_FILLED:,} values; send fewer items"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)


def _count(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _share_a_float(numbers: list[int | float]) -> bool:
    known: dict[float, int | float] = {}
    return any(known.setdefault(_nearest(number), number) != number for number in numbers)


def _nearest(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _large_numbers(value: object) -> Iterator[int | float]:
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, int | float):
            if not -EXACT <= found <= EXACT:
                yield found
        elif isinstance(found, Mapping | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            waiting.extend(found.values() if isinstance(found, Mapping) else found)
