"""Check schemas and values: let in schemas that are valid, local and bounded, check values against them, fill in defaults."""

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
# How many subschemas a comparison with a value takes as long as.
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
    """Refuse a schema that is wrong, reaches outside itself, or could make a check run without end."""
    for at, problem in structural_faults(schema):
        raise _refusal(place, at, problem)
    compile_schema(schema, place)


def structural_faults(schema: object) -> Iterator[Fault]:
    """What is wrong with the shape of a schema, each with its place; of one that is too large nothing else is told."""
    if fault := size_fault(schema):
        yield (), fault
        return
    graph = Graph(schema)
    yield from ((reference.place, reference.problem) for reference in graph.unresolved)
    yield from _node_faults(graph)
    yield from _expansion_faults(graph)
    yield from _cycle_faults(graph)


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
    """Nothing is fetched to read a schema."""
    message = f"{uri} is not fetched"
    raise ValueError(message)


def describe_error(error: jsonschema_rs.ValidationError) -> str:
    """What the engine has against a schema, in our words where they say more."""
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
    """Measure without writing the JSON out: objects shared in memory could make the text endless."""
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
    """A function that completes arguments without changing them; None if the schema has no defaults."""
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
    """The schema with a default that it accepts; one of None makes it accept null, and another misfit is left out."""
    if default is None and not accepts(schema, None):
        schema = any_of([schema, {"type": "null"}])
    return {**schema, "default": default} if accepts(schema, default) else dict(schema)


def accepts(schema: Schema, value: object, definitions: Schema | None = None) -> bool:
    """Whether a value fits a schema that refers to nothing but the definitions."""
    # The commonest schemas need no engine, and the engine takes long to import.
    if schema.keys() <= {"type", "description"} and type(schema.get("type")) is str and type(value) in TYPE_NAMES:
        return schema["type"] == TYPE_NAMES[type(value)] or (schema["type"] == "number" and type(value) is int)
    return not schema or compile_schema({**schema, "$defs": definitions or {}}).is_valid(value)


class UniqueValidator:
    """A compiled schema that asks for items that differ; it raises rather than compare too many.

    The engine sorts numbers by the nearest float, and compares those with the same one by one. Beyond 2^53 as many as two
    thousand integers share a float, and lists of them share it in any number: a few kilobytes of them would take minutes.
    All else it tells apart in a time that grows with the list alone.
    """

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def is_valid(self, instance: object) -> bool:
        """Whether the schema accepts the value."""
        vast = list(_vast_numbers(instance))
        if len(vast) > MAX_COMPARED and _share_a_float(vast):
            message = (
                f"more than {MAX_COMPARED} numbers beyond 2^53, some next to each other, where the items of a list must differ; "
                "send fewer, or write them as text"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        return self._validator.is_valid(instance)


def _asks_for_unique_items(schema: object) -> bool:
    """Whether some part says so, or may; a schema that the engine took holds no circle."""
    if isinstance(schema, Mapping):
        return schema.get("uniqueItems") is True or any(map(_asks_for_unique_items, schema.values()))
    return isinstance(schema, list) and any(map(_asks_for_unique_items, schema))


def _node_faults(graph: Graph) -> Iterator[Fault]:
    # An id moves the base of every #/… below it, so that the graph and the engine could read a $ref differently.
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
    """Refuse a schema that unfolds to too many subschemas; one that contains itself counts once per turn."""
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
    """How many subschemas a check of this one takes as long as, without those inside.

    The engine looks up strings among strings and integers among integers; it compares all else one by one.
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
    """A schema that unfolds without a bound in sight."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


def _check_expanded_depth(depth: int, at: Place) -> None:
    if depth > MAX_EXPANDED_DEPTH:
        raise _TooDeepError(at)


def _cycle_faults(graph: Graph) -> Iterator[Fault]:
    """Refuse a circle of references that never looks at a smaller part of the value."""
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
    """Reads the schema beside the value; only schemas with defaults below the top need it."""

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
        # With prefixItems the items speak only for the rest; such lists are left as they are.
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
    """A small argument must not become a huge one: many items times a large default."""
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


def _vast_numbers(value: object) -> Iterator[int | float]:
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
