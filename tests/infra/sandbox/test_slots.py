"""Places for jobs: bounded, in order, and none is lost."""

import asyncio
import contextlib
import os
import threading
import time

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox import Slots


def soon(seconds=10.0):
    return time.monotonic() + seconds


async def turns(count=20):
    """Let every task that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def free_places(slots):
    return slots._free


async def test_no_more_jobs_run_at_once_than_there_are_places_and_none_is_lost():
    slots, running, most, done = Slots(8), 0, 0, []

    async def job(number):
        nonlocal running, most
        async with slots.take(soon()):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            done.append(number)

    await asyncio.gather(*(job(number) for number in range(200)))
    assert most == 8
    assert done == list(range(200))
    assert free_places(slots) == 8


async def test_a_full_queue_refuses_at_once_and_says_when_to_come_back():
    slots = Slots(1, queue=2)
    async with slots.take(soon()):
        waiting = [asyncio.create_task(slots._enter(soon())) for _ in range(2)]
        await turns()
        with pytest.raises(ToolError) as caught:
            await slots._enter(soon())
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    assert caught.value.kind is Kind.OVERLOADED
    assert caught.value.retryable
    assert caught.value.details == {"retryAfter": 1}
    assert "1 jobs run in the sandbox and 2 more wait; call again in 1 s" in caught.value.message
    assert free_places(slots) == 1


async def test_advice_grows_with_the_queue_and_the_usual_job():
    slots = Slots(2, queue=0)
    slots._release(100.0)
    slots._free = 0
    with pytest.raises(ToolError) as caught:
        await slots._enter(soon())
    assert caught.value.details == {"retryAfter": 10}


async def test_waiting_counts_against_the_deadline():
    slots = Slots(1)
    async with slots.take(soon()):
        with pytest.raises(ToolError, match="no sandbox slot became free before the deadline of the call") as caught:
            await slots._enter(soon(0.02))
    assert caught.value.kind is Kind.OVERLOADED
    assert caught.value.retryable
    assert free_places(slots) == 1
    assert not slots._waiting


async def test_a_caller_that_is_cancelled_while_waiting_leaves_the_queue():
    slots = Slots(1)
    async with slots.take(soon()):
        first = asyncio.create_task(slots._enter(soon()))
        second = asyncio.create_task(slots._enter(soon()))
        await turns()
        first.cancel()
        await asyncio.wait((first,))
    await asyncio.wait_for(second, 25)
    assert free_places(slots) == 0
    slots._release()
    assert free_places(slots) == 1


async def test_a_place_given_to_a_caller_that_is_cancelled_in_that_moment_goes_on_to_the_next():
    slots = Slots(1)
    await slots._enter(soon())
    first = asyncio.create_task(slots._enter(soon()))
    second = asyncio.create_task(slots._enter(soon()))
    await turns()
    slots._release()
    first.cancel()
    await asyncio.wait((first,))
    assert first.cancelled()
    await asyncio.wait_for(second, 25)


async def test_a_job_that_fails_gives_its_place_back():
    slots = Slots(1)
    with contextlib.suppress(ZeroDivisionError):
        async with slots.take(soon()):
            raise ZeroDivisionError
    assert free_places(slots) == 1


def test_threads_with_loops_of_their_own_share_the_places():
    slots, lock, running, most, done = Slots(3), threading.Lock(), 0, 0, []

    async def job():
        nonlocal running, most
        async with slots.take(soon(30)):
            with lock:
                running += 1
                most = max(most, running)
            await asyncio.sleep(0.0005)
            with lock:
                running -= 1
                done.append(1)

    async def many():
        await asyncio.gather(*(job() for _ in range(40)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 200
    assert most == 3
    assert free_places(slots) == 3


def test_a_caller_that_waits_in_a_loop_that_was_closed_holds_up_no_one_else():
    slots = Slots(1)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(slots._enter(soon()))
    waiting = loop.create_task(slots._enter(soon()))
    loop.run_until_complete(turns())
    assert len(slots._waiting) == 1
    waiting._log_destroy_pending = False
    loop.close()
    slots._release()
    assert free_places(slots) == 1
    waiting.get_coro().close()
    assert free_places(slots) == 1


def test_a_place_that_was_granted_in_a_loop_that_was_closed_is_free_again():
    slots = Slots(1)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(slots._enter(soon()))
    waiting = loop.create_task(slots._enter(soon()))
    loop.run_until_complete(turns())
    slots._release()
    waiting._log_destroy_pending = False
    loop.close()
    assert free_places(slots) == 0
    waiting.get_coro().close()
    assert free_places(slots) == 1


async def test_a_place_that_garbage_collection_frees_while_a_job_joins_the_queue_is_taken(monkeypatch):
    slots = Slots(1)
    await slots._enter(soon())
    loop = asyncio.get_running_loop()
    make = loop.create_future
    with monkeypatch.context() as patch:
        patch.setattr(loop, "create_future", lambda: slots._release() or make())
        assert slots._enqueue() is None
    assert (free_places(slots), len(slots._waiting)) == (0, 0)


def test_a_fork_of_the_host_has_all_its_places():
    slots = Slots(1)
    asyncio.run(slots._enter(soon()))
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(slots._enter(soon(0.5)))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def test_many_who_come_and_go_at_random_leave_every_place_free():
    import random

    chance, slots = random.Random(7), Slots(4, queue=50)

    async def job():
        with contextlib.suppress(ToolError):
            async with slots.take(soon(chance.choice([0.0, 0.001, 5.0]))):
                for _ in range(chance.randrange(5)):
                    await asyncio.sleep(0)

    tasks = []
    for _ in range(400):
        tasks.append(asyncio.create_task(job()))
        if chance.random() < 0.3:
            await asyncio.sleep(0)
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert free_places(slots) == 4
    assert not slots._waiting
