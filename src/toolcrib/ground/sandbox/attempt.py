"""One attempt at a job, from the descriptors that the child gets to the facts that are left of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.jobs import Effect, Ended
from toolcrib.ground.sandbox.transfer import Capture, Supervised
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from toolcrib.ground.sandbox.conversation import Lines

    Talk = Callable[[Lines], Awaitable[None]]
    Proxy = Callable[[socket.socket], AbstractAsyncContextManager[object]]

# How long a pipe may stay open once its processes have ended: one that escaped may hold it.
PIPES_SECONDS = 0.2
# How long a supervisor may be silent when it should have ended its call; longer than it needs for that.
PATIENCE_SECONDS = 2.0
_KILLED_SECONDS = 0.5
# How long what goes on beside a job may take to stop; calls that a script made end processes of their own.
_COMPANY_SECONDS = 5.0


class Attempt:
    """The socket and the pipes of one attempt; whoever makes it must await `end`."""

    def __init__(self, max_stdout: int, max_stderr: int, max_result: int) -> None:
        try:
            with contextlib.ExitStack() as opened:
                self._supervised = opened.enter_context(contextlib.closing(Supervised()))
                self._stdout = opened.enter_context(contextlib.closing(Capture(max_stdout)))
                self._stderr = opened.enter_context(contextlib.closing(Capture(max_stderr)))
                self._result = opened.enter_context(contextlib.closing(Capture(max_result, self._supervised.end)))
                self._channel, self._their_channel = socket.socketpair()
                opened.pop_all()
        except OSError as problem:
            message = f"no room for another job: {problem.strerror}; call again later"
            raise ToolError(Kind.OVERLOADED, message, retryable=True) from problem
        self._captures = (self._stdout, self._stderr, self._result)
        self._company: list[asyncio.Future[None]] = []
        self._trouble: BaseException | None = None
        self._overdue = False

    @property
    def was_lost(self) -> bool:
        """Whether it came to nothing before anything of the job ran, so that it may be made again."""
        return not self._supervised.facts and not self._overdue

    @property
    def was_ignored(self) -> bool:
        """Whether nobody took it up in all its time."""
        return not self._supervised.facts and self._overdue

    def descriptors(self) -> list[int]:
        """What the child gets."""
        pipes = (capture.write for capture in self._captures)
        return [self._supervised.theirs.fileno(), *pipes, self._their_channel.fileno()]

    async def finish(
        self, message: bytes, deadline: float, *, talk: Talk | None = None, proxy: Proxy | None = None
    ) -> None:
        """Send the job and wait for its end, a while longer than its supervisor does; `talk` and `proxy` go on beside it."""
        self._let_go()
        self._supervised.send(message)
        if talk is None:
            self._channel.close()
        else:
            self._company.append(asyncio.ensure_future(self._talk(talk)))
        if proxy is not None:
            self._company.append(asyncio.ensure_future(self._serve(proxy)))
        seconds = deadline - time.monotonic() + PATIENCE_SECONDS
        self._overdue = not await self._wait_for_end(time.monotonic() + max(seconds, PATIENCE_SECONDS))
        if self._company:
            await asyncio.wait(self._company, timeout=PIPES_SECONDS)

    async def end(self) -> None:
        """See to it that nothing of the job is left; a cancellation meanwhile has to wait for that."""
        self._let_go()
        for task in self._company:
            task.cancel()
        self._supervised.end()
        cancelled = await _wait((self._supervised.ended,), 0 if self._overdue else PATIENCE_SECONDS)
        if not self._supervised.ended.done():
            self._supervised.kill()
            cancelled |= await _wait((self._supervised.ended,), _KILLED_SECONDS)
        cancelled |= await _wait([capture.ended for capture in self._captures], PIPES_SECONDS)
        cancelled |= await _wait(self._company, _COMPANY_SECONDS)
        for task in self._company:
            if task.done() and not task.cancelled():
                self._trouble = self._trouble or task.exception()
        self._channel.close()
        self._supervised.close()
        for capture in self._captures:
            capture.close()
        if cancelled:
            raise asyncio.CancelledError

    def ended(self) -> Ended:
        """What came of it; raises ToolError if that was never told, or what went wrong beside it."""
        if self._trouble is not None:
            raise self._trouble
        facts = self._supervised.facts
        if "failed" in facts:
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, f"the sandbox cannot start a process: {facts['failed']}")
        if "killed" not in facts and not self._overdue:
            raise ToolError(
                Kind.INTERNAL, "the job's supervisor was killed, and the job with it", partial_side_effects=True
            )
        result = self._result
        return Ended(
            exit_code=_number(facts.get("exit_code")),
            signal=_number(facts.get("signal")),
            stdout=bytes(self._stdout.kept),
            stderr=bytes(self._stderr.kept),
            stdout_dropped=self._stdout.dropped,
            stderr_dropped=self._stderr.dropped,
            result=bytes(result.kept) if result.kept and not result.dropped else None,
            result_too_long=result.dropped > 0,
            timed_out=self._overdue or facts.get("timed_out") is True,
            killed=_number(facts.get("killed")) or 0,
            gone=facts.get("gone") is True,
            cannot_start=_reason(result.kept),
            exceeded=str(facts.get("exceeded") or ""),
            effects=_effects(facts.get("effects")),
        )

    def _let_go(self) -> None:
        """Close the child's ends here, so that the child's closing them is seen."""
        self._supervised.theirs.close()
        self._their_channel.close()
        for capture in self._captures:
            capture.close_write()

    async def _wait_for_end(self, until: float) -> bool:
        """Wait for the job, as long as nothing goes wrong beside it; False if the time is up first."""
        waiting: set[asyncio.Future[None]] = {self._supervised.ended, *self._company}
        while not self._supervised.ended.done():
            done, waiting = await asyncio.wait(
                waiting, timeout=until - time.monotonic(), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return False
            if any(task.cancelled() or task.exception() for task in done):
                return True
        return True

    async def _talk(self, talk: Talk) -> None:
        await asyncio.wait((self._supervised.begun,))
        if not self._supervised.started:
            return
        try:
            await talk(_converse(self._channel, self._supervised.end))
        finally:
            self._channel.close()

    async def _serve(self, proxy: Proxy) -> None:
        """Let the proxy answer where the job knocks."""
        await asyncio.wait((self._supervised.listener, self._supervised.ended), return_when=asyncio.FIRST_COMPLETED)
        if not self._supervised.listener.done():
            return
        async with proxy(self._supervised.listener.result()):
            await asyncio.wait((self._supervised.ended,))


def _converse(channel: socket.socket, end_job: Callable[[], None]) -> Lines:
    from toolcrib.ground.sandbox.conversation import Lines

    return Lines(channel, end_job=end_job)


async def _wait(futures: Iterable[asyncio.Future[None]], seconds: float) -> bool:
    """Wait for all of them whatever happens; whether somebody wanted to cancel that."""
    cancelled = False
    until = time.monotonic() + seconds
    while pending := [future for future in futures if not future.done()]:
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            await asyncio.wait(pending, timeout=left)
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def _number(fact: object) -> int | None:
    return fact if isinstance(fact, int) else None


def _reason(result: bytearray) -> str:
    """Why the worker could not start the job, if that is what it said."""
    if not result.startswith(b'{"cannot_start"'):
        return ""
    try:
        return str(json.loads(result)["cannot_start"])
    except ValueError:
        return ""


def _effects(fact: object) -> tuple[Effect, ...]:
    return tuple(Effect(*effect) for effect in fact) if isinstance(fact, list) else ()
