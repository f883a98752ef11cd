"""Derive the contract of a request, from the request alone: calls that have to be answered, and calls that have to be refused.

Beside it the types that all checks of the gate share: complaints, the judgement, and the trial of a candidate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_problems import schema_problems
from toolcrib.lib.schema_structure import write_pointer
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractAsyncContextManager

    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import Example, Input, RecordedAnswer, ToolRequest

    Schema = Mapping[str, object]


SHOWN_LETTERS = 60
MAX_TEXT = 1_500

Item = TypeVar("Item")

MAX_DEPTH = 6
WORDS, REPEATED = "Long text, word after word. ", 150
LONG = WORDS * REPEATED
FOREIGN = "Ünïcode «日本語» 🙂 \"double\" 'single' \\back {curly} %s <tag>\n\ttab"
LARGE = 10_000
# The first value is ordinary, the others are edge values.
BY_TYPE: Mapping[str, tuple[object, ...]] = {
    "string": ("example", "", "Some other text, with 2 numbers: 10 and 7.", FOREIGN, LONG),
    "integer": (3, 0, -1, 1, LARGE),
    "number": (2.5, 0, -1.25, LARGE),
    "boolean": (True, False),
    "null": (None,),
}
# Accepted calls each run in a process of their own; refused ones cost nothing.
MAX_ACCEPTED = 16
MAX_REFUSED = 200
# For every type of a request there is a value of another type here.
WRONG: tuple[object, ...] = (3.5, True, "true", 7, "text", ["text"], {"key": "value"}, None)
UNKNOWN = "no_such_input"


class Check(StrEnum):
    """The checks of a candidate, in their order."""

    SCHEMA = "schema"  # the schemas of the request are usable
    INTERFACE = "interface"  # the function of the example is there, with exactly the inputs
    PROOF = "proof"  # the request can be proved at all
    IMPORT = "import"  # importing has no effects
    ACCEPTS = "accepts"  # valid calls are answered
    REFUSES = "refuses"  # invalid calls never reach it
    OUTPUT = "output"  # every answer has the declared outputs, and no others
    DEFAULTS = "defaults"  # leaving an input out means its default
    EXAMPLES = "examples"  # the answers are those that the request shows
    VARIES = "varies"  # the answer depends on the inputs
    EFFECTS = "effects"  # it does nothing that is not allowed
    LIMITS = "limits"  # it ends in time and keeps within its limits
    PARTIAL = "partial"  # a partial result survives a failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A call to make. `about` says what it shows.

    A `plain` one is ordinary use; others try edge values of a schema.
    """

    about: str
    arguments: dict[str, object]
    plain: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What a request asks for, as calls: those that have to be answered, those that have to be refused, and examples.

    `file` is the entry file and `function` what it has to define. `least` is the call with only the required inputs,
    `filled` the same with every default given.
    """

    file: str
    function: str
    least: Sample
    filled: Sample
    accepted: tuple[Sample, ...]
    refused: tuple[Sample, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Complaint:
    """What a candidate lacks; `text` names the place and the cure."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the gate found. `unprovable` means that another attempt cannot succeed: the request has to say more.

    `checks` lists what was checked, and what was not.
    """

    passed: bool
    complaints: tuple[Complaint, ...] = ()
    unprovable: bool = False
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialTerms:
    """What a trial allows.

    `requires` are the capabilities that are granted, no others. `hosts` narrows where the network leads; None narrows
    nothing. `answers` are the recorded answers; the real network is disabled. From the request number `fail_from` on,
    counted from 1 in each call, the network fails; None means never. `seconds` is how long one call or one import may take.
    """

    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    answers: tuple[RecordedAnswer, ...] = ()
    fail_from: int | None = None
    seconds: float = 10.0


class Trial(Protocol):
    """A tool on trial; calls may run concurrently."""

    async def call(self, arguments: Mapping[str, object]) -> Result:
        """Call it like any tool, through the whole pipeline, sandboxed and watched: `meta["effects"]` says what it did.

        What it printed is in `meta["stdout"]` and `meta["stderr"]`.
        """

    async def load(self, probe: str) -> Result:
        """Run this Python text in the tool's place, in its folder, sandboxed and observed like the tool.

        The function `probe()` of the text is called without arguments and its answer, any JSON, is the value. All files of
        the tool, its entry file included, can be imported from it.
        """

    def deeds(self, result: Result) -> list[Deed]:
        """What the call did or tried, without what every call does."""


class OpenTrial(Protocol):
    """Opens a trial of a tool that is not in the catalog; closing it leaves nothing behind."""

    def __call__(self, tool: Tool, terms: TrialTerms) -> AbstractAsyncContextManager[Trial]:
        """Open it."""


def complain(check: Check, text: str) -> Complaint:
    """A complaint on one line of bounded length, because part of its text may come from the candidate."""
    line = " ".join(text.split())
    return Complaint(check=check, text=line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…")


def show_call(function: str, arguments: Mapping[str, object]) -> str:
    """A call as Python writes it, short enough for a sentence."""
    return f"{function}({', '.join(f'{name}={show_value(value)}' for name, value in arguments.items())})"


def show_value(value: object) -> str:
    """A value as Python writes it, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"


def spell_value(value: object) -> str:
    """A value as JSON, so that two are the same if they read the same; 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def derive_contract(request: ToolRequest) -> Contract:
    """The contract of a request."""
    least = Sample(about="only what is required", arguments=_ordinary(request, required=True))
    left_out = [given for given in request.inputs if given.default is not MISSING and not given.required]
    defaults = {given.name: given.default for given in left_out}
    filled = Sample(about="every default given", arguments={**least.arguments, **defaults})
    return Contract(
        file=request.entry_file,
        function=request.function,
        least=least,
        filled=filled,
        accepted=tuple(
            islice(_distinct(_accepted(request, least, filled), lambda sample: sample.arguments), MAX_ACCEPTED)
        ),
        refused=tuple(islice(_refused(request), MAX_REFUSED)),
        examples=request.examples,
    )


def check_schemas(request: ToolRequest) -> list[Complaint]:
    """What is wrong with the request itself, which a maker cannot cure."""
    return [complain(Check.SCHEMA, f"the request {text}") for text in _schema_problems(request)]


def _schema_problems(request: ToolRequest) -> Iterator[str]:
    if not request.description.strip():
        yield "has no description; write what the tool does"
    for given in request.inputs:
        if not given.description.strip():
            yield f"has no description for the input {given.name}; write what it means"
    if request.parameters.get("type") != "object" or request.parameters.get("additionalProperties") is not False:
        yield 'leaves its inputs open; their schema says "type": "object" and "additionalProperties": false'
    for what, schema in (("inputs", request.parameters), ("outputs", request.output_schema)):
        for place, problem in () if schema is None else schema_problems(schema):
            yield f"has {what} that cannot be checked: {write_pointer(place)}: {problem}; make them simpler"


def _ordinary(request: ToolRequest, *, required: bool = False) -> dict[str, object]:
    inputs = [given for given in request.inputs if given.required or not required]
    return {given.name: _ordinary_value(given, request) for given in inputs}


def _accepted(request: ToolRequest, least: Sample, filled: Sample) -> Iterator[Sample]:
    """Ordinary calls first, then the edge values of all inputs in turn."""
    fits = compile_schema(request.parameters).is_valid
    samples = [least, Sample(about="every input given", arguments=_ordinary(request)), filled]
    if request.shown:
        samples.append(Sample(about="the call of example_usage", arguments={**least.arguments, **request.shown}))
    yield from (sample for sample in (*samples, *_edges(request)) if fits(sample.arguments))


def _edges(request: ToolRequest) -> Iterator[Sample]:
    base = _ordinary(request)
    waiting = [(given, iter(_edge_values(given, request))) for given in request.inputs]
    while waiting:
        for given, values in list(waiting):
            value = next(values, MISSING)
            if value is MISSING:
                waiting.remove((given, values))
            elif not _is_same(value, base[given.name]):
                about = f"{given.name} = {show_value(value)}"
                yield Sample(about=about, arguments={**base, given.name: value}, plain=False)


def _refused(request: ToolRequest) -> Iterator[Sample]:
    base = _ordinary(request)
    for given in request.inputs:
        if given.required and given.default is MISSING:
            rest = {name: value for name, value in base.items() if name != given.name}
            yield Sample(about=f"without {given.name}", arguments=rest)
        yield from _wrong_types(given, base)
    yield Sample(about="an undeclared input", arguments={**base, _unknown_name(request): "value"})


def _wrong_types(given: Input, base: dict[str, object]) -> Iterator[Sample]:
    fits = compile_schema({name: rule for name, rule in given.schema.items() if name != "default"}).is_valid
    for value in WRONG:
        if not fits(value):
            yield Sample(about=f"{given.name} = {show_value(value)}", arguments={**base, given.name: value})


def _unknown_name(request: ToolRequest) -> str:
    taken = {given.name for given in request.inputs}
    name = UNKNOWN
    while name in taken:
        name += "_"
    return name


def _is_same(value: object, other: object) -> bool:
    return spell_value(value) == spell_value(other)


def _ordinary_value(given: Input, request: ToolRequest) -> object:
    """A typical value: one that the request shows, or a plain one."""
    return next(_shown(given, request), None) if _has_shown(given, request) else _make_value(given.schema)


def _edge_values(given: Input, request: ToolRequest) -> list[object]:
    """Further values that the input allows: shown ones first, then edge values."""
    fits = compile_schema(given.schema).is_valid
    candidates = [*_shown(given, request), *_variants(given.schema)]
    return list(_distinct(filter(fits, candidates), lambda value: value))


def _make_value(schema: Schema, depth: int = 0) -> object:
    """A plain value for the schema."""
    return next(iter(_variants(schema, depth)), None)


def _has_shown(given: Input, request: ToolRequest) -> bool:
    return next(_shown(given, request), MISSING) is not MISSING


def _shown(given: Input, request: ToolRequest) -> Iterator[object]:
    """The values that the request itself shows and its schema allows."""
    values = [*given.samples]
    if given.name in request.shown:
        values.append(request.shown[given.name])
    if given.default is not MISSING and given.default is not None:
        values.append(given.default)
    fits = compile_schema(given.schema).is_valid
    yield from (value for value in values if fits(value))


def _variants(schema: Schema, depth: int = 0) -> list[object]:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return choices
    if "const" in schema:
        return [schema["const"]]
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        return [value for branch in branches if isinstance(branch, Mapping) for value in _variants(branch, depth)]
    kinds = schema.get("type", "string")
    found: list[object] = []
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        found += _variants_of(str(kind), schema, depth)
    return found


def _variants_of(kind: str, schema: Schema, depth: int) -> list[object]:
    if kind == "array":
        return _arrays(schema, depth)
    if kind == "object":
        return _objects(schema, depth)
    return list(BY_TYPE.get(kind, ()))


def _arrays(schema: Schema, depth: int) -> list[object]:
    items = schema.get("items")
    inner = _variants(items, depth + 1) if isinstance(items, Mapping) and items and depth < MAX_DEPTH else []
    # Without a schema items may be anything; most lists hold text.
    inner = inner or ["first", "second", "third"]
    return [inner[:2] if depth else inner[:3], [], inner[:1] * 30]


def _objects(schema: Schema, depth: int) -> list[object]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth >= MAX_DEPTH:
        return [{"key": "value"}, {}, {"name": "Ada", "number": 7, "list": [1, 2], "inner": {"deep": None}}]
    full = {name: _make_value(inner, depth + 1) for name, inner in properties.items() if isinstance(inner, Mapping)}
    required = schema.get("required")
    least = {name: value for name, value in full.items() if isinstance(required, list) and name in required}
    return [full, least]


def _distinct(items: Iterable[Item], value_of: Callable[[Item], object]) -> Iterator[Item]:
    """Each item once, by its value."""
    seen: set[str] = set()
    for item in items:
        key = spell_value(value_of(item))
        if key not in seen:
            seen.add(key)
            yield item
