"""Explain why a schema refuses a value, and what is wrong with a schema: messages with place, value and rule.

The engine can list errors itself, but its time grows exponentially with the depth of a value under a recursive schema. So
schema and value are walked here, and the engine only decides whether a part is valid, which is fast.
Each subschema is validated against its draft separately, without its own subschemas: where the draft has alternatives, as
for `items`, the engine would only report that the whole is invalid, and not which part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.schema import compile_schema, describe_error, refuse_to_fetch, size_fault, structural_faults
from toolcrib.lib.schema_structure import KEYWORDS, MAPPINGS, REFERENCES, Graph, look_up, parse_pointer, write_pointer
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import jsonschema_rs

    from toolcrib.lib.schema import Fault, Validator
    from toolcrib.lib.schema_structure import Place

MAX_PROBLEMS = 10
MAX_NAMES = 20
SHOWN = 80
MAX_BITS = 256
# Keywords without subschemas, each with the text that follows the value in a message.
RULES = {
    "const": "is not {}",
    "enum": "is not one of {}",
    "exclusiveMaximum": "is not less than {}",
    "exclusiveMinimum": "is not greater than {}",
    "format": "is not a valid {}",
    "maxItems": "has more than {} items",
    "maxLength": "is longer than {} characters",
    "maxProperties": "has more than {} properties",
    "maximum": "is greater than the maximum of {}",
    "minItems": "has fewer than {} items",
    "minLength": "is shorter than {} characters",
    "minProperties": "has fewer than {} properties",
    "minimum": "is less than the minimum of {}",
    "multipleOf": "is not a multiple of {}",
    "pattern": "does not match the pattern {}",
    "type": "is not of type {}",
    "uniqueItems": "has items that are the same",
}
CURRENT = "https://json-schema.org/draft/2020-12/schema"
PLACE = "schema"


def explain_problems(validator: Validator, value: object, schema: object) -> list[str]:
    """What is wrong with the value, at most MAX_PROBLEMS sentences; none if the schema accepts it."""
    try:
        if validator.is_valid(value):
            return []
    except (ValueError, TypeError) as error:
        return [f"not JSON: {error}"]
    try:
        return list(islice(_Explainer(schema).explain((), value, ""), MAX_PROBLEMS))
    except RecursionError:
        return ["the value is nested too deeply"]


def explain_parts(schema: object, values: Mapping[Place, object]) -> Iterator[tuple[Place, list[str]]]:
    """The places of subschemas that refuse their value, each with the reasons."""
    explainer = _Explainer(schema)
    for place, value in values.items():
        if not explainer.fits(place, value):
            yield place, list(islice(explainer.explain(place, value, ""), MAX_PROBLEMS))


def schema_problems(schema: object) -> list[Fault]:
    """The place and the message of every problem; none for a schema that `check_schema` accepts."""
    found = [*structural_faults(schema)]
    if not isinstance(schema, Mapping) or size_fault(schema):
        return found
    last: list[Fault] = []
    if not found:
        try:
            compile_schema(schema, PLACE)
        except ToolError as error:
            last = [_fault_of(error)]
        else:
            return []
    # The draft may report the same problem on several paths.
    return list(dict.fromkeys((*found, *_refused_by_draft(schema)))) or last


def misfitting_defaults(schema: Mapping[str, object]) -> Iterator[tuple[Place, object, list[str]]]:
    """The place of each default that its own schema refuses, the default, and the reasons; for an accepted schema."""
    nodes = Graph(schema).nodes
    defaults = {place: node.schema["default"] for place, node in nodes.items() if "default" in node.schema}
    if not defaults:
        return

    for place, reasons in explain_parts(schema, defaults):
        yield (*place, "default"), defaults[place], reasons


def misfitting_choices(schema: Mapping[str, object]) -> Iterator[tuple[Place, object]]:
    """The place of each value of an `enum` or a `const` that the `type` beside it refuses."""
    for place, node in Graph(schema).nodes.items():
        named = _named_values(node.schema)
        if not named or "type" not in node.schema:
            continue
        validator = compile_schema({"type": node.schema["type"]})
        yield from (((*place, *steps), value) for steps, value in named if not validator.is_valid(value))


class _Explainer:
    """Walks the invalid parts of a value down to the rules that they break."""

    def __init__(self, root: object) -> None:
        import jsonschema_rs

        self.root = root
        self._graph = Graph(root)
        self._parts = jsonschema_rs.validator_map_for(
            dict(root) if isinstance(root, Mapping) else bool(root),
            pattern_options=jsonschema_rs.RegexOptions(),
            validate_formats=True,
            retriever=refuse_to_fetch,
        )

    def explain(self, place: Place, value: object, path: str) -> Iterator[str]:
        schema = look_up(self.root, place)
        if not isinstance(schema, Mapping):
            yield f"{path or 'the value'} is not allowed"
            return
        found = False
        for problem in self._problems(place, schema, value, path):
            found = True
            yield problem
        if not found:
            rules = ", ".join(islice((name for name in schema if name != "description"), MAX_NAMES))
            yield f"{_subject(path, value)} does not fit the schema ({rules})"

    def _problems(self, place: Place, schema: Mapping[str, object], value: object, path: str) -> Iterator[str]:
        yield from self._broken_rules(schema, value, path)
        if isinstance(value, dict):
            yield from self._object_problems(place, schema, value, path)
        if isinstance(value, list):
            yield from self._list_problems(place, schema, value, path)
        for keyword in REFERENCES:
            if keyword in schema:
                yield from self._explain_unless_valid(self._graph.target(place, schema[keyword]), value, path)
        for index in range(_length(schema.get("allOf"))):
            yield from self._explain_unless_valid((*place, "allOf", str(index)), value, path)
        for keyword in ("anyOf", "oneOf"):
            yield from self._choice_problems((*place, keyword), schema.get(keyword), value, path)
        if "if" in schema:
            branch = "then" if self.fits((*place, "if"), value) else "else"
            if branch in schema:
                yield from self._explain_unless_valid((*place, branch), value, path)

    def _broken_rules(self, schema: Mapping[str, object], value: object, path: str) -> Iterator[str]:
        for keyword, words in RULES.items():
            if keyword in schema and not self._accepts({keyword: schema[keyword]}, value):
                yield f"{_subject(path, value)} {words.format(_show_rule(schema[keyword]))}"

    def _object_problems(
        self, place: Place, schema: Mapping[str, object], value: dict[str, object], path: str
    ) -> Iterator[str]:
        properties = _mapping(schema.get("properties"))
        yield from self._required_problems(schema, value, path)
        for name in properties:
            if name in value:
                yield from self._explain_unless_valid((*place, "properties", name), value[name], _inside(path, name))
        if isinstance(rules := schema.get("propertyNames"), Mapping) and "$ref" not in rules:
            wrong = [name for name in value if not self._accepts(rules, name)]
            yield from (f"{_inside(path, name)}: the name is not one that is allowed" for name in wrong)
        if "additionalProperties" not in schema:
            return
        for name, inner in value.items():
            if self._is_defined(schema, name):
                continue
            if schema["additionalProperties"] is not False:
                yield from self._explain_unless_valid((*place, "additionalProperties"), inner, _inside(path, name))
            elif name not in _texts(schema.get("required")):
                yield _unknown(name, properties, value, path)

    def _required_problems(self, schema: Mapping[str, object], value: Mapping[str, object], path: str) -> Iterator[str]:
        properties = _mapping(schema.get("properties"))
        is_closed = schema.get("additionalProperties") is False
        for name in _texts(schema.get("required")):
            # A property that a closed schema requires and does not define is refused, whether it is given or not.
            if is_closed and not self._is_defined(schema, name):
                yield f"{_inside(path, name)} is required but not defined: the schema cannot be satisfied"
            elif name not in value:
                yield f"{_inside(path, name)} is missing ({_kind(properties.get(name))})"

    def _list_problems(
        self, place: Place, schema: Mapping[str, object], value: list[object], path: str
    ) -> Iterator[str]:
        prefix = _length(schema.get("prefixItems"))
        for index, item in enumerate(value):
            steps = ("prefixItems", str(index)) if index < prefix else ("items",)
            if steps == ("items",) and ("items" not in schema or isinstance(schema["items"], list)):
                return
            yield from self._explain_unless_valid(place + steps, item, f"{path}[{index}]")

    def _choice_problems(self, place: Place, choices: object, value: object, path: str) -> Iterator[str]:
        if not isinstance(choices, list):
            return
        places = [(*place, str(index)) for index in range(len(choices))]
        fitting = sum(self.fits(at, value) for at in places)
        if fitting == 1 or (fitting and place[-1] == "anyOf"):
            return
        if fitting:
            yield f"{_subject(path, value)} fits {fitting} of the alternatives, and only one may fit"
            return
        likely = [at for at in places if self._is_of_type(at, value)]
        if len(likely) > 1:
            likely = [at for at in likely if self._has_the_same_constants(at, value)]
        if len(likely) == 1:
            yield from self.explain(likely[0], value, path)
            return
        kinds = " or ".join(dict.fromkeys(_kind(self._resolved(at)) for at in places[:MAX_NAMES]))
        yield f"{_subject(path, value)} is not {kinds}"

    def _is_of_type(self, place: Place, value: object) -> bool:
        schema = self._resolved(place)
        return isinstance(schema, Mapping) and ("type" not in schema or self._accepts({"type": schema["type"]}, value))

    def _has_the_same_constants(self, place: Place, value: object) -> bool:
        """Whether the value selects this alternative by a constant, such as `kind`."""
        given = _mapping(value)
        properties = _mapping(_mapping(self._resolved(place)).get("properties"))
        constants = [name for name, inner in properties.items() if name in given and "const" in _mapping(inner)]
        return bool(constants) and all(given[name] == _mapping(properties[name])["const"] for name in constants)

    def _resolved(self, place: Place) -> object:
        schema = look_up(self.root, place)
        while isinstance(schema, Mapping) and "$ref" in schema and "type" not in schema:
            schema = look_up(self.root, self._graph.target(place, schema["$ref"]))
        return schema

    def _explain_unless_valid(self, place: Place, value: object, path: str) -> Iterator[str]:
        if not self.fits(place, value):
            yield from self.explain(place, value, path)

    def fits(self, place: Place, value: object) -> bool:
        part = self._parts.get(write_pointer(place))
        return part is None or part.is_valid(value)

    def _is_defined(self, schema: Mapping[str, object], name: str) -> bool:
        """Whether the property, or a pattern that matches it, is in the schema."""
        patterns = _mapping(schema.get("patternProperties"))
        lone = {"patternProperties": dict.fromkeys(patterns, True), "additionalProperties": False}
        return name in _mapping(schema.get("properties")) or (bool(patterns) and self._accepts(lone, {name: None}))

    def _accepts(self, rules: Mapping[str, object], value: object) -> bool:
        draft = _mapping(self.root).get("$schema")
        return compile_schema(rules if draft is None else {"$schema": draft, **rules}).is_valid(value)


def _unknown(name: str, properties: Mapping[str, object], value: Mapping[str, object], path: str) -> str:
    from difflib import get_close_matches

    free = [known for known in properties if known not in value]
    close = get_close_matches(name[:SHOWN], free[: MAX_PROBLEMS * MAX_NAMES], n=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    return f"{_inside(path, name)} is unknown{guess} (known: {_names(properties)})"


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    text = ", ".join(listed[:MAX_NAMES]) or "none"
    return text if len(listed) <= MAX_NAMES else f"{text} and {len(listed) - MAX_NAMES} more"


def _kind(schema: object) -> str:
    """A short description of a schema."""
    if not isinstance(schema, Mapping):
        return "any value"
    if "enum" in schema or "const" in schema:
        return _show_rule(schema.get("enum", schema.get("const")))
    return _show_rule(schema.get("type", schema.get("title", "another form")))


def _subject(path: str, value: object) -> str:
    return f"{path}: {_show(value)}" if path else _show(value)


def _inside(path: str, name: str) -> str:
    short = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
    return f"{path}.{short}" if path else short


def _show(value: object) -> str:
    """The value, shortened to about 80 characters."""
    if isinstance(value, dict):
        return f"an object with {len(value)} properties"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)} items"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str) and len(value) > SHOWN:
        return f'{json.dumps(value[:SHOWN], ensure_ascii=False)[:-1]}…"'
    return json.dumps(value, ensure_ascii=False)


def _show_rule(rule: object) -> str:
    if isinstance(rule, list):
        return ", ".join(map(_show_rule, rule[:MAX_NAMES]))
    return rule[:SHOWN] if isinstance(rule, str) else _show(rule)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


def _named_values(schema: Mapping[str, object]) -> list[tuple[Place, object]]:
    choices = schema.get("enum")
    named: list[tuple[Place, object]] = [(("const",), schema["const"])] if "const" in schema else []
    if isinstance(choices, list):
        named += [(("enum", str(index)), value) for index, value in enumerate(choices)]
    return named


def _refused_by_draft(schema: Mapping[str, object]) -> Iterator[Fault]:
    """Problems that its draft and the engine report for each subschema."""
    draft = schema.get("$schema", CURRENT)
    if unknown := _unknown_draft(draft):
        yield ("$schema",), unknown
        schema, draft = {**schema, "$schema": CURRENT}, CURRENT
    try:
        validator = _meta_validator(str(draft))
    except ValueError:
        # `$schema` is not a known draft, such as `#/$defs/a`: the engine then uses the current draft.
        validator = _meta_validator(CURRENT)
    for place, node in Graph(schema).nodes.items():
        yield from _node_faults(validator, place, node.schema)


def _meta_validator(draft: str) -> jsonschema_rs.Validator:
    """The compiled meta-schema of a draft."""
    import jsonschema_rs

    return jsonschema_rs.validator_for({"$schema": draft, "$ref": draft}, retriever=refuse_to_fetch)


def _node_faults(validator: jsonschema_rs.Validator, place: Place, schema: Mapping[str, object]) -> Iterator[Fault]:
    for error in validator.iter_errors(_alone(schema)):
        yield (*place, *map(str, error.instance_path)), describe_error(error)
    # The draft only checks that a pattern is valid; whether it is supported only the engine knows.
    for steps, pattern in _patterns(schema):
        try:
            compile_schema({"pattern": pattern}, PLACE)
        except ToolError as error:
            yield (*place, *steps), _fault_of(error)[1]


def _patterns(schema: Mapping[str, object]) -> Iterator[tuple[Place, str]]:
    pattern, properties = schema.get("pattern"), schema.get("patternProperties")
    if isinstance(pattern, str):
        yield ("pattern",), pattern
    if isinstance(properties, Mapping):
        yield from ((("patternProperties", name), name) for name in properties)


def _alone(schema: Mapping[str, object]) -> dict[str, object]:
    """The schema with empty subschemas, and without references, which the graph has resolved."""
    return {keyword: _emptied(keyword, value) for keyword, value in schema.items() if keyword not in REFERENCES}


def _emptied(keyword: str, value: object) -> object:
    if keyword not in KEYWORDS:
        return value
    if isinstance(value, list):
        return [{} if isinstance(inner, Mapping) else inner for inner in value]
    if isinstance(value, Mapping):
        is_mapping = keyword in MAPPINGS
        return (
            {name: {} if isinstance(inner, Mapping) else inner for name, inner in value.items()} if is_mapping else {}
        )
    return value


def _unknown_draft(draft: object) -> str:
    try:
        compile_schema({"$schema": draft}, PLACE)
    except ToolError as error:
        return _fault_of(error)[1]
    return ""


def _fault_of(error: ToolError) -> Fault:
    pointer = str(error.details.get("pointer", "#"))
    return parse_pointer(pointer), error.message.removeprefix(f"{PLACE}: ").removeprefix(f"{pointer}: ")
