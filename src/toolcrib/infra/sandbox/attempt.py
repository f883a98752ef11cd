"""One attempt at a job, from the descriptors that the child gets to the facts that are left of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import time
from typing import TYPE_CHECKING

from toolcrib.infra.channel import Frames
from toolcrib.infra.sandbox.conversation import Lines
from toolcrib.infra.sandbox.jobs import Effect, Ended
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    Talk = Callable[[Lines], Awaitable[None]]
    Proxy = Callable[[socket.socket], AbstractAsyncContextManager[object]]


# The host's side of one call: its socket, its pipes, and what came through them.

_READ_BYTES = 65536
REPORTED = "gone"
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_INTEGER = struct.Struct("i")


class Capture:
    """Reads a pipe to its end, keeps the first bytes and counts the rest."""

    def __init__(self, limit: int, on_overflow: Callable[[], None] | None = None) -> None:
        self._limit = limit
        self._on_overflow = on_overflow
        self._loop = asyncio.get_running_loop()
        self.ended = self._loop.create_future()
        self.kept = bytearray()
        self.dropped = 0
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._loop.add_reader(self._read, self._take)

    def _take(self) -> None:
        try:
            data = os.read(self._read, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        room = self._limit - len(self.kept)
        self.kept += data[:room]
        if len(data) <= room:
            return
        self.dropped += len(data) - room
        if self._on_overflow is not None:
            self._on_overflow()

    def close(self) -> None:
        """Read no further."""
        if self._read < 0:
            return
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._read = -1
        self.close_write()
        if not self.ended.done():
            self.ended.set_result(None)

    def close_write(self) -> None:
        """Let go of the end that the child has by now, or that nobody will have."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1


class Supervised:
    """The socket of a call: takes the job, tells when it started and how it ended, and its closing ends the call.

    `begun` is done when a worker may run or never will; `listener` is the way out of a job that has a network.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(0)
        self._frames = Frames()
        self._unsent = memoryview(b"")
        self._supervisor: int | None = None
        self.facts: dict[str, object] = {}
        self.begun = self._loop.create_future()
        self.listener: asyncio.Future[socket.socket] = self._loop.create_future()
        self.ended = self._loop.create_future()
        self._loop.add_reader(self._ours, self._take)

    @property
    def started(self) -> bool:
        """Whether a worker may have run."""
        return self._supervisor is not None

    def send(self, job: bytes) -> None:
        """Hand the job over, at once or as it is taken; a supervisor that is gone shows in `ended`."""
        self._unsent = memoryview(job)
        self._loop.add_writer(self._ours, self._send)
        self._send()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[self._ours.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._loop.remove_writer(self._ours)

    def _take(self) -> None:
        descriptors: list[int] = []
        try:
            data, descriptors = _receive(self._ours)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for payload in self._frames.feed(data):
            self.facts |= json.loads(payload)
        for descriptor in descriptors:
            self._keep(socket.socket(fileno=descriptor))
        supervisor = self.facts.get("started")
        if isinstance(supervisor, int):
            self._supervisor = supervisor
            _settle(self.begun)
        # With its report a supervisor has said everything; its own end need not be waited for.
        if not data or REPORTED in self.facts:
            self._loop.remove_reader(self._ours)
            _settle(self.begun)
            _settle(self.ended)

    def _keep(self, listener: socket.socket) -> None:
        if self.listener.done():
            listener.close()
            return
        self.listener.set_result(listener)

    def end(self) -> None:
        """Ask the supervisor to end the call."""
        try:
            self._ours.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def kill(self) -> None:
        """Give up on a supervisor that does not answer; the launcher ends what it leaves behind."""
        # It holds the other end of a socket that has not ended, so this number is still its own.
        if self._supervisor is not None and not self.ended.done():
            os.kill(self._supervisor, signal.SIGKILL)

    def close(self) -> None:
        """Let go of the socket."""
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        self._ours.close()
        self.theirs.close()
        if self.listener.done() and not self.listener.cancelled():
            self.listener.result().close()
        self.listener.cancel()


def _receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """The next bytes and the descriptor that may come with them; socket.recv_fds would let programs inherit it."""
    data, ancillary, _, _ = line.recvmsg(_READ_BYTES, socket.CMSG_LEN(_INTEGER.size), _CLOSED_ON_EXEC)
    descriptors = [
        number
        for level, kind, payload in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for (number,) in _INTEGER.iter_unpack(payload[: len(payload) - len(payload) % _INTEGER.size])
    ]
    return data, descriptors


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
