"""The pool of warm processes, where event loops are closed and garbage is collected at any line."""

import asyncio
import time

import pytest

from toolcrib.infra.programs.worker_pool import Workers


class Place:
    """What the pool needs to know of a worker."""

    key, timer, is_spent, is_usable, born, idle_since = None, None, False, True, 0.0, 0.0

    def __init__(self):
        self.loop = asyncio.get_running_loop()

    def end(self, reason=None):
        self.is_spent = True

    def when_ended(self, tell):
        """Nothing ends it."""


@pytest.fixture
def waiting():
    """A pool of one place, its worker, and a call that waits for it in a loop of its own."""
    pool, loop = Workers(1, "sample.workers"), asyncio.new_event_loop()
    until = time.monotonic() + 60
    worker = loop.run_until_complete(pool.take(None, Place, until))
    call = loop.create_task(pool.take(None, Place, until))
    loop.run_until_complete(asyncio.sleep(0))
    call._log_destroy_pending = False
    yield pool, worker, loop, call
    loop.close()


@pytest.mark.parametrize("has_ended", [False, True])
def test_what_a_call_was_given_in_a_loop_that_was_closed_is_not_lost(waiting, has_ended):
    pool, worker, loop, call = waiting
    if has_ended:
        pool._forget(worker)
    else:
        pool.give_back(worker)
    loop.close()
    call.get_coro().close()
    until = time.monotonic() + 60
    assert asyncio.run(pool.take(None, Place, until)) is not worker


def test_a_call_that_waits_in_a_loop_that_was_closed_frees_no_place_twice(waiting):
    pool, worker, loop, call = waiting
    loop.close()
    pool._forget(worker)
    call.get_coro().close()
    assert pool._free == 1


def test_a_place_that_garbage_collection_frees_while_a_call_joins_the_queue_is_taken(waiting, monkeypatch):
    pool, worker, _, call = waiting
    call.get_coro().close()

    async def take():
        loop = asyncio.get_running_loop()
        make = loop.create_future
        with monkeypatch.context() as patch:
            patch.setattr(loop, "create_future", lambda: pool._forget(worker) or make())
            return pool._enter(None)

    assert asyncio.run(take()) is None
    assert (pool._free, len(pool._waiting)) == (0, 0)


def test_garbage_collection_may_take_turns_while_they_are_looked_at(waiting):
    """The queue changes at any line, so no step may rely on what it saw one line before."""
    pool, worker, _, call = waiting

    class Changing(dict):
        def pop(self, turn, *default):
            self.clear()
            return super().pop(turn, *default)

    pool._waiting = Changing(pool._waiting)
    pool._forget(worker)
    assert pool._free == 1
    call.get_coro().close()
