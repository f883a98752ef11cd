"""What a tool's schema and its export judge differently is named by a loss, for any schema and any value."""

import json
import random

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.schema import check_schema

NAMES = "abc"
TEXTS = ["", "a", "ab", "abcd", "2024-01-02", "x@y.de"]
NUMBERS = [-1, 0, 1, 2, 3, 6, 2.5, 7.0]
# What can make an export narrower than its source, when a provider cannot say the whole.
NARROWING = {
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "type",
    "$ref",
    "required",
    "if",
    "dependentSchemas",
}
SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


LEAVES = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "regex"},
    {"const": "a"},
    {"const": 2},
    {"minLength": 2},
    {"maximum": 2},
    {"$ref": "#/$defs/x"},
    {"$ref": "#/$defs/y"},
    {"$ref": "#/$defs/y", "description": "Y."},
    {},
    True,
    False,
]
CLOSED = [
    {"additionalProperties": False},
    {"unevaluatedProperties": False},
    {"additionalProperties": {"type": "integer"}},
    {},
]
BESIDE = [
    {"minProperties": 2},
    {"maxProperties": 1},
    {"dependentRequired": {"a": ["b"]}},
    {"patternProperties": {"^c": {"type": "integer"}}},
    {"propertyNames": {"pattern": "^[ab]"}},
    {"dependentSchemas": {"a": {"required": ["c"]}}},
]
TEXT_BOUNDS = {"minLength": [1, 2], "maxLength": [1, 3], "pattern": ["^a", "b"]}
NUMBER_BOUNDS = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
    "multipleOf": [1, 2, 0.5],
}
LIST_BOUNDS = {"minItems": [1, 2], "maxItems": [0, 1, 3], "uniqueItems": [True]}


class Schemas:
    """Draws schemas of every keyword, nested and referring to each other."""

    def __init__(self, draw):
        self.pick = lambda options: draw(st.sampled_from(options))

    def draw(self, depth):
        kinds = [self.leaf, self.text, self.number, self.enum, self.types]
        if depth:
            kinds += [self.object, self.object, self.list, self.union, self.union, self.no, self.when, self.refined]
        return self.pick(kinds)(depth - 1)

    def leaf(self, depth):
        return self.pick(LEAVES)

    def bounds(self, known):
        chosen = self.pick([(), *([keyword] for keyword in known), [*known][:2], [*known][-2:]])
        return {keyword: self.pick(known[keyword]) for keyword in chosen}

    def text(self, depth):
        return {"type": "string", **self.bounds(TEXT_BOUNDS)}

    def number(self, depth):
        return {"type": self.pick(["integer", "number"]), **self.bounds(NUMBER_BOUNDS)}

    def enum(self, depth):
        return {"enum": self.pick([["a", "ab"], [1, 2.5, "a"], [True], [None, "a"], [[1], "a"], [2]])}

    def types(self, depth):
        types = self.pick(
            [["string", "null"], ["integer", "string"], ["number", "integer", "null"], ["boolean", "array"]]
        )
        return {"type": types, "minLength": 2, **self.bounds(NUMBER_BOUNDS)}

    def object(self, depth):
        names = self.pick(["", "a", "b", "ab", "abc"])
        required = [name for name in self.pick(["", "", "a", "ab"]) if name in names]
        return {
            "type": "object",
            "properties": {name: self.draw(depth) if depth > 0 else self.draw(0) for name in names},
            "required": required,
            **self.pick([*CLOSED[:1] * 4, *CLOSED]),
            **self.pick([*[{}] * 6, *BESIDE]),
        }

    def list(self, depth):
        schema = {"type": "array", **self.bounds(LIST_BOUNDS)}
        if self.pick([True, True, False]):
            schema["items"] = self.draw(max(depth, 0))
        if self.pick([False, False, False, True]):
            schema["prefixItems"] = [self.draw(0), self.draw(0)]
        if self.pick([False, False, False, True]):
            schema["contains"] = self.draw(0)
        return schema

    def base(self, depth):
        return self.pick(
            [dict, dict, lambda: self.object(0), lambda: self.text(0), lambda: {"type": ["integer", "null"]}]
        )()

    def union(self, depth):
        count = self.pick([1, 2, 2, 3])
        branches = [self.draw(max(depth, 0)) for _ in range(count)]
        return {**self.base(depth), self.pick(["anyOf", "oneOf", "allOf"]): branches}

    def no(self, depth):
        return {**self.base(depth), "not": self.draw(0)}

    def when(self, depth):
        return {**self.base(depth), "if": self.draw(0), "then": self.draw(0), "else": self.draw(0)}

    def refined(self, depth):
        return {"$ref": self.pick(["#/$defs/x", "#/$defs/y"]), **self.pick([{"minLength": 2}, {"minProperties": 1}])}


@st.composite
def roots(draw, choices):
    drawn = Schemas(draw)
    root = {**drawn.object(2), "$defs": {"x": drawn.draw(1), "y": drawn.object(1)}}
    keyword = drawn.pick(choices)
    if keyword:
        root[keyword] = [drawn.object(0) for _ in range(drawn.pick([1, 2]))]
    return root


class Values:
    """Values that mostly fit a schema, or nearly; drawn from a seed, because there are many of them."""

    def __init__(self, root, seed):
        self.root = root
        self.random = random.Random(seed)

    def arguments(self):
        """An object that may fit the root, or some of its branches as well."""
        branches = [branch for keyword in ("anyOf", "oneOf", "allOf") for branch in self.root.get(keyword, [])]
        chosen = [branch for branch in branches if isinstance(branch, dict) and self.random.random() < 0.5]
        return {name: value for schema in [*chosen, self.root] for name, value in self.object(schema, 5).items()}

    def draw(self, schema, depth):
        options = [self.near]
        if isinstance(schema, dict) and depth:
            options += self.options(schema, depth - 1)
        return self.random.choice(options)()

    def near(self):
        scalars = [*TEXTS, *NUMBERS, True, False, None]
        some = self.random.choices(scalars, k=self.random.randrange(4))
        return self.random.choice([*some, some, dict(zip([*NAMES, "d"], some, strict=False)), {}])

    def options(self, schema, depth):
        if "$ref" in schema:
            target = look_up(self.root, steps(schema["$ref"].split("/")[1:]))
            yield from [lambda: self.draw(target, depth)] * 4
        if "enum" in schema:
            yield from [lambda: self.random.choice(schema["enum"])] * 3
        if "const" in schema:
            yield from [lambda: schema["const"]] * 2
        branches = [branch for keyword in ("anyOf", "oneOf", "allOf") for branch in schema.get(keyword, [])]
        yield from [lambda branch=branch: self.draw(branch, depth) for branch in branches]
        if "properties" in schema:
            yield from [lambda: self.object(schema, depth)] * 8
        if schema.get("type") == "array":
            yield from [lambda: self.list(schema, depth)] * 6
        if "string" in schema.get("type", []):
            yield from [lambda: self.random.choice(TEXTS)] * 4
        if "boolean" in schema.get("type", []):
            yield from [lambda: self.random.choice([True, False])] * 2
        if "integer" in schema.get("type", []) or "number" in schema.get("type", []):
            yield from [lambda: self.random.choice(NUMBERS)] * 4

    def object(self, schema, depth):
        properties = schema.get("properties", {})
        needed = schema.get("required", [])
        names = [name for name in properties if name in needed or self.random.random() < 0.6]
        drawn = {name: self.draw(properties[name], depth) for name in names}
        if schema.get("additionalProperties", True) is not False and self.random.random() < 0.4:
            drawn["d"] = self.draw(schema.get("additionalProperties", True), depth)
        return drawn

    def list(self, schema, depth):
        rows = [*schema.get("prefixItems", []), *[schema.get("items", True)] * 3]
        return [self.draw(row, depth) for row in rows[: self.random.randrange(4)]]


def plain(schema):
    """Gemini's form as JSON Schema: its objects hold the named properties and no others."""
    if "anyOf" in schema:
        return {"anyOf": [plain(branch) for branch in schema["anyOf"]]}
    written = {**schema, "type": schema["type"].lower()}
    if "properties" in schema or written["type"] == "object":
        written["properties"] = {name: plain(inner) for name, inner in schema.get("properties", {}).items()}
        written["additionalProperties"] = False
    if "items" in schema:
        written["items"] = plain(schema["items"])
    return {"anyOf": [written, {"type": "null"}]} if written.pop("nullable", False) else written


def compiled(schema):
    return jsonschema_rs.validator_for(schema, validate_formats=True)


def fill(schema, value, root):
    """What a model sends: null for what is left out and yet required."""
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    for branch in schema.get("anyOf", []):
        sent = fill(branch, value, root)
        if compiled({**branch, "$defs": root.get("$defs", {})}).is_valid(sent):
            return sent
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        sent = {name: None for name in schema["required"] if name not in value}
        known = {name: fill(schema["properties"].get(name, {}), inner, root) for name, inner in value.items()}
        return {**sent, **known}
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [fill(schema["items"], item, root) for item in value]
    return value


def steps(path):
    return tuple(map(str, path))


def place_of(loss):
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in loss.path.split("/")[1:])


def look_up(root, place):
    for step in place:
        root = root[int(step)] if isinstance(root, list) else root[step]
    return root


def reachable(root, place):
    """Every place that a schema leads to."""
    seen = set()
    waiting = [place]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        found = look_up(root, at)
        if isinstance(found, dict | list):
            waiting += [(*at, str(step)) for step in (found if isinstance(found, dict) else range(len(found)))]
        if isinstance(found, dict) and isinstance(found.get("$ref"), str):
            waiting.append(steps(found["$ref"].split("/")[1:]))
    return seen


def way_to(error, source):
    """Every place that the judge came by on its way to a refusal, the branches of a condition as one."""
    place = ()
    for step in steps(error.evaluation_path):
        place = steps(look_up(source, place)["$ref"].split("/")[1:]) if step == "$ref" else (*place, step)
        yield (*place[:-1], "if") if step in ("then", "else") else place


def refusals(validator, value):
    """Why a value is refused; what counts as unevaluated only because a branch refused it is no reason of its own."""
    errors = list(validator.iter_errors(value))
    return [error for error in errors if not str(error.schema_path[-1]).startswith("unevaluated")] or errors


def names_refusal(error, source, losses):
    """Whether a loss names what made the source refuse: a keyword on the way, or one that decides about branches."""
    places = list(way_to(error, source))
    if {(*place_of(loss), loss.keyword) for loss in losses} & set(places):
        return True
    *node, keyword = places[-1]
    if keyword not in ("anyOf", "oneOf", "unevaluatedProperties"):
        return False
    inside = reachable(source, places[-1] if keyword in ("anyOf", "oneOf") else tuple(node))
    return any(place_of(loss) in inside for loss in losses)


def visited(source, value):
    """Every schema that may judge a part of the value, with the path of that part."""
    found = set()
    waiting = [((), (), value)]
    while waiting:
        place, at, part = waiting.pop()
        if (place, at) in found:
            continue
        found.add((place, at))
        try:
            schema = look_up(source, place)
        except (KeyError, IndexError, TypeError):
            continue
        if not isinstance(schema, dict):
            continue
        if "$ref" in schema:
            waiting.append((steps(schema["$ref"].split("/")[1:]), at, part))
        for keyword in SAME:
            inner = schema.get(keyword)
            keys = (
                range(len(inner))
                if isinstance(inner, list)
                else inner
                if keyword == "dependentSchemas" and inner
                else ()
            )
            waiting += [((*place, keyword, str(key)), at, part) for key in keys]
            if isinstance(inner, dict):
                waiting.append(((*place, keyword), at, part))
        if isinstance(part, dict):
            for name, inner in part.items():
                waiting += [
                    ((*place, "properties", name), (*at, name), inner),
                    ((*place, "additionalProperties"), (*at, name), inner),
                ]
        if isinstance(part, list):
            for index, inner in enumerate(part):
                waiting += [((*place, "items"), (*at, str(index)), inner)]
                waiting += [
                    ((*place, "prefixItems", str(n)), (*at, str(index)), inner)
                    for n in range(len(schema.get("prefixItems", [])))
                ]
    return found


def names_narrowing(error, source, value, losses):
    """Whether a loss says that the export is narrower here: at this part of the value, around it, or inside of it."""
    at = steps(error.instance_path)
    paths = {place: [] for place, _ in visited(source, value)}
    for place, path in visited(source, value):
        paths[place].append(path)
    for loss in losses:
        if loss.keyword not in NARROWING and (loss.path, loss.keyword) not in [("#", "anyOf"), ("#", "oneOf")]:
            continue
        for path in paths.get(place_of(loss), []):
            if path[: len(at)] == at or at[: len(path)] == path:
                return True
    return False


def accepted_roots(strategy):
    def is_accepted(source):
        try:
            check_schema(source, "schema")
        except ToolError:
            return False
        return True

    return strategy.filter(is_accepted)


SETTINGS = settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))


def judge_alike(source, seed, export, count):
    """Draw values and hold against each other what the source and the export say of them."""
    parameters = plain(export.parameters) if "OBJECT" in export.parameters.values() else export.parameters
    theirs, ours = compiled(parameters), compiled(source)
    values = Values(source, seed)
    for _ in range(count):
        value = values.arguments()
        sent = fill(parameters, value, parameters) if export.definition.get("function", {}).get("strict") else value
        meant = export.restore(sent)
        if theirs.is_valid(sent):
            for error in refusals(ours, meant):
                assert names_refusal(error, source, export.losses), (error.schema_path, sent, meant, parameters)
        elif ours.is_valid(value):
            for error in theirs.iter_errors(sent):
                found = names_narrowing(error, source, value, export.losses)
                assert found, (error.schema_path, error.instance_path, sent, parameters)


rewriting = pytest.mark.parametrize(
    ("provider", "strict"),
    [(Provider.OPENAI, False), (Provider.OPENAI, True), (Provider.ANTHROPIC, True), (Provider.GEMINI, False)],
)


@pytest.mark.spec("S2-52")
@rewriting
@SETTINGS
@given(source=accepted_roots(roots([None, None, None, "anyOf", "oneOf", "allOf"])), seed=st.integers(0, 2**32))
def test_source_and_export_judge_alike_or_a_loss_names_the_difference(provider, strict, source, seed, make_tool):
    judge_alike(source, seed, export_tool(make_tool(source), provider, strict=strict), 12)


@pytest.mark.rounds
@rewriting
def test_every_keyword_is_taken_or_named_by_a_loss(provider, strict, schema, make_tool):
    export = export_tool(make_tool(schema), provider, strict=strict)
    if not export.renamed and "#it" not in str(schema):
        judge_alike(schema, 7, export, examples(400))


@SETTINGS
@given(source=accepted_roots(roots([None])), seed=st.integers(0, 2**32))
def test_nulls_for_absent_arguments_are_taken_out_again(source, seed, make_tool):
    export = export_tool(make_tool(source), Provider.OPENAI, strict=True)
    theirs, ours = compiled(export.parameters), compiled(source)
    values = Values(source, seed)
    for _ in range(12):
        value = values.arguments()
        sent = fill(export.parameters, value, export.parameters)
        if ours.is_valid(value) and theirs.is_valid(sent):
            before = json.dumps(sent)
            assert without_nulls(export.restore(sent)) == without_nulls(value)
            assert json.dumps(sent) == before


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
