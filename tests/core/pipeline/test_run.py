"""Running: deadlines, cancellation, retries, failures, answers. The pipeline never raises."""

import asyncio
import contextlib
import gc
import logging
import signal
import threading
import time
import weakref

import pytest

from toolcrib import Call, Context, Cost, Crib, Intent, Kind, RetryPolicy, Session, ToolError, tool
from toolcrib.model.result import Outcome


@tool
async def forever() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


async def test_a_tool_that_waits_too_long_is_stopped_and_says_so(crib_of):
    ended = []

    @tool(timeout=0.05)
    async def slow() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    result = await crib_of(slow).call("slow")
    assert result.error.kind is Kind.TIMEOUT
    assert result.error.partial_side_effects
    assert not result.error.retryable
    assert "slow was stopped after 0.0" in result.error.message
    assert ended == [True]
    assert asyncio.current_task().cancelling() == 0


async def test_the_default_time_limit_is_a_setting(crib_of):
    result = await crib_of(forever, calls={"timeout_ms": 40}).call("forever")
    assert result.error.kind is Kind.TIMEOUT


async def test_a_caller_can_only_shorten_the_time(crib_of):
    crib = crib_of(forever, calls={"timeout_ms": 60})
    assert (await crib.call(Call(name="forever", deadline=time.monotonic() + 0.01))).error.kind is Kind.TIMEOUT
    assert (await crib.call(Call(name="forever", deadline=time.monotonic() + 1000))).error.kind is Kind.TIMEOUT
    gone = await crib.call(Call(name="forever", deadline=time.monotonic() - 1))
    assert "has passed" in gone.error.message
    assert gone.error.details["gate"] == "budget"
    assert not gone.error.partial_side_effects


async def test_each_of_many_calls_is_stopped_at_its_own_time(crib_of):
    tools = []
    for number, seconds in enumerate([0.3, 0.05, 0.2, 0.1]):

        async def wait() -> None:
            """Wait for ever."""
            await asyncio.Event().wait()

        tools.append(tool(name=f"wait{number}", timeout=seconds)(wait))
    crib = crib_of(*tools)
    order = []

    async def one(name):
        assert (await crib.call(name)).error.kind is Kind.TIMEOUT
        order.append(name)

    await asyncio.gather(*(one(f"wait{number}") for number in range(4)))
    assert order == ["wait1", "wait3", "wait2", "wait0"]


async def test_cancelling_the_caller_cancels_the_tool_and_is_written_down(crib_of):
    started, ended = asyncio.Event(), []

    @tool
    async def slow() -> None:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    crib = crib_of(slow)
    task = asyncio.create_task(crib.call("slow"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]
    assert [line["error"] for line in crib.journal.read()] == ["CANCELLED"]


async def test_the_callers_own_timeout_is_not_mistaken_for_ours(crib_of):
    crib = crib_of(forever)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await crib.call("forever")


class Held:
    """Something large."""


HELD: list[weakref.ref[Held]] = []


@tool
async def hold() -> None:
    """Wait for ever, with something large in hand."""
    large = Held()
    HELD.append(weakref.ref(large))
    await asyncio.Event().wait()


@tool
async def hold_with_context(context: Context) -> None:
    """Wait for ever, with something large in hand."""
    await hold()


@pytest.mark.parametrize("name", ["hold", "hold_with_context"])
async def test_what_a_cancelled_call_held_is_freed_with_it_and_not_by_the_collector(crib_of, name):
    crib = crib_of(hold, hold_with_context)
    HELD.clear()
    gc.disable()
    try:
        task = asyncio.create_task(crib.call(name))
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(HELD) == 1
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        del task
        await asyncio.sleep(0)
        assert HELD[0]() is None
    finally:
        gc.enable()


async def test_a_call_made_while_its_task_is_being_cancelled_still_has_a_deadline(crib_of):
    crib = crib_of(forever, calls={"timeout_ms": 30})
    results = []

    async def clean_up():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            results.append(await crib.call("forever"))
            raise

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert results[0].error.kind is Kind.TIMEOUT


async def test_a_tool_that_swallows_its_cancellation_is_struck_again(crib_of, monkeypatch):
    monkeypatch.setattr("toolcrib.core.execution.CANCEL_AGAIN_SECONDS", 0.02)

    @tool(timeout=0.02)
    async def stubborn() -> None:
        """Swallow the first cancellation."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    result = await crib_of(stubborn).call("stubborn")
    assert result.error.kind is Kind.TIMEOUT
    assert asyncio.current_task().cancelling() == 0


async def test_an_answer_that_comes_after_the_stop_does_not_count(crib_of):
    @tool(timeout=0.02)
    async def late() -> int:
        """Answer after being stopped."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return 5

    result = await crib_of(late).call("late")
    assert result.error.kind is Kind.TIMEOUT
    assert asyncio.current_task().cancelling() == 0


async def test_a_tool_that_cancels_itself_fails_without_cancelling_its_caller(crib_of):
    @tool
    async def gives_up() -> None:
        """Raise the wrong thing."""
        raise asyncio.CancelledError

    result = await crib_of(gives_up).call("gives_up")
    assert result.error.kind is Kind.CANCELLED


async def test_a_tool_runs_in_the_task_of_its_caller(crib_of):
    @tool
    async def which() -> bool:
        """Tell whether the task is the caller's."""
        await asyncio.sleep(0)
        return asyncio.current_task() is mine

    mine = asyncio.current_task()
    assert (await crib_of(which).call("which")).value is True


async def test_a_plain_function_runs_inline_and_is_told_about_when_it_holds_the_loop(crib_of, caplog):
    threads = []

    @tool
    def blocks() -> None:
        """Hold the loop."""
        threads.append(threading.current_thread())
        until = time.monotonic() + 0.06
        while time.monotonic() < until:
            pass

    result = await crib_of(blocks).call("blocks")
    assert result.ok
    assert threads == [threading.current_thread()]
    assert "@tool(thread=True)" in result.meta["warnings"][0]
    assert "held everything else up" in caplog.text


async def test_a_plain_function_past_its_limit_is_measured_and_not_interrupted(crib_of):
    @tool
    def blocks() -> int:
        """Hold the loop."""
        until = time.monotonic() + 0.06
        while time.monotonic() < until:
            pass
        return 1

    result = await crib_of(blocks, calls={"timeout_ms": 10}).call("blocks")
    assert result.value == 1
    assert "time limit of 0.01 s" in result.meta["warnings"][0]


async def test_a_function_that_asks_for_a_thread_gets_one_and_can_be_given_up(crib_of):
    release = threading.Event()

    @tool(thread=True, timeout=0.05)
    def hangs() -> None:
        """Hang."""
        release.wait(10)

    @tool(thread=True)
    def where() -> str:
        """Tell the thread."""
        return threading.current_thread().name

    crib = crib_of(hangs, where)
    assert (await crib.call("where")).value == "toolcrib where"
    result = await crib.call("hangs")
    release.set()
    assert result.error.kind is Kind.TIMEOUT


async def test_an_explicit_time_limit_moves_a_plain_function_to_a_thread(crib_of):
    @tool(timeout=5)
    def where() -> str:
        """Tell the thread."""
        return threading.current_thread().name

    assert (await crib_of(where).call("where")).value == "toolcrib where"


async def test_threads_are_bounded_and_the_refusal_is_polite(crib_of):
    from toolcrib.features.functions import runner as module

    release = threading.Event()

    @tool(thread=True)
    def waits() -> None:
        """Wait to be released."""
        release.wait(10)

    crib = crib_of(waits)
    crib._resources.runners["function"] = module.FunctionRunner(max_threads=2)
    tasks = [asyncio.create_task(crib.call("waits")) for _ in range(3)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=5)
    release.set()
    refused = done.pop().result()
    assert refused.error.kind is Kind.OVERLOADED
    assert refused.error.retryable
    assert [result.ok for result in await asyncio.gather(*tasks)].count(True) == 2


async def test_a_thread_that_cannot_be_started_takes_no_place(crib_of, monkeypatch):
    from toolcrib.features.functions import runner as module

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    @tool(thread=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    crib = crib_of(add)
    crib._resources.runners["function"] = module.FunctionRunner(max_threads=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        refused = await crib.call("add", a=1, b=2)
    assert (refused.error.kind, refused.error.retryable) == (Kind.OVERLOADED, True)
    assert refused.error.message == "no thread can be started: can't start new thread; call again later"
    assert (await crib.call("add", a=1, b=2)).value == 3


@pytest.mark.spec("S4-28")
@pytest.mark.parametrize("make_async", [False, True])
async def test_an_unexpected_exception_is_logged_whole_and_answered_plainly(crib_of, caplog, make_async):
    if make_async:

        @tool
        async def breaks() -> None:
            """Break."""
            raise ValueError("password=hunter2")

    else:

        @tool
        def breaks() -> None:
            """Break."""
            raise ValueError("password=hunter2")

    result = await crib_of(breaks).call("breaks")
    assert result.error.kind is Kind.INTERNAL
    assert result.error.partial_side_effects
    assert result.error.message == "breaks failed unexpectedly (ValueError); the log has the details"
    assert "hunter2" not in str(result.to_json())
    assert "hunter2" in caplog.text
    assert 'raise ValueError("password=hunter2")' in caplog.text


@pytest.mark.parametrize(
    "problem", [SystemExit(3), RecursionError(), StopIteration(), BaseExceptionGroup("g", [SystemExit()])]
)
async def test_nothing_that_a_tool_raises_escapes(crib_of, problem):
    @tool
    async def breaks() -> None:
        """Break."""
        raise problem

    result = await crib_of(breaks).call("breaks")
    assert result.error.kind is Kind.INTERNAL


async def test_nothing_that_a_returned_object_raises_escapes(crib_of):
    class Odd:
        def __init__(self):
            self.field = 1

        def __getattribute__(self, name):
            if name == "field":
                raise SystemExit(3)
            return super().__getattribute__(name)

    @tool
    def returns() -> object:
        """Return it."""
        return Odd()

    crib = crib_of(returns)
    for _ in range(2):  # by the full pipeline, then by the fast path
        assert (await crib.call("returns")).error.kind is Kind.INTERNAL


@pytest.mark.parametrize("problem", [KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("how", ["plain", "at once", "after a wait", "in a thread"])
async def test_no_tool_ends_the_event_loop_by_what_it_raises(crib_of, problem, how):
    @tool(thread=how == "in a thread")
    def breaks() -> None:
        """Break."""
        raise problem

    @tool(name="breaks")
    async def breaks_later() -> None:
        """Break."""
        if how == "after a wait":
            await asyncio.sleep(0)
        raise problem

    crib = crib_of(breaks if how in {"plain", "in a thread"} else breaks_later)
    # Twice: the first call takes the full pipeline.
    for _ in range(2):
        result = await crib.call("breaks")
        assert result.error.kind is Kind.INTERNAL
        assert result.error.message.startswith("breaks failed unexpectedly (")


def test_a_generator_exit_of_a_plain_function_is_a_result_without_a_loop_too():
    @tool
    def breaks() -> None:
        """Break."""
        raise GeneratorExit

    with Crib(tools=[breaks]) as crib:
        for _ in range(2):
            assert crib.call_sync("breaks").error.message.startswith("breaks failed unexpectedly (GeneratorExit)")


def test_an_interrupt_of_the_host_program_is_let_through():
    @tool
    def interrupted() -> None:
        """Be interrupted."""
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Crib(tools=[interrupted]).call_sync("interrupted")


async def test_an_interrupt_in_a_loop_with_pythons_own_handler_is_let_through(crib_of):
    @tool
    def interrupted() -> None:
        """Be interrupted."""
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            await crib_of(interrupted).call("interrupted")
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_call_that_is_dropped_unfinished_can_be_closed():
    ended = []

    @tool
    async def waits() -> None:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        call = Crib(tools=[waits]).call("waits")
        task = loop.create_task(call)
        loop.run_until_complete(asyncio.sleep(0))
        call.close()
        assert ended == [True]
        # It would report that it was dropped while it waits.
        task._log_destroy_pending = False


@pytest.mark.spec("S2-64")
async def test_a_tool_error_is_handed_on_as_it_was_raised(crib_of):
    @tool
    def conflict() -> None:
        """Find a conflict."""
        raise ToolError(
            Kind.CONFLICT,
            "changed meanwhile",
            retryable=True,
            partial_side_effects=False,
            details={"version": 2},
            value={"seen": 1},
        )

    result = await crib_of(conflict).call("conflict")
    assert result.to_json()["error"] == {
        "type": "CONFLICT",
        "message": "changed meanwhile",
        "retryable": True,
        "partialSideEffects": False,
        "details": {"version": 2},
    }
    assert result.value == {"seen": 1}
    assert result.error.__traceback__ is None
    assert result.error.__context__ is None


def failing(times: int, problem: Exception, **options):
    attempts = []

    @tool(**options)
    async def flaky() -> int:
        """Fail a few times."""
        attempts.append(time.monotonic())
        if len(attempts) <= times:
            raise problem
        return len(attempts)

    return flaky, attempts


TRANSIENT = ToolError(Kind.TRANSIENT, "busy", retryable=True)


def without_waiting(crib):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    crib._pipeline._sleep = sleep
    return waits


@pytest.mark.spec("S3-35", "S3-56")
async def test_an_explicit_policy_waits_exactly_as_it_says(crib_of):
    policy = RetryPolicy(max_attempts=3, initial_delay=1, max_delay=60, multiplier=2)
    flaky, attempts = failing(2, TRANSIENT, retry=policy)
    crib = crib_of(flaky)
    waits = without_waiting(crib)
    result = await crib.call("flaky")
    assert result.value == 3
    assert result.meta["attempts"] == 3
    assert waits == [1, 2]
    assert len(attempts) == 3


@pytest.mark.spec("S3-35")
async def test_a_policy_never_tries_more_often_than_it_says(crib_of):
    flaky, attempts = failing(9, TRANSIENT, retry=RetryPolicy(max_attempts=2, initial_delay=0))
    crib = crib_of(flaky)
    result = await crib.call("flaky")
    assert result.error.kind is Kind.TRANSIENT
    assert len(attempts) == 2


@pytest.mark.spec("S2-11")
@pytest.mark.parametrize(
    ("options", "problem", "expected"),
    [
        ({}, TRANSIENT, 1),
        ({"idempotent": True}, TRANSIENT, 3),
        ({"idempotent": True}, ConnectionResetError(), 3),
        ({"idempotent": True}, ToolError(Kind.PERMANENT, "no"), 1),
        ({"idempotent": True}, ToolError(Kind.VALIDATION, "no"), 1),
        ({"idempotent": True}, ValueError("no"), 1),
        ({"idempotent": True}, ToolError(Kind.TRANSIENT, "x", retryable=True, partial_side_effects=True), 3),
        (
            {"retry": RetryPolicy(max_attempts=3)},
            ToolError(Kind.TRANSIENT, "x", retryable=True, partial_side_effects=True),
            3,
        ),
    ],
)
async def test_only_what_may_be_repeated_is_repeated(crib_of, options, problem, expected):
    flaky, attempts = failing(9, problem, **options)
    crib = crib_of(flaky)
    without_waiting(crib)
    assert not (await crib.call("flaky")).ok
    assert len(attempts) == expected


@pytest.mark.parametrize(("asked", "waits"), [(2.5, [2.5]), (0.1, [1]), (61, []), ("soon", [1])])
async def test_the_wait_that_a_server_asks_for_is_kept_up_to_a_minute(crib_of, asked, waits):
    busy = ToolError(Kind.RATE_LIMIT, "slow down", retryable=True, details={"retryAfter": asked})
    flaky, attempts = failing(1, busy, retry=RetryPolicy(max_attempts=2, initial_delay=1))
    crib = crib_of(flaky)
    waited = without_waiting(crib)
    result = await crib.call("flaky")
    assert (waited, result.ok, len(attempts)) == (waits, bool(waits), 1 + len(waits))


@pytest.mark.parametrize("options", [{"idempotent": True}, {"retry": RetryPolicy(max_attempts=3)}])
async def test_nothing_is_repeated_in_voice_mode(crib_of, options):
    flaky, attempts = failing(9, TRANSIENT, **options)
    crib = crib_of(flaky)
    without_waiting(crib)
    await crib.call(Call(name="flaky", session=Session(id="s", mode="voice")))
    assert len(attempts) == 1


async def test_no_attempt_is_made_that_the_deadline_would_not_allow(crib_of):
    flaky, attempts = failing(9, TRANSIENT, retry=RetryPolicy(max_attempts=9, initial_delay=100))
    crib = crib_of(flaky)
    waits = without_waiting(crib)
    assert (await crib.call("flaky")).error.kind is Kind.TRANSIENT
    assert len(attempts) == 1
    assert waits == []


async def test_our_own_default_waits_are_spread_out(crib_of):
    seen = set()
    for _ in range(8):
        flaky, _ = failing(1, TRANSIENT, idempotent=True)
        crib = crib_of(flaky)
        waits = without_waiting(crib)
        await crib.call("flaky")
        assert 0 <= waits[0] <= 0.3
        seen.add(waits[0])
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("hint", "value", "fits"),
    [
        (int, 3, True),
        (int, "3", False),
        (int, True, False),
        (str, "x", True),
        (str, None, False),
        (list[int], [1, 2], True),
        (list[int], [1, "2"], False),
        (dict[str, int], {"a": 1}, True),
        (int, object(), False),
        (float, float("nan"), False),
    ],
)
async def test_what_a_tool_returns_is_what_it_promises(crib_of, hint, value, fits):
    def gives():
        """Give a value."""
        return value

    gives.__annotations__["return"] = hint
    result = await crib_of(gives).call("gives")
    assert result.ok is fits
    if not fits:
        assert result.error.kind is Kind.OUTPUT_INVALID
        assert result.error.partial_side_effects
        assert result.value is None


class Unloaded(dict):
    def items(self):
        raise KeyError("not loaded")


@pytest.mark.parametrize(
    "value",
    [object(), {"x": lambda: 1}, [float("inf")], {"a": [float("nan")]}, "\ud800", {1, object()}, Unloaded(a=1)],
)
async def test_an_answer_that_is_not_json_is_refused_even_without_a_promise(crib_of, value):
    def gives():
        """Give a value."""
        return value

    result = await crib_of(gives).call("gives")
    assert result.error.kind is Kind.OUTPUT_INVALID


async def test_an_answer_without_a_promise_becomes_plain_json(crib_of):
    import datetime as dt
    import pathlib
    import uuid

    def gives():
        """Give a value."""
        return {
            "at": dt.date(2026, 1, 2),
            "id": uuid.UUID(int=1),
            "where": pathlib.PurePosixPath("/x"),
            "set": {1},
        }

    result = await crib_of(gives).call("gives")
    assert result.value == {"at": "2026-01-02", "id": str(uuid.UUID(int=1)), "where": "/x", "set": [1]}


@pytest.mark.spec("S2-14")
async def test_a_late_answer_is_handed_over_with_a_warning(crib_of, caplog):
    @tool(latency_budget_ms=1)
    async def late() -> int:
        """Be late."""
        await asyncio.sleep(0.005)
        return 1

    result = await crib_of(late).call("late")
    assert result.value == 1
    assert "its budget is 1 ms" in result.meta["warnings"][0]
    assert "its budget is 1 ms" in caplog.text


@pytest.mark.spec("S3-36")
async def test_the_cost_of_a_call_is_told_and_written_down(crib_of):
    @tool(cost=Cost(per_invocation=0.01, per_minute=0.0, currency="EUR"))
    def costly() -> int:
        """Cost something."""
        return 1

    crib = crib_of(costly)
    result = await crib.call("costly")
    assert result.meta["cost"] == {"amount": 0.01, "currency": "EUR"}
    assert next(crib.journal.read())["cost"] == {"amount": 0.01, "currency": "EUR"}


@pytest.mark.spec("S4-24")
async def test_each_execution_is_logged_without_its_arguments(crib_of, caplog):
    @tool
    def greet(secret: str) -> str:
        """Greet."""
        return secret

    crib = crib_of(greet)
    with caplog.at_level(logging.INFO, "toolcrib"):
        await crib.call("greet", secret="hunter2")
        await crib.call("greet", secret=5)
    texts = [record.getMessage() for record in caplog.records]
    assert "starts for local" in texts[0]
    assert "greet succeeded after" in texts[1]
    assert "VALIDATION" in texts[2]
    assert "hunter2" not in caplog.text
    lines = list(crib.journal.read())
    assert [(line["ok"], line.get("error")) for line in lines] == [(True, None), (False, "VALIDATION")]
    assert "hunter2" not in str(lines)


async def test_a_tool_may_call_another_within_what_it_declares_itself(crib_of):
    @tool(requires=["net.http"])
    def inner(n: int) -> int:
        """Double."""
        return 2 * n

    @tool(requires=["net.http"])
    async def outer(n: int, context: Context) -> dict:
        """Call another."""
        result = await context.call("inner", n=n)
        return {"value": result.value, "caller": context.caller}

    @tool
    async def sneaky(n: int, context: Context) -> str:
        """Call another without declaring what it needs."""
        result = await context.call("inner", {"n": n})
        return result.error.kind

    crib = crib_of(inner, outer, sneaky, grants={"*": ["net.http"]})
    assert (await crib.call(Call(name="outer", arguments={"n": 2}, caller="ann"))).value == {
        "value": 4,
        "caller": "ann",
    }
    assert (await crib.call("sneaky", n=2)).value == "CAPABILITY_MISSING"


async def test_tools_that_call_each_other_end_at_ten_deep(crib_of):
    @tool
    async def again(n: int, context: Context) -> int:
        """Call itself."""
        result = await context.call("again", n=n + 1)
        return n if result.error and result.error.kind is Kind.CHAIN_TOO_DEEP else int(str(result.value))

    assert (await crib_of(again).call("again", n=0)).value == 10


async def test_a_nested_call_has_only_the_time_that_is_left(crib_of):
    @tool(timeout=60)
    async def inner() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    @tool(timeout=0.05)
    async def outer(context: Context) -> str:
        """Call something slow."""
        result = await context.call("inner")
        return result.error.kind

    result = await crib_of(inner, outer).call("outer")
    assert result.error.kind is Kind.TIMEOUT
    assert asyncio.current_task().cancelling() == 0


async def test_a_tool_can_put_an_event_on_record(crib_of):
    @tool
    def noted(context: Context) -> None:
        """Note something."""
        context.audit("noticed", {"n": 1})

    crib = crib_of(noted)
    await crib.call(Call(name="noted", caller="ann"))
    line = next(crib.journal.read())
    assert (line["event"], line["tool"], line["caller"], line["data"]) == (
        "noticed",
        "host/noted@1.0.0",
        "ann",
        {"n": 1},
    )


async def test_intents_arrive_in_their_order(crib_of):
    @tool
    def asks():
        """Ask for something."""
        return Outcome(value=1, intents=(Intent(type="A"), Intent(type="B", fields={"after": "turn"})))

    result = await crib_of(asks).call("asks")
    assert result.to_json()["intents"] == [{"type": "A"}, {"type": "B", "after": "turn"}]


async def test_calls_side_by_side_do_not_mix(crib_of):
    @tool
    async def echo(n: int) -> int:
        """Echo after a turn or two."""
        for _ in range(n % 3):
            await asyncio.sleep(0)
        return n

    crib = crib_of(echo)
    results = await crib.call_all(Call(name="echo", arguments={"n": n}, id=f"c{n}") for n in range(200))
    assert [result.value for result in results] == list(range(200))
    assert [result.meta["callId"] for result in results] == [f"c{n}" for n in range(200)]


def test_one_crib_serves_several_event_loops_and_threads():
    from toolcrib import Crib

    @tool(timeout=0.2)
    async def slow() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    crib = Crib(tools=[slow])
    kinds = []

    def work():
        for _ in range(2):
            kinds.append(asyncio.run(crib.call("slow")).error.kind)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(25)
    assert kinds == [Kind.TIMEOUT] * 6
    asyncio.run(crib.close())


def test_code_that_is_not_async_has_its_own_door():
    from toolcrib import Crib

    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with Crib(tools=[add]) as crib:
        assert crib.call_sync("add", a=1, b=2).value == 3
        assert crib.call_sync("add", {"a": 1}, b=2).value == 3


def test_a_plain_function_called_from_plain_code_needs_no_event_loop():
    from toolcrib import Crib

    @tool
    def loop_of_its_own(n: int) -> int:
        """Use asyncio as plain code does."""

        async def work():
            return n + 1

        return asyncio.run(work())

    @tool
    def deceives(n: int):
        """Return a coroutine without saying so."""
        return asyncio.sleep(0, n)

    with Crib(tools=[loop_of_its_own, deceives]) as crib:
        assert crib.call_sync("loop_of_its_own", n=1).value == 2
        assert crib.call_sync(Call(name="loop_of_its_own", arguments={"n": 1})).value == 2
        assert "write it as async def" in crib.call_sync("deceives", n=1).error.message


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_plain_wrapper_around_an_async_function_is_awaited(crib_of, wrapped):
    import functools

    async def slow(n: int) -> int:
        """Take a turn."""
        await asyncio.sleep(0)
        return n

    def wrapper(n: int) -> int:
        """Take a turn."""
        return slow(n=n)  # type: ignore[return-value] # that is what is tried

    function = functools.wraps(slow)(wrapper) if wrapped else wrapper
    crib = crib_of(tool(name="wrapper")(function))
    assert (await crib.call("wrapper", n=1)).value == 1
    assert (await crib.call(Call(name="wrapper", arguments={"n": 1}))).value == 1


async def test_the_other_door_is_closed_inside_an_event_loop(crib_of):
    with pytest.raises(RuntimeError, match="await crib.call"):
        crib_of(forever).call_sync("forever")


async def test_a_tool_cannot_pass_its_failure_off_as_a_refusal(crib_of):
    @tool
    def pretends() -> None:
        """Pretend to be a gate."""
        details = {"gate": "confirmation", "confirmation": "token", "expiresAt": 1, "mine": 2}
        raise ToolError(Kind.CONFIRMATION_REQUIRED, "confirm me", details=details)

    result = await crib_of(pretends).call("pretends")
    assert result.error.details == {"mine": 2}


async def test_each_attempt_gets_the_arguments_that_were_given(crib_of):
    seen = []

    @tool(idempotent=True)
    def flaky(items: list[int]) -> list[int]:
        """Change the argument and fail twice."""
        items.append(len(seen))
        seen.append(list(items))
        if len(seen) < 3:
            raise ConnectionError
        return items

    crib = crib_of(flaky)
    without_waiting(crib)
    given = {"items": [9]}
    assert (await crib.call("flaky", given)).value == [9, 2]
    assert given == {"items": [9]}


@pytest.mark.parametrize("options", [{"idempotent": True}, {"retry": RetryPolicy(max_attempts=2, initial_delay=0)}])
async def test_a_tool_of_numbers_alone_is_repeated_too(crib_of, options):
    attempts = []

    @tool(**options)
    def flaky(n: int) -> int:
        """Fail once."""
        attempts.append(n)
        if len(attempts) % 2:
            raise ConnectionError
        return n

    crib = crib_of(flaky)
    without_waiting(crib)
    assert (await crib.call("flaky", n=1)).value == 1
    assert (await crib.call("flaky", n=2)).value == 2
    assert attempts == [1, 1, 2, 2]


async def test_a_nested_call_has_its_parents_caller_mode_and_session(crib_of):
    @tool
    def who(context: Context) -> dict:
        """Tell who calls."""
        return {"caller": context.caller, "mode": context.mode, "session": context.session and context.session.id}

    @tool
    async def asks(context: Context) -> object:
        """Ask another tool."""
        result = await context.call("who")
        return result.value if result.ok else str(result.error.kind)

    crib = crib_of(who, asks)
    session = Session(id="s1", mode="voice", max_calls=2)
    result = await crib.call(Call(name="asks", caller="ada", session=session))
    assert result.value == {"caller": "ada", "mode": "voice", "session": "s1"}
    assert result.meta["steps"] == {"used": 2, "max": 2}
    one = Session(id="s2", max_calls=1)
    assert (await crib.call(Call(name="asks", session=one))).value == "BUDGET_EXCEEDED"
    assert (await crib.call(Call(name="asks", mode="voice"))).value["mode"] == "voice"


async def test_a_tool_learns_no_confirmation_from_the_tools_it_calls(crib_of):
    @tool(confirm=True)
    def pay(n: int) -> int:
        """Pay."""
        return n

    @tool
    async def asks(context: Context) -> dict:
        """Ask another tool."""
        return (await context.call("pay", n=1)).to_json()

    crib = crib_of(pay, asks)
    inner = (await crib.call("asks")).value
    assert inner["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert "confirmation" not in inner["error"]["details"]
    assert "confirmation" in (await crib.call("pay", n=1)).error.details


async def test_a_result_that_cannot_be_kept_is_told_and_never_raised(crib_of, project, caplog):
    (project / ".toolcrib").write_text("in the way")

    @tool
    def much(n: int) -> str:
        """Give much."""
        return "x" * n

    @tool
    def fails(n: int) -> str:
        """Fail with much."""
        raise ToolError(Kind.PERMANENT, "no", value="y" * n)

    crib = crib_of(much, fails, project=project, calls={"result_bytes": 10_000})
    result = await crib.call("much", n=20_000)
    assert result.value == "x" * 2_000
    assert "the rest of 20000 letters could not be stored" in result.meta["warnings"]
    assert "kept" not in result.meta
    partial = await crib.call("fails", n=20_000)
    assert partial.error.kind is Kind.PERMANENT
    assert partial.value == "y" * 2_000
    odd = await crib_of(much, calls={"result_bytes": 10}).call(Call(name="much", arguments={"n": 50}, caller="\ud800"))
    assert odd.meta["warnings"]


@pytest.mark.parametrize("name", [None, 5, ["x"], b"add", {"a": 1}])
async def test_a_name_that_is_no_text_is_refused_and_never_raised(crib_of, name):
    for result in (await crib_of().call(name), await crib_of().call(Call(name=name))):
        assert result.error.kind is Kind.VALIDATION
        assert "the name of a tool is a text" in result.error.message


@pytest.mark.parametrize("hint", [None, int])
async def test_a_function_may_return_an_outcome_whichever_way_it_is_called(crib_of, hint):
    def asks(n: int):
        """Ask for something."""
        return Outcome(value=n, intents=(Intent(type="A"),), meta={"mine": 1})

    if hint is not None:
        asks.__annotations__["return"] = hint
    crib = crib_of(asks)
    for result in (
        await crib.call("asks", n=1),
        await crib.call("asks", n=1),
        await crib.call(Call(name="asks", arguments={"n": 1})),
    ):
        assert result.value == 1
        assert result.intents == (Intent(type="A"),)
        assert result.meta["mine"] == 1


async def test_a_tool_cannot_write_a_call_down_that_never_was(crib_of):
    @tool
    def pretends(context: Context) -> None:
        """Write a call down."""
        context.audit("call", {"tool": "bank/pay"})

    crib = crib_of(pretends)
    await crib.call("pretends")
    assert [line["event"] for line in crib.journal.read()] == ["audit:call", "call"]


async def test_a_tool_that_outlives_a_cancellation_of_its_own_goes_on_as_if_awaited(crib_of):
    """The first step is taken by hand; an exception that is thrown in later must reach the tool at the right place."""
    seen = []

    @tool
    async def hardy(n: int) -> int:
        """Catch what is thrown, and go on waiting."""
        for turn in range(3):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                seen.append(turn)
        await asyncio.sleep(0)
        return n

    crib = crib_of(hardy)
    for _ in range(2):
        task = asyncio.create_task(crib.call("hardy", n=7))
        for _ in range(3):
            await asyncio.sleep(0.01)
            task.cancel()
        assert (await task).value == 7
    assert seen == [0, 1, 2, 0, 1, 2]


async def test_a_call_that_is_no_longer_awaited_closes_its_tool(crib_of):
    closed = []

    @tool
    async def open_ended(n: int) -> int:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(n)
        return n

    crib = crib_of(open_ended)
    await crib.call("open_ended", n="x")
    for number in (1, 2):
        coroutine = crib.call("open_ended", n=number)
        coroutine.send(None)
        coroutine.close()
    assert closed == [1, 2]


@pytest.mark.spec("S3-38")
async def test_a_deprecated_tool_warns_whenever_it_is_used(crib_of):
    from dataclasses import replace

    from toolcrib import tool_of

    def old(n: int) -> int:
        """Double a number, the old way."""
        if n < 0:
            raise ToolError(Kind.PERMANENT, "no negative numbers")
        return 2 * n

    crib = crib_of(replace(tool_of(old), deprecated=True))
    good, bad, refused = await crib.call("old", n=1), await crib.call("old", n=-1), await crib.call("old", n="x")
    assert (good.value, good.meta["warnings"]) == (2, ["old is deprecated"])
    assert (bad.error.kind, bad.meta["warnings"]) == (Kind.PERMANENT, ["old is deprecated"])
    assert "warnings" not in refused.meta


async def test_a_failure_says_how_often_it_was_tried(crib_of):
    @tool(retry=RetryPolicy(max_attempts=3, initial_delay=0))
    def flaky() -> int:
        """Fail each time."""
        raise ToolError(Kind.TRANSIENT, "not now", retryable=True)

    result = await crib_of(flaky).call("flaky")
    assert (result.error.kind, result.meta["attempts"]) == (Kind.TRANSIENT, 3)
