"""A call that only carries arguments takes a fast path; its result and its line in the journal are those of the full one.

A call that names the mode it would have anyway says no more than one that does not, and takes the full path.
"""

from __future__ import annotations

import asyncio
import functools
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import (
    ALLOW,
    Call,
    Cost,
    Crib,
    Intent,
    Kind,
    Result,
    RetryPolicy,
    Tool,
    ToolError,
    confirm,
    deny,
    tool,
    tool_of,
)
from toolcrib.core.call_state import limited_to
from toolcrib.core.sources import seen_through
from toolcrib.features.access.view import ToolView
from toolcrib.model.limits import Quota
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Function

NAME = "sample"
NAMES = (NAME, "other_sample")
GIVEN = "given by the caller"
SECRET = "sesame-sesame"
NOTHING: dict[str, object] = {"type": "object", "additionalProperties": False}
# What says how long something took, or is different for each call.
TIMES = {"durationMs", "callId", "ms", "time", "id", "handle", "confirmation", "expiresAt", "amount", "retryAfter"}
SECONDS = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)? (?:ms|s)\b")


class DerivedOutcome(Outcome):
    """What a runner of a plug-in may make of it."""

    __slots__ = ()


class Waits:
    """Can be awaited, and is not a coroutine."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return self.value


def _raise(problem: BaseException) -> object:
    raise problem


ANSWERS: Mapping[str, Callable[[dict[str, object]], object]] = {
    "arguments": lambda given: given,
    "number": lambda given: 7,
    "text": lambda given: "seven",
    "large number": lambda given: 2**70,
    "nothing": lambda given: None,
    "list": lambda given: [1, "two", None],
    "object": lambda given: {"first": 1},
    "keys that are numbers": lambda given: {1: 2},
    "infinity": lambda given: math.inf,
    "hidden infinity": lambda given: {"a": None, "b": [math.nan]},
    "set": lambda given: {3, 1, 2},
    "path": lambda given: Path("a/b"),
    "bytes": lambda given: b"bytes",
    "secret": lambda given: SECRET,
    "secret within": lambda given: {"rows": [f"key {SECRET}"]},
    "error with a secret": lambda given: _raise(ToolError(Kind.PERMANENT, f"{SECRET} was refused")),
    "thing": lambda given: object,
    "lone surrogate": lambda given: "\ud800",
    "long text": lambda given: "x" * 3_000,
    "long list": lambda given: list(range(3_000)),
    "outcome": lambda given: Outcome(value=7, meta={"stderr": "said"}, intents=(Intent(type="finish"),)),
    "outcome that fails": lambda given: Outcome(value=1, error=ToolError(Kind.PERMANENT, "broken"), meta={"more": 1}),
    "outcome that stands in": lambda given: Outcome(value=object, stands_in=True),
    "derived outcome": lambda given: DerivedOutcome(value=7),
    "coroutine": lambda given: asyncio.sleep(0, 7),
    "coroutine that never waits": lambda given: _at_once(7),
    "awaitable": lambda given: Waits(7),
    "generator": lambda given: (number for number in (1, 2)),
    "generator that fails": lambda given: (
        _raise(ToolError(Kind.NOT_FOUND, "gone")) if number else 1 for number in (0, 1)
    ),
    "generator of what is not JSON": lambda given: (object for _ in (1,)),
    "tool error": lambda given: _raise(ToolError(Kind.NOT_FOUND, "no such row", value={"rows": 0})),
    "error like a gate's": lambda given: _raise(ToolError(Kind.BLOCKED, "no", details={"gate": "rules", "more": 1})),
    "retryable error": lambda given: _raise(ToolError(Kind.TRANSIENT, "busy", retryable=True)),
    "error with a value that is not JSON": lambda given: _raise(ToolError(Kind.PERMANENT, "no", value=object)),
    "value error": lambda given: _raise(ValueError("no")),
    "connection error": lambda given: _raise(ConnectionError("gone")),
    "timeout": lambda given: _raise(TimeoutError()),
    "end of an iterator": lambda given: _raise(StopIteration(5)),
    "exit": lambda given: _raise(SystemExit(3)),
    "cancelled": lambda given: _raise(asyncio.CancelledError()),
    "interrupt": lambda given: _raise(KeyboardInterrupt()),
}


async def _at_once(value: object) -> object:
    return value


def plain(answer: Callable[[dict[str, object]], object]) -> Callable[..., object]:
    def sample(**arguments):
        return answer(arguments)

    return sample


def asynchronous(answer: Callable[[dict[str, object]], object]) -> Callable[..., object]:
    async def sample(**arguments):
        return answer(arguments)

    return sample


def waiting(answer: Callable[[dict[str, object]], object]) -> Callable[..., object]:
    async def sample(**arguments):
        await asyncio.sleep(0)
        return answer(arguments)

    return sample


def declared_async(answer: Callable[[dict[str, object]], object]) -> Callable[..., object]:
    """A plain function that a host program registers as async: what it returns is awaited if it can be."""
    return plain(answer)


@dataclass(frozen=True)
class Judge:
    """A rule with one opinion of every call that concerns it."""

    opinion: str
    concerned: frozenset[str]
    name: str = "judge"

    def concerns(self, tool) -> bool:
        return tool.name in self.concerned

    def __call__(self, tool, call):
        if self.opinion == "fail":
            raise RuntimeError("the rule failed")
        return {"allow": ALLOW, "deny": deny("not today"), "confirm": confirm("sure?")}[self.opinion]


@dataclass(frozen=True)
class Sample:
    """A tool: everything about it that one of the two paths might overlook."""

    name: str
    version: str
    answer: str
    make: Callable[..., Callable[..., object]]
    parameters: Mapping[str, Any]
    output: Mapping[str, object] | None
    options: Mapping[str, Any]
    facts: Mapping[str, Any]

    def to_tool(self) -> Tool:
        function = self.make(ANSWERS[self.answer])
        function.__doc__ = self.answer
        declared: dict[str, Any] = {"parameters": dict(self.parameters), "output_schema": self.output, **self.options}
        made = tool_of(tool(name=self.name, version=self.version, **declared)(function))
        if self.make is declared_async:
            assert isinstance(made.run, Function)
            made = replace(made, run=replace(made.run, is_async=True))
        return replace(made, **self.facts)


class Limits(NamedTuple):
    """What the token of a caller limits: the tools that it sees, and how much it may use."""

    view: ToolView | None = None
    quota: Quota | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        with seen_through(self.view), limited_to(self.quota):
            yield


@dataclass(frozen=True)
class World:
    """Tools, the rules and settings around them, and calls of them, each within the limits of its caller."""

    tools: tuple[Sample, ...]
    rules: tuple[Any, ...]
    settings: Mapping[str, Any]
    calls: tuple[Mapping[str, Any], ...]
    limits: tuple[Limits, ...] = ()

    def record(self, *, mode: str | None, waits: bool) -> list[object]:
        """What each call came to, and the journal of all of them."""
        tools = {made.address: made for made in map(Sample.to_tool, self.tools)}
        with Crib(tools=tools.values(), rules=self.rules, builtins={"enabled": False}, **self.settings) as crib:
            # The fast path is there for tools that are prepared, as they are from the second call on.
            for each in crib.tools:
                crib.check(each)
            calls = [Call(**dict[str, Any]({"mode": mode, **call})) for call in self.calls]
            found = perform(crib, calls, self.limits, waits=waits)
            return [*found, [comparable(line) for line in crib.journal.read()]]


def comparable(value: object) -> object:
    """A result, or a part of one, without times and what is different for each call."""
    if isinstance(value, ToolError):
        return comparable({**value.to_json(), "value": value.value})
    if isinstance(value, Result):
        facts = (value.value, value.error, value.intents, value.meta, value.refused)
        return [type(value).__name__, *map(comparable, facts)]
    if isinstance(value, Mapping):
        shown = {key: "" if key in TIMES and part != GIVEN else comparable(part) for key, part in value.items()}
        return without_time_warnings(shown)
    if isinstance(value, (list, tuple)):
        return [comparable(part) for part in value]
    return SECONDS.sub("N s", value) if isinstance(value, str) else repr(value)


def without_time_warnings(facts: dict[str, object]) -> dict[str, object]:
    """Drop what only a busy machine makes: the warning that a call took long, which may come on one path only."""
    warnings = facts.get("warnings")
    if not isinstance(warnings, list):
        return facts
    kept = [warning for warning in warnings if "held everything else up" not in str(warning)]
    return {**facts, "warnings": kept} if kept else {key: part for key, part in facts.items() if key != "warnings"}


def perform(crib: Crib, calls: Iterable[Call], limits: Iterable[Limits] = (), *, waits: bool) -> list[object]:
    """What each call comes to, one after the other: awaited in a loop, or made by plain code."""
    limited = [*zip(calls, chain(limits, repeat(Limits())), strict=False)]

    async def perform_here() -> list[object]:
        found = []
        for call, limit in limited:
            with limit.hold():
                found.append(await settled(crib.call(call)))
        return found

    if waits:
        return asyncio.run(perform_here())
    found = []
    for call, limit in limited:
        with limit.hold():
            found.append(outcome_of(functools.partial(crib.call_sync, call)))
    return found


async def settled(running: Awaitable[Result]) -> object:
    try:
        return comparable(await running)
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as problem:
        return f"raised {problem!r}"


def outcome_of(make: Callable[[], Result]) -> object:
    try:
        return comparable(make())
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as problem:
        return f"raised {problem!r}"


ODD = (
    *(0, -3, 2**63, 2**64, -(2**64), 0.5, 1.0, math.nan, math.inf, True, None, "1", "", "\ud800"),
    *([1], {"a": 1}, object),
)
BARE = (
    *({"type": "integer"}, {"type": "number"}, {"type": "integer", "minimum": 1, "maximum": 2}),
    *({"type": ["integer", "null"], "default": None}, {"type": "number", "default": 0.5}),
    *({"type": "integer", "default": 2}, {"type": "integer", "enum": [1, 2]}, {"type": ["number", "boolean"]}),
)
WIDE: tuple[Any, ...] = (
    *({"type": "string"}, {"type": "string", "default": "x"}, {"type": "array", "default": [1]}, {}, True, False),
    {"type": "object", "properties": {"inner": {"type": "integer", "default": 3}}, "default": {}},
)
OUTPUTS: tuple[Any, ...] = (
    *({}, {"type": "integer"}, {"type": "string"}, {"type": "null"}, {"type": "object"}),
    {"type": "object", "additionalProperties": {"type": "integer"}},
)
OPTIONS = (
    *({"requires": ["fs.read"]}, {"requires": ["net.http"]}, {"confirm": True}, {"modes": ["voice"]}),
    *({"modes": ["text"]}, {"calls_per_minute": 1}, {"latency_budget_ms": 60_000}),
    *({"cost": Cost(per_invocation=0.5)}, {"retry": RetryPolicy(max_attempts=2, initial_delay=0.0)}),
    *({"bundle": "other"}, {"behaviour": "retrieval"}),
)
SWITCHES = (
    *({"catalog": {"disabled": [NAME]}}, {"catalog": {"disabled": ["host/*"]}}),
    {"calls": {"result_bytes": 40}},
    {"environment": {"KEY": SECRET}, "secrets": {"environment": ["KEY"]}},
)
LIMITS = (
    *(Limits(view=ToolView(tools=frozenset({name}))) for name in NAMES),
    *(Limits(view=ToolView(bundles=frozenset({bundle}))) for bundle in ("host", "other")),
    *(Limits(quota=quota) for quota in (Quota(calls=1), Quota(calls=2), Quota(bytes=20))),
)
OPINIONS = ("allow", "deny", "confirm", "fail")
WORDS = ("first", "second", "third")


def seldom(strategy, usual, times: int = 4):
    """Once in so many times what the strategy draws: with oddities everywhere no call would take the fast path."""
    return st.integers(1, times).flatmap(lambda number: strategy if number == 1 else usual)


@st.composite
def schemas(draw) -> dict[str, object]:
    properties = draw(
        st.dictionaries(st.sampled_from(WORDS), seldom(st.sampled_from(WIDE), st.sampled_from(BARE), 8), max_size=3)
    )
    required = sorted(draw(st.sets(st.sampled_from(sorted(properties))))) if properties else []
    schema = {"type": "object", "properties": properties, "required": required}
    return draw(seldom(st.just(schema), st.just({**schema, "additionalProperties": False}), 8))


samples = st.builds(
    Sample,
    name=st.sampled_from(NAMES),
    version=st.sampled_from(["1.0.0", "2.0.0"]),
    answer=seldom(st.sampled_from([title for title in ANSWERS if "coroutine" not in title]), st.just("arguments"), 2),
    make=seldom(st.sampled_from([asynchronous, waiting, declared_async]), st.just(plain), 2),
    parameters=schemas(),
    output=seldom(st.sampled_from(OUTPUTS), st.none(), 3),
    options=seldom(st.sampled_from(OPTIONS), st.just({}), 3),
    facts=seldom(st.just({"deprecated": True}), st.just({}), 8),
)


@st.composite
def calls(draw, tools: tuple[Sample, ...]) -> dict[str, object]:
    called = draw(st.sampled_from(tools))
    properties = [*called.parameters["properties"]]
    wanted = properties if draw(st.booleans()) else draw(st.sets(st.sampled_from(WORDS)))
    arguments: object = {word: draw(seldom(st.sampled_from(ODD), st.integers(1, 2), 8)) for word in sorted(wanted)}
    address = f"host/{called.name}@{called.version}"
    return {
        "name": draw(seldom(st.sampled_from([address, f"{called.name}@1.0.0", "unknown", ""]), st.just(called.name))),
        "arguments": draw(seldom(st.sampled_from([None, [], "text", {1: 2}]), st.just(arguments), 12)),
        "caller": draw(st.sampled_from(["local", "ada"])),
        "id": draw(seldom(st.just(GIVEN), st.just(""))),
        "bundle": draw(seldom(st.sampled_from(["host", "other"]), st.none())),
        "version": draw(seldom(st.sampled_from(["1.0.0", "2.0.0", "9"]), st.none())),
    }


@st.composite
def worlds(draw) -> World:
    tools = draw(st.lists(samples, min_size=1, max_size=6).map(tuple))
    judges = st.builds(Judge, st.sampled_from(OPINIONS), st.frozensets(st.sampled_from(NAMES)))
    return World(
        tools=tools,
        rules=draw(seldom(st.tuples(judges), st.just(()), 3)),
        settings=draw(seldom(st.sampled_from(SWITCHES), st.just({}), 3)),
        calls=tuple(draw(st.lists(calls(tools), min_size=1, max_size=8))),
        limits=draw(st.lists(seldom(st.sampled_from(LIMITS), st.just(Limits())), max_size=8).map(tuple)),
    )


# On a busy machine the first examples take long, which says nothing about them.
@settings(max_examples=examples(250), suppress_health_check=[HealthCheck.too_slow])
@given(world=worlds(), waits=st.booleans())
def test_the_fast_path_gives_what_the_full_path_gives(world, waits):
    assert world.record(mode=None, waits=waits) == world.record(mode="text", waits=waits)


USUAL = Sample(
    name=NAME,
    version="1.0.0",
    answer="arguments",
    make=plain,
    parameters={"type": "object", "properties": {"first": {"type": "integer"}}, "additionalProperties": False},
    output=None,
    options={},
    facts={},
)


ODD_ARGUMENTS: tuple[Any, ...] = (None, [], "text", {1: 2})


def single_worlds() -> Iterator[World]:
    """Worlds in which one thing alone is out of the ordinary, so that each of them is sure to be tried."""
    usual = World(tools=(USUAL,), rules=(), settings={}, calls=({"name": NAME, "arguments": {"first": 1}},) * 2)
    others = ({"name": f"host/{NAME}@1.0.0"}, {"name": NAME, "id": GIVEN}, {"name": NAME, "caller": "ada"})
    yield replace(usual, calls=(*usual.calls, *others, {"name": "unknown"}, {"name": NAME, "version": "9"}))
    yield replace(usual, calls=tuple({"name": NAME, "arguments": {"first": value}} for value in ODD))
    yield replace(usual, calls=tuple({"name": NAME, "arguments": given} for given in ODD_ARGUMENTS))
    for entry in (*BARE, *WIDE):
        schema = {"type": "object", "properties": {"first": entry}, "additionalProperties": False}
        calls = (*usual.calls, {"name": NAME}, {"name": NAME, "arguments": {"x": 1}})
        yield replace(usual, tools=(replace(USUAL, parameters=schema),), calls=calls)
    changes: list[dict[str, Any]] = [
        *({"output": output} for output in OUTPUTS),
        *({"options": option} for option in OPTIONS),
    ]
    for change in (*changes, {"facts": {"deprecated": True}}, {"facts": {"id": "a-tool"}}, {"make": declared_async}):
        yield replace(usual, tools=(replace(USUAL, **change),))
    yield replace(usual, tools=(replace(USUAL, make=declared_async, answer="awaitable"),))
    both = (USUAL, replace(USUAL, version="2.0.0", answer="number"), replace(USUAL, options={"bundle": "other"}))
    for choice in ({"version": "1.0.0"}, {"version": "2.0.0"}, {"bundle": "other"}, {"bundle": "host"}):
        yield replace(usual, tools=both, calls=({**usual.calls[0], **choice},))
    for opinion in OPINIONS:
        for concerned in NAMES:
            yield replace(usual, rules=(Judge(opinion, frozenset({concerned})),))
    for switches in SWITCHES:
        for answer in ("long text", "secret", "secret within", "error with a secret"):
            yield replace(usual, settings=switches, tools=(replace(USUAL, answer=answer),))
    for limits in LIMITS:
        # The first call is not limited, so that the tool is known by the time that the others are made.
        yield replace(usual, calls=usual.calls * 2, limits=(Limits(), limits, limits, limits))


@pytest.mark.parametrize("waits", [True, False])
def test_one_thing_out_of_the_ordinary_is_the_same_on_both_paths(waits):
    for world in single_worlds():
        assert world.record(mode=None, waits=waits) == world.record(mode="text", waits=waits), world


def open_all(make: Callable[..., Callable[..., object]]) -> Crib:
    """A tool for each kind of answer."""
    functions = []
    for number, (title, answer) in enumerate(ANSWERS.items()):
        # What an async function returns is awaited once: a coroutine in it would be thrown away.
        if make is plain or "coroutine" not in title:
            function = make(answer)
            function.__doc__ = title
            functions.append(tool(name=f"sample_{number}", parameters=NOTHING)(function))
    return Crib(tools=functions, builtins={"enabled": False}, calls={"result_bytes": 2_000})


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("make", [plain, asynchronous, waiting])
def test_every_kind_of_answer_is_the_same_on_both_paths(make, waits):
    found: dict[str | None, dict[str, object]] = {}
    for mode in (None, "text"):
        with open_all(make) as crib:
            for each in crib.tools:
                crib.check(each)
            calls = {
                f"{each.description}, {name}": Call(name=name, mode=mode)
                for each in crib.tools
                for name in (each.name, each.address)
            }
            found[mode] = dict(zip(calls, perform(crib, calls.values(), waits=waits), strict=True))
            found[mode]["journal"] = [comparable(line) for line in crib.journal.read()]
    assert found[None] == found["text"]


@pytest.mark.parametrize("name", [NAME, f"host/{NAME}@1.0.0"])
@pytest.mark.parametrize("swallows", [True, False])
async def test_a_call_that_runs_out_of_time_is_the_same_on_both_paths(name, swallows):
    async def sample() -> int:
        """Wait for longer than there is time."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not swallows:
                raise
        return 7

    results = []
    async with Crib(tools=[tool(timeout=0.01, parameters=NOTHING)(sample)], builtins={"enabled": False}) as crib:
        crib.check(crib.find(NAME).tool)
        for mode in (None, "text"):
            results.append(comparable(await crib.call(Call(name=name, mode=mode))))
        lines = [comparable(line) for line in crib.journal.read()]
    assert results[0] == results[1]
    assert lines[0] == lines[1]
