"""Functions that yield: everything they yield is their value, and a reader gets each item as soon as it is there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing
from functools import partial, wraps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.streams.conftest import SECONDS, events_of, split, streamed

from toolcrib import Call, Chunk, Context, Crib, Kind, LogMessage, Progress, Result, RetryPolicy, ToolError, tool
from toolcrib.core.call_state import MAX_CHUNKS
from toolcrib.features.agent_classes.classes import BaseTool
from toolcrib.features.streams.call_stream import MAX_WAITING
from toolcrib.values import MAX_ITEMS

TEXT = {"type": "string"}


async def letters(word: str) -> AsyncIterator[str]:
    """The letters of a word."""
    for letter in word:
        await asyncio.sleep(0)
        yield letter


def plain_letters(word: str) -> Iterator[str]:
    """The letters of a word."""
    yield from word


@tool(thread=True)
def threaded_letters(word: str) -> Generator[str, None, None]:
    """The letters of a word."""
    yield from word


def wrapper(function):
    @wraps(function)
    def wrapped(*words, **named):
        return function(*words, **named)

    return wrapped


class Spelled:
    """The letters of a word."""

    async def __call__(self, word: str) -> AsyncGenerator[str, None]:
        for letter in word:
            yield letter


FUNCTIONS = {
    "letters": letters,
    "plain_letters": plain_letters,
    "threaded_letters": threaded_letters,
    "wrapped_letters": tool(name="wrapped_letters")(wrapper(letters)),
    "partial_letters": tool(name="partial_letters")(partial(plain_letters)),
    "object_letters": tool(name="object_letters")(Spelled()),
}


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize("name", FUNCTIONS)
async def test_what_a_function_yields_comes_in_chunks_and_is_its_value_with_and_without_a_reader(crib_of, name):
    crib = crib_of(*FUNCTIONS.values())
    chunks, result = await streamed(crib, name, word="abc")
    assert chunks == ["a", "b", "c"]
    assert result.value == (await crib.call(name, word="abc")).value == ["a", "b", "c"]
    assert crib.find(name).tool.output_schema == {"type": "array", "items": TEXT}


@pytest.mark.parametrize("name", ["letters", "plain_letters", "threaded_letters"])
def test_plain_code_streams_too(name):
    with Crib(tools=FUNCTIONS.values()) as crib:
        chunks, result = split(list(crib.stream_sync(name, word="abc")))
        assert (chunks, result.value) == (["a", "b", "c"], ["a", "b", "c"])
        assert crib.call_sync(name, word="ab").value == ["a", "b"]


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize("kind", ["async", "plain", "thread"])
async def test_a_chunk_arrives_before_the_call_ends(crib_of, kind):
    going, read = threading.Event(), []

    async def waits() -> AsyncIterator[int]:
        """Yield, and go on when the first chunk was read."""
        yield 1
        assert await asyncio.to_thread(going.wait, SECONDS)
        yield 2

    def holds() -> Iterator[int]:
        """Yield, and hold the loop until the first chunk was read."""
        yield 1
        assert going.wait(SECONDS)
        yield 2

    function = {"async": waits, "plain": holds, "thread": tool(thread=True)(holds)}[kind]
    crib = crib_of(tool(name="sample")(function))
    async with asyncio.timeout(SECONDS), aclosing(crib.stream("sample")) as events:
        async for event in events:
            going.set()
            read.append(event)
    assert split(read)[0] == [1, 2]


async def test_an_output_schema_that_is_a_text_joins_what_is_yielded(crib_of):
    @tool(output_schema=TEXT)
    async def words() -> AsyncIterator[str]:
        """Say something."""
        yield "one "
        yield "text"

    @tool(output_schema=TEXT)
    def numbers():
        """Say something else."""
        yield 1

    crib = crib_of(words, numbers)
    chunks, result = await streamed(crib, "words")
    assert (chunks, result.value, (await crib.call("words")).value) == (["one ", "text"], "one text", "one text")
    assert (await crib.call("numbers")).error.kind is Kind.OUTPUT_INVALID


async def test_the_schema_judges_the_whole_and_chunks_that_came_before_are_marked_unchecked(crib_of):
    @tool(output_schema={"type": "array", "items": {"type": "integer"}, "maxItems": 2})
    def numbers(count: int):
        """Count."""
        yield from range(count)

    crib = crib_of(numbers)
    events = await events_of(crib.stream("numbers", count=3))
    chunks, result = split(events)
    assert chunks == [0, 1, 2]
    assert result.error.kind is Kind.OUTPUT_INVALID
    assert result.value is None
    assert isinstance(events[0], Chunk)
    assert events[0].to_json() == {"number": 1, "value": 0, "checked": False}


async def test_a_tool_that_does_not_stream_gives_just_its_result(crib_of):
    def add(first: int, second: int) -> int:
        """Add."""
        return first + second

    def listed() -> list[int]:
        """List."""
        return [1, 2]

    crib = crib_of(add, listed)
    assert [type(event) for event in await events_of(crib.stream("add", first=1, second=2))] == [Result]
    assert [type(event) for event in await events_of(crib.stream("listed"))] == [Result]
    [refused] = await events_of(crib.stream("unknown"))
    assert (refused.error.kind, refused.refused) == (Kind.NOT_FOUND, True)


async def test_progress_and_messages_of_the_log_come_in_their_order(crib_of):
    async def works(context: Context) -> AsyncIterator[str]:
        """Work."""
        context.progress(1, 2, "half")
        yield "first"
        context.log("info", {"a": 1})
        context.progress(2, 2)

    events = await events_of(crib_of(works).stream("works"))
    assert events[:-1] == [
        Progress(progress=1, total=2, message="half"),
        Chunk(number=1, value="first"),
        LogMessage(level="info", data={"a": 1}, logger="works"),
        Progress(progress=2, total=2, message=""),
    ]


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize("kind", ["async", "plain", "thread"])
async def test_a_reader_that_leaves_ends_the_tool_which_cleans_up(crib_of, kind):
    ended = threading.Event()

    async def endless() -> AsyncIterator[int]:
        """Count for ever."""
        try:
            number = 0
            while True:
                yield number
                number += 1
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            ended.set()

    def plain() -> Iterator[int]:
        """Count for ever."""
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            ended.set()

    function = {"async": endless, "plain": plain, "thread": tool(thread=True)(plain)}[kind]
    crib = crib_of(tool(name="sample")(function))
    async with asyncio.timeout(SECONDS), aclosing(crib.stream("sample")) as events:
        assert (await anext(events)).value == 0
    assert await asyncio.to_thread(ended.wait, SECONDS)
    [line] = [line for line in crib.journal.read() if line["event"] == "call"]
    assert line["error"] == Kind.CANCELLED


async def test_a_tool_waits_for_a_reader_that_is_slower(crib_of):
    yielded = 0

    async def eager() -> AsyncIterator[int]:
        """Yield as fast as it can."""
        nonlocal yielded
        for yielded in range(1, 1_001):
            yield yielded

    events = crib_of(eager).stream("eager")
    async with asyncio.timeout(SECONDS), aclosing(events):
        await anext(events)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert yielded <= MAX_WAITING + 2
        assert len([event async for event in events]) == 1_000


async def test_large_chunks_fill_the_queue_sooner(crib_of):
    yielded = 0

    async def large() -> AsyncIterator[str]:
        """Yield much."""
        nonlocal yielded
        for yielded in range(1, 21):  # noqa: B007 - it is looked at from outside
            yield "x" * 200_000

    events = crib_of(large, calls={"result_bytes": 8_000_000}).stream("large")
    async with asyncio.timeout(SECONDS), aclosing(events):
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert yielded <= 4
        assert len([event async for event in events]) == 20


async def test_a_reader_that_never_reads_on_costs_no_more_than_the_time_limit(crib_of):
    @tool(timeout=0.05)
    async def endless() -> AsyncIterator[int]:
        """Yield for ever."""
        while True:
            yield 1

    events = crib_of(endless).stream("endless")
    async with asyncio.timeout(SECONDS), aclosing(events):
        await anext(events)
        # The call ends although nothing is read.
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        *_, result = [event async for event in events]
    assert result.error.kind is Kind.TIMEOUT


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_stream_that_never_ends_meets_a_limit_of_number(crib_of, monkeypatch, kind, reads):
    monkeypatch.setattr("toolcrib.features.functions.runner.MAX_ITEMS", 100)

    async def endless() -> AsyncIterator[int]:
        """Yield for ever."""
        while True:
            yield 1

    def plain() -> Iterator[int]:
        """Yield for ever."""
        while True:
            yield 1

    crib = crib_of(tool(name="sample")(endless if kind == "async" else plain))
    result = (await streamed(crib, "sample"))[1] if reads else await crib.call("sample")
    assert result.error.kind is Kind.OUTPUT_INVALID
    assert "a generator of more than 100 items" in result.error.message


def test_the_bound_of_chunks_is_that_of_items():
    assert MAX_CHUNKS == MAX_ITEMS


@pytest.mark.parametrize("reads", [True, False])
async def test_a_flood_meets_a_limit_of_bytes(crib_of, monkeypatch, reads):
    monkeypatch.setattr("toolcrib.features.functions.runner.MAX_BYTES", 10_000)

    async def flood() -> AsyncIterator[dict[str, str]]:
        """Yield much."""
        while True:
            yield {"text": "x" * 1_000}

    crib = crib_of(flood)
    result = (await streamed(crib, "flood"))[1] if reads else await crib.call("flood")
    assert "a generator of more than 10,000 bytes" in result.error.message


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize(
    "item", [object(), float("nan"), "\ud800", {1: object()}], ids=["object", "nan", "half a character", "nested"]
)
async def test_an_item_that_is_not_json_is_refused_with_its_place(crib_of, item, reads):
    def odd():
        """Yield something odd."""
        yield 1
        yield item

    crib = crib_of(odd)
    result = (await streamed(crib, "odd"))[1] if reads else await crib.call("odd")
    assert result.error.kind is Kind.OUTPUT_INVALID
    assert "it returned what has no JSON form: [1]" in result.error.message


async def test_a_number_of_any_size_is_a_chunk_as_it_is_a_result(crib_of):
    def large():
        """Yield a large number."""
        yield 2**70

    crib = crib_of(large)
    chunks, result = await streamed(crib, "large")
    assert chunks == result.value == (await crib.call("large")).value == [2**70]


async def test_a_stream_that_dies_in_the_middle_has_its_chunks_and_an_error(crib_of):
    async def dies() -> AsyncIterator[int]:
        """Yield, and fail."""
        yield 1
        raise ToolError(Kind.NOT_FOUND, "no more rows")

    crib = crib_of(dies)
    chunks, result = await streamed(crib, "dies")
    assert (chunks, result.error.kind, result.error.message) == ([1], Kind.NOT_FOUND, "no more rows")


async def test_a_tool_is_not_tried_again_behind_chunks_that_were_read(crib_of):
    tries = 0

    @tool(retry=RetryPolicy(max_attempts=3, initial_delay=0.0))
    async def flaky(at_once: bool) -> AsyncIterator[int]:
        """Fail, before or behind the first item."""
        nonlocal tries
        tries += 1
        if not at_once:
            yield 1
        raise ToolError(Kind.TRANSIENT, "busy", retryable=True)

    crib = crib_of(flaky)
    assert (await streamed(crib, "flaky", at_once=False))[0] == [1]
    assert tries == 1
    await streamed(crib, "flaky", at_once=True)
    assert tries == 4


async def test_chunks_of_a_called_tool_are_not_those_of_its_caller(crib_of):
    async def outer(context: Context) -> AsyncIterator[object]:
        """Call another."""
        yield (await context.call("letters", word="abc")).value

    chunks, result = await streamed(crib_of(outer, letters), "outer")
    assert (chunks, result.value) == ([["a", "b", "c"]], [["a", "b", "c"]])


@pytest.mark.spec("S1-92")
async def test_a_secret_split_over_chunks_does_not_come_out(crib_of, tmp_path):
    async def tells(context: Context) -> AsyncIterator[str]:
        """Tell a secret, letter by letter, and in a message."""
        context.progress(1, 2, "hunter2-hunter2")
        context.log("info", {"said": "hunter2-hunter2"})
        for letter in "it is hunter2-hunter2, or h":
            yield letter

    crib = crib_of(tells, project=tmp_path)
    crib.secrets.set("KEY", "hunter2-hunter2")
    events = await events_of(crib.stream("tells"))
    text = "".join(str(event.value) for event in events if isinstance(event, Chunk))
    assert text == "it is ***, or h"
    assert "hunter2" not in repr(events)
    assert "".join(events[-1].value) == "it is ***, or h"


async def test_functions_that_tools_of_bundles_name_yield_too(crib_of):
    async def count(context: Context, arguments: dict[str, object]) -> AsyncIterator[int]:
        for number in range(int(str(arguments["to"]))):
            yield number

    crib, bundle = crib_of(functions={"count": count}), "018faf50-b7b6-7a01-9a05-a22a6e0af101"
    crib.bundles.put_bundle(bundle, {"slug": "acme", "displayName": "Acme", "isEnabled": True})
    document = {
        "schemaVersion": "toolcrib-1",
        "displayName": "Count",
        "description": "Count.",
        "type": "go",
        "isEnabled": True,
        "argSchema": {"type": "object", "properties": {"to": {"type": "integer"}}},
        "outputSchema": {},
        "impl": {"goFunc": "count"},
    }
    crib.bundles.put_tool(bundle, "count", "v1", document)
    chunks, result = await streamed(crib, "count", to=3)
    assert (chunks, result.value) == ([0, 1, 2], [0, 1, 2])


async def test_an_agent_class_whose_execute_yields_streams(crib_of):
    class Count(BaseTool):
        name = "count"
        description = "Count."
        parameters = {"type": "object", "properties": {}}  # noqa: RUF012 - as authors write it

        async def execute(self, arguments):
            yield 1
            yield 2

    chunks, result = await streamed(crib_of(Count()), "count")
    assert (chunks, result.value) == ([1, 2], [1, 2])


ITEMS = st.one_of(st.integers(-(2**60), 2**60), st.text(max_size=5), st.none(), st.lists(st.booleans(), max_size=2))


@settings(max_examples=40)
@given(items=st.lists(ITEMS, max_size=6), output=st.sampled_from([None, TEXT, {"type": "array"}]), plain=st.booleans())
def test_a_stream_is_the_same_call(items, output, plain):
    """The result is the same with a reader, without one, and on the full path, for anything that is yielded."""

    async def sample():
        """Yield."""
        for item in items:
            yield item

    def plain_sample():
        """Yield."""
        yield from items

    made = tool(name="sample", output_schema=output)(plain_sample if plain else sample)
    with Crib(tools=[made], builtins={"enabled": False}) as crib:
        results = [
            crib.call_sync("sample"),
            crib.call_sync("sample"),
            crib.call_sync(Call(name="sample", mode="text")),
        ]
        *chunks, last = list(crib.stream_sync("sample"))
        found = [(one.value, one.error and one.error.to_json()) for one in (*results, last)]
    assert found.count(found[0]) == 4
    assert [chunk.value for chunk in chunks if isinstance(chunk, Chunk)] == items
