"""Calls of tools take turns; a caller that cannot be served soon is told at once."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.toolkit.http.concurrency import Admission

HOST = b"Host: localhost\r\n"


async def test_calls_beyond_the_queue_are_refused_while_those_in_it_are_served_in_order(serving):
    served = await serving(server={"concurrency": 2, "queue": 3})
    clients = [await served.connect() for _ in range(8)]
    for client in clients:
        await client.send(b"POST /call HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n")
        await served.app.arrived.get()
    refused = [await client.answer() for client in clients[5:]]
    assert [status for status, _, _ in refused] == [429] * 3
    assert refused[0][2] == b"2 calls are running and 3 wait; try again in 1 s"
    other = await served.connect()
    assert (await other.ask("POST", "/echo", b"management"))[2] == b"management"
    served.app.go_on.set()
    assert [(await client.answer())[2] for client in clients[:5]] == [b"called"] * 5
    text = served.service.metrics_text()
    assert "toolcrib_calls_refused_total 3" in text
    assert "toolcrib_calls_running 0" in text
    assert "toolcrib_calls_queued 0" in text


async def test_no_call_waits_in_the_queue_for_longer_than_is_useful():
    admission = Admission(1, 5, max_wait=0.05)
    async with admission:
        with pytest.raises(ToolError) as refused:
            async with admission:
                pytest.fail("there was no place")
        assert refused.value.kind is Kind.OVERLOADED
        assert refused.value.retryable
        assert refused.value.details == {"retryAfter": 1}
        assert admission.queued == 0
    assert admission.running == 0


async def test_a_caller_that_is_stopped_while_waiting_leaves_no_place_behind():
    admission = Admission(1, 5)
    ran: list[str] = []

    async def take(name: str) -> None:
        async with admission:
            ran.append(name)

    async with admission:
        first, second = asyncio.ensure_future(take("first")), asyncio.ensure_future(take("second"))
        await asyncio.sleep(0)
        first.cancel()
    await asyncio.wait_for(second, 25)
    assert ran == ["second"]
    assert (admission.running, admission.queued) == (0, 0)


async def test_a_place_that_comes_in_the_moment_of_stopping_goes_to_the_next():
    admission = Admission(1, 5)
    ran: list[str] = []

    async def take(name: str) -> None:
        async with admission:
            ran.append(name)

    await admission.__aenter__()
    first, second = asyncio.ensure_future(take("first")), asyncio.ensure_future(take("second"))
    await asyncio.sleep(0)
    await admission.__aexit__(None, None, None)
    first.cancel()
    await asyncio.wait_for(second, 25)
    assert ran == ["second"]
    assert (admission.running, admission.queued) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "stop"]), st.integers(0, 9)), max_size=60))
def test_no_order_of_coming_going_and_stopping_loses_or_doubles_a_place(steps):
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, int]]) -> None:
    admission, inside, most = Admission(2, 3), 0, 0
    tasks: list[asyncio.Task] = []
    doors: list[asyncio.Event] = []

    async def visit(door: asyncio.Event) -> None:
        nonlocal inside, most
        async with admission:
            inside += 1
            most = max(most, inside)
            try:
                await door.wait()
            finally:
                inside -= 1

    for act, number in steps:
        if act == "enter":
            doors.append(asyncio.Event())
            tasks.append(asyncio.ensure_future(visit(doors[-1])))
        elif tasks and act == "leave":
            doors[number % len(doors)].set()
        elif tasks:
            tasks[number % len(tasks)].cancel()
        if number % 3:
            await asyncio.sleep(0)
        assert admission.running <= 2
        assert admission.queued <= 3
    for door in doors:
        door.set()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 25)
    assert most <= 2
    assert (admission.running, admission.queued, inside) == (0, 0, 0)
