"""Ctrl-C while an event loop of ours runs: KeyboardInterrupt, after the coroutine has cleaned up, at whatever step it arrives."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import threading
from contextlib import closing, suppress

import pytest

from toolcrib.infra.plain_code import PlainRunner, run_async

FILES = (PlainRunner.run.__code__.co_filename, asyncio.runners.__file__, __file__)


class At:
    """Deliver SIGINT before one of the lines that run."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(FILES):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.fixture
def _pythons_own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def _letters(ended: list[str]):
    try:
        while True:
            yield "a"
            await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0)
        ended.append("cleaned up")


def _read_a_letter(runner: PlainRunner, ended: list[str]) -> None:
    with closing(runner.iterate(_letters(ended))) as letters:
        assert next(letters) == "a"
    runner.close()


@pytest.mark.usefixtures("_pythons_own_handler")
def test_an_interrupt_at_any_line_is_raised_and_what_runs_cleans_up():
    for line in itertools.count(1):
        runner, ended, at = PlainRunner(), [], At(line)
        interrupted = False
        sys.settrace(at)
        try:
            _read_a_letter(runner, ended)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        assert interrupted == (at.left <= 0), line
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        runner.close()
        # Not begun when the interrupt came, or cleaned up.
        assert ended in ([], ["cleaned up"]), line
        if not interrupted:
            break
    assert line > 80


@pytest.mark.usefixtures("_pythons_own_handler")
def test_an_interrupt_before_the_coroutine_begins_cancels_it():
    ended: list[str] = []

    def make_loop() -> asyncio.AbstractEventLoop:
        signal.raise_signal(signal.SIGINT)
        return asyncio.new_event_loop()

    async def waits() -> None:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_async(waits(), make_loop)
    assert ended == ["cancelled"]


@pytest.mark.usefixtures("_pythons_own_handler")
def test_an_interrupt_that_the_coroutine_swallows_is_raised_all_the_same():
    async def deaf() -> None:
        signal.raise_signal(signal.SIGINT)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run_async(deaf())


@pytest.mark.usefixtures("_pythons_own_handler")
def test_a_second_interrupt_is_raised_at_once():
    async def computes() -> None:
        while True:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_async(computes())


@pytest.mark.parametrize("own", [True, False])
def test_elsewhere_signals_stay_as_they_are(own):
    seen = []

    async def look() -> None:
        seen.append(signal.getsignal(signal.SIGINT))

    before = signal.signal(signal.SIGINT, signal.default_int_handler if own else signal.SIG_IGN)
    try:
        if own:
            thread = threading.Thread(target=run_async, args=(look(),))
            thread.start()
            thread.join(10)
        else:
            run_async(look())
        assert seen == [signal.default_int_handler if own else signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGINT, before)
