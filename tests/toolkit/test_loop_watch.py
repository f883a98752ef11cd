"""Code that blocks the event loop is named while it does, and the deadlines of other calls hold."""

import asyncio
import logging
import math
import threading

import pytest

from toolcrib import Kind, tool
from toolcrib.toolkit.loop_watch import PACKAGE, _LoopWatch, watch_loop

SECONDS = 30
SHORT_SECONDS = 1


class Heard(logging.Handler):
    """What the log says, with an event to wait for: any line, or one with these words."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.words = ""
        self.came = threading.Event()

    def emit(self, record):
        line = record.getMessage()
        if self.words in line:
            self.lines.append(line)
            self.came.set()


@pytest.fixture
def heard():
    handler, log = Heard(), logging.getLogger("toolcrib.pipeline")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


async def test_a_function_that_blocks_the_loop_is_named_while_it_does(crib_of, heard):
    @tool
    def blocks() -> bool:
        """Block until it was named."""
        return wait_for(heard.came, SHORT_SECONDS)

    @tool
    async def blocks_later() -> bool:
        """Block after the first wait."""
        await asyncio.sleep(0)
        return wait_for(heard.came, SHORT_SECONDS)

    crib = crib_of(blocks, blocks_later)
    with watch_loop(0.02):
        for name in ("blocks", "blocks_later", "blocks"):
            heard.words = f"{name} ({__file__}:"
            heard.came.clear()
            for _ in range(20):
                # On a busy machine what the loop does just before may be named in place of it: then it is called again.
                if (await crib.call(name)).value:
                    break
            assert "has blocked the event loop for" in heard.lines[0]
            heard.lines.clear()
            # The loop comes to its other work: what blocks it next is told again.
            for _ in range(3):
                await asyncio.sleep(0)


async def test_our_own_code_that_blocks_the_loop_is_reported_as_our_bug(heard):
    source = compile("def block(came):\n    return came.wait(5)\n", f"{PACKAGE}/made_up.py", "exec")
    ours = {}
    exec(source, ours)
    heard.words = "block ("
    with watch_loop(0.02):
        await asyncio.sleep(0)
        assert ours["block"](heard.came)
    assert heard.lines[0].startswith(f"block ({PACKAGE}/made_up.py:2)")
    assert "this is a bug of Toolcrib" in heard.lines[0]


def wait_for(event, seconds=SECONDS):
    return event.wait(seconds)


def test_a_loop_that_comes_late_to_its_beat_while_it_waits_is_not_reported(heard):
    looked = threading.Event()

    class Late(_LoopWatch):
        """One whose loop never beats."""

        def _beat(self):
            self._last = -math.inf

        def _tell(self, seconds):
            super()._tell(seconds)
            looked.set()

    async def wait():
        # Long enough that the loop waits when it is looked at, on a busy machine too.
        watch = Late(asyncio.get_running_loop(), 1.0)
        watch.start()
        await asyncio.to_thread(looked.wait, SECONDS)
        watch.end()

    asyncio.run(wait())
    assert looked.is_set()
    assert heard.lines == []


async def test_a_function_that_blocks_the_loop_moves_no_deadline_of_another_call(crib_of):
    began, ready = asyncio.Event(), asyncio.Event()

    @tool(timeout=0.05)
    async def waits() -> str:
        """Wait for something that comes too late."""
        began.set()
        await ready.wait()
        return "late"

    @tool
    def blocks() -> None:
        """Block for longer than the other call may take, and let it go on then."""
        threading.Event().wait(0.1)
        ready.set()

    crib = crib_of(waits, blocks)
    waiting = asyncio.ensure_future(crib.call("waits"))
    await began.wait()
    assert (await crib.call("blocks")).ok
    assert (await waiting).error.kind is Kind.TIMEOUT
