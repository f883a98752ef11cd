"""Getting a tool that may not exist yet."""

import asyncio
import threading
import time

import pytest

from toolcrib import Kind, ToolError

THREAD = "toolcrib-waiting"


def waiting_threads():
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


async def refused(work):
    with pytest.raises(ToolError) as raised:
        async with asyncio.timeout(30):
            await work
    return raised.value


async def until_asked(yard, number=1):
    """Wait until so many requests were filed."""
    async with asyncio.timeout(25):
        while sum(filed.requesters for filed in yard.queue.requests() if not filed.merged_into) < number:
            await asyncio.to_thread(yard.queue.wait, 0.5)


async def until_a_thread_waits(yard):
    async with asyncio.timeout(25):
        while not waiting_threads():
            await asyncio.to_thread(yard.queue.wait, 0.01)


async def until_no_thread_waits():
    for thread in waiting_threads():
        await asyncio.to_thread(thread.join, 10)
    assert waiting_threads() == []


async def test_a_tool_that_is_there_comes_at_once_and_nothing_is_asked_for(yard):
    (yard.tools / "word_counter.py").write_text(yard.code())
    async with asyncio.timeout(25):
        tool = await yard.crib.obtain("word_counter", yard.fields())
    assert tool.address == "tools/word-counter@1.0.0"
    assert yard.requests.list() == []
    assert waiting_threads() == []


@pytest.mark.parametrize("shape", ["fields", "text", "file"])
async def test_a_missing_tool_is_asked_for_and_comes_when_it_is_there(yard, tmp_path, shape):
    (tmp_path / "request.yaml").write_text(yard.text())
    wanted = {"fields": yard.fields(), "text": yard.text(), "file": tmp_path / "request.yaml"}[shape]
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", wanted, experiment="exp_words"))
        await until_asked(yard)
        assert yard.queue.experiments()[0].waits_for == ("word_counter",)
        yard.fulfil()
        tool = await obtaining
    assert tool.address == "tools/word-counter@1.0.0"
    assert (await yard.crib.call("word_counter", text="one two")).value == {"words": 2}
    assert yard.queue.experiments()[0].ready
    await until_no_thread_waits()


async def test_a_builder_in_the_same_process_builds_what_a_caller_waits_for(yard, tmp_path):
    async with asyncio.timeout(60):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", yard.fields()))
        await until_asked(yard)
        await yard.crib.builder(maker="person").build_one()
        [filed] = yard.requests.list()
        (yard.requests.package(filed.id) / "word_counter.py").write_text(yard.code())
        await yard.requests.deliver(filed.id, yard.requests.package(filed.id))
        tool = await obtaining
    assert tool.name == "word_counter"
    (event,) = yard.crib.audit.events()
    assert (event["what"], event["about"], event["facts"]) == ("tool.published", "word_counter", {"request": filed.id})


async def test_many_who_wait_for_many_tools_share_one_request_each_and_one_thread(yard):
    names = [f"tool_{number}" for number in range(5)]
    async with asyncio.timeout(60):
        obtaining = [
            asyncio.create_task(yard.crib.obtain(name, yard.fields(name=name))) for name in names for _ in range(20)
        ]
        await until_asked(yard, len(obtaining))
        assert len(yard.queue.requests()) == len(names)
        assert len(waiting_threads()) == 1
        for _ in names:
            yard.fulfil()
        tools = await asyncio.gather(*obtaining)
    assert [tool.name for tool in tools] == [name for name in names for _ in range(20)]
    await until_no_thread_waits()


async def test_what_is_asked_for_already_is_waited_for_without_a_request(yard):
    filed = yard.requests.new(yard.fields()).filed
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", experiment="exp_late"))
        await until_asked(yard, 2)
        assert [one.id for one in yard.queue.requests()] == [filed.id]
        yard.fulfil()
        assert (await obtaining).name == "word_counter"
    [experiment] = yard.queue.experiments()
    assert (experiment.id, experiment.ready) == ("exp_late", True)


async def test_what_is_wrong_with_a_file_is_told_with_its_name(yard, tmp_path):
    wanted = tmp_path / "request.yaml"
    wanted.write_text("tool_request:\n  name: word_counter\n  priority: urgent\n")
    with pytest.raises(ToolError) as refusal:
        await yard.crib.obtain("word_counter", wanted, seconds=1)
    assert f"{wanted}:3: priority: " in refusal.value.message
    assert yard.queue.requests() == []


async def test_without_a_request_the_meaning_of_a_name_is_not_guessed(yard):
    error = await refused(yard.crib.obtain("word_counter"))
    assert error.kind is Kind.NOT_FOUND
    assert "give the request" in error.message
    assert yard.requests.list() == []


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        ({"name": "other_tool"}, Kind.VALIDATION),
        ("not: a request", Kind.VALIDATION),
        ("", Kind.VALIDATION),
        ("\x00", Kind.VALIDATION),
    ],
)
async def test_a_request_for_something_else_is_refused_and_nothing_is_filed(yard, wanted, kind):
    wanted = yard.fields(**wanted) if isinstance(wanted, dict) else wanted
    error = await refused(yard.crib.obtain("word_counter", wanted))
    assert error.kind is kind
    assert yard.requests.list() == []


async def test_a_file_that_is_none_is_named(yard, tmp_path):
    for path in (tmp_path / "missing.yaml", tmp_path):
        error = await refused(yard.crib.obtain("word_counter", path))
        assert error.kind is Kind.NOT_FOUND
        assert str(path) in error.message


async def test_what_cannot_be_built_says_why_and_by_which_request(yard):
    filed = yard.requests.new(yard.fields()).filed
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter"))
        await until_a_thread_waits(yard)
        yard.queue.fail(yard.claim(), "refused after 3 attempts: no function")
        error = await refused(obtaining)
    assert error.kind is Kind.PERMANENT
    assert "refused after 3 attempts: no function" in error.message
    assert error.details == {"requestId": filed.id}


async def test_what_is_cancelled_says_so(yard):
    filed = yard.requests.new(yard.fields()).filed
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", yard.fields()))
        await until_asked(yard, 2)
        yard.queue.cancel(filed.id, "nobody wants it")
        error = await refused(obtaining)
    assert (error.kind, error.details) == (Kind.CANCELLED, {"requestId": filed.id})
    assert "nobody wants it" in error.message


async def test_a_caller_that_waits_long_enough_gets_the_id_and_the_request_stays(yard):
    error = await refused(yard.crib.obtain("word_counter", yard.fields(), seconds=0.05))
    assert (error.kind, error.retryable) == (Kind.TIMEOUT, True)
    [filed] = yard.requests.list()
    assert error.details == {"requestId": filed.id}
    assert filed.status == "pending"
    await until_no_thread_waits()
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter"))
        await until_a_thread_waits(yard)
        yard.fulfil()
        assert (await obtaining).name == "word_counter"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1])
async def test_a_time_that_is_none_is_refused(yard, seconds):
    error = await refused(yard.crib.obtain("word_counter", yard.fields(), seconds=seconds))
    assert error.kind is Kind.VALIDATION
    assert yard.requests.list() == []


async def test_a_caller_that_is_cancelled_leaves_no_thread_behind(yard):
    yard.requests.new(yard.fields())
    obtaining = [asyncio.create_task(yard.crib.obtain("word_counter", yard.fields())) for _ in range(50)]
    await until_asked(yard, 51)
    await until_a_thread_waits(yard)
    for task in obtaining:
        task.cancel()
    assert all(
        isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*obtaining, return_exceptions=True)
    )
    await until_no_thread_waits()


async def test_a_waiting_caller_is_sent_home_when_the_crib_is_closed(yard):
    yard.requests.new(yard.fields())
    obtaining = asyncio.create_task(yard.crib.obtain("word_counter", yard.fields()))
    await until_asked(yard, 2)
    await until_a_thread_waits(yard)
    yard.requests.close()
    assert (await refused(obtaining)).kind is Kind.CANCELLED
    assert (await refused(yard.crib.obtain("word_counter", yard.fields()))).kind is Kind.CANCELLED
    await until_no_thread_waits()


async def test_a_tool_that_is_switched_off_is_not_built_again(yards):
    yard = yards(catalog={"disabled": ["word_counter"]})
    (yard.tools / "word_counter.py").write_text(yard.code())
    error = await refused(yard.crib.obtain("word_counter", yard.fields()))
    assert error.kind is Kind.DISABLED
    assert yard.requests.list() == []


async def test_a_tool_that_another_caller_requested_differently_is_the_tool_of_that_name(yard):
    yard.requests.new(yard.fields(description="Another request for the same name"))
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", yard.fields()))
        await until_asked(yard, 2)
        yard.fulfil()
        yard.queue.fail(yard.claim(), "tools/word-counter@1.0.0 is registered already")
        assert (await obtaining).name == "word_counter"


async def test_a_tool_that_was_announced_and_is_nowhere_to_be_found_here_says_so(yard, monkeypatch):
    monkeypatch.setattr("toolcrib.features.requests.auto_request.SEEN_SECONDS", 0.1)
    yard.requests.new(yard.fields())
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter"))
        await until_a_thread_waits(yard)
        yard.fulfil()
        (yard.tools / "word_counter.py").unlink()
        error = await refused(obtaining)
    assert error.kind is Kind.NOT_FOUND
    assert "no such tool is registered here" in error.message


async def test_waiting_survives_a_queue_that_is_away_for_a_while(yard, monkeypatch):
    queue = yard.crib._requests.queue
    real, asked, away = queue.wait, threading.Event(), threading.Event()

    def wait(seconds):
        if away.is_set():
            asked.set()
            raise ToolError(Kind.TRANSIENT, "the queue cannot be reached")
        return real(seconds)

    monkeypatch.setattr(queue, "wait", wait)
    away.set()
    async with asyncio.timeout(25):
        obtaining = asyncio.create_task(yard.crib.obtain("word_counter", yard.fields()))
        assert await asyncio.to_thread(asked.wait, 10)
        yard.fulfil()
        away.clear()
        assert (await obtaining).name == "word_counter"


async def test_waiting_costs_next_to_nothing(yard):
    """Measured in time of the processor and not by the clock, so that a busy machine does not matter."""
    yard.requests.new(yard.fields())
    obtaining = [asyncio.create_task(yard.crib.obtain("word_counter")) for _ in range(20)]
    await until_a_thread_waits(yard)
    before = time.process_time()
    await asyncio.to_thread(yard.queue.wait, 0.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*map(asyncio.shield, obtaining)), 1.0)
    assert time.process_time() - before < 0.5
    yard.fulfil()
    async with asyncio.timeout(25):
        await asyncio.gather(*obtaining)
