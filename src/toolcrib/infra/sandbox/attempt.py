"""The host's side of one call: its socket, pipes and channel, the wait for its end, and its outcome."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
from typing import TYPE_CHECKING

from toolcrib.infra.channel import MAX_LINE_BYTES, Frames, LineCutter, to_line
from toolcrib.infra.sandbox.jobs import CompletedJob, Effect, explain_start
from toolcrib.lib.documents import MAX_DEPTH, read_json
from toolcrib.model.errors import Kind, ToolError

# It takes as long to import as a launcher takes to start, so it is imported where it is used, while the launcher of a cold call starts.
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    Talk = Callable[["Lines"], Awaitable[None]]
    Hear = Callable[[bytes], None]
    Proxy = Callable[[socket.socket], AbstractAsyncContextManager[object]]
    from collections.abc import Callable

# How long a pipe may stay open after its processes ended: an escaped process may hold it.
PIPES_SECONDS = 0.2
# How much longer than needed the supervisor may take to end its call.
PATIENCE_SECONDS = 2.0
# How long it may take when it is asked to end a call: up to 1.7 s for itself, and a busy machine lets it wait.
_END_SECONDS = 6.0
_KILLED_SECONDS = 0.5
# How long the channel and proxy tasks may take to stop; nested calls of a script kill processes of their own.
_COMPANION_SECONDS = 5.0


class Attempt:
    """The socket and the pipes of one attempt; the caller must await `end`."""

    def __init__(self, max_stdout: int, max_stderr: int, max_result: int, hear: Hear | None = None) -> None:
        try:
            with contextlib.ExitStack() as opened:
                self._supervisor_socket = opened.enter_context(contextlib.closing(SupervisorSocket()))
                self._stdout = opened.enter_context(contextlib.closing(Capture(max_stdout, hear=hear)))
                self._stderr = opened.enter_context(contextlib.closing(Capture(max_stderr)))
                self._result = opened.enter_context(
                    contextlib.closing(Capture(max_result, self._supervisor_socket.end))
                )
                self._channel, self._their_channel = socket.socketpair()
                opened.pop_all()
        except OSError as problem:
            message = f"the host cannot open descriptors for another job: {problem.strerror}; call again later"
            raise ToolError(Kind.OVERLOADED, message, retryable=True) from problem
        self._captures = (self._stdout, self._stderr, self._result)
        self._companions: list[asyncio.Future[None]] = []
        self._companion_error: BaseException | None = None
        self._overdue = False

    @property
    def was_lost(self) -> bool:
        """Whether it was lost before anything of the job ran, so that it can be repeated."""
        return not self._supervisor_socket.facts and not self._overdue

    @property
    def never_started(self) -> bool:
        """Whether no supervisor took it before the time was up."""
        return not self._supervisor_socket.facts and self._overdue

    def descriptors(self) -> list[int]:
        """The descriptors that the child receives."""
        pipes = (capture.write for capture in self._captures)
        return [self._supervisor_socket.theirs.fileno(), *pipes, self._their_channel.fileno()]

    async def finish(
        self, message: bytes, deadline: float, *, talk: Talk | None = None, proxy: Proxy | None = None
    ) -> None:
        """Send the job and wait for its end, slightly longer than its supervisor, while `talk` and `proxy` run."""
        import asyncio

        self._close_child_ends()
        self._supervisor_socket.send(message)
        if talk is None:
            self._channel.close()
        else:
            self._companions.append(asyncio.ensure_future(self._talk(talk)))
        if proxy is not None:
            self._companions.append(asyncio.ensure_future(self._serve(proxy)))
        seconds = deadline - time.monotonic() + PATIENCE_SECONDS
        self._overdue = not await self._wait_for_end(time.monotonic() + max(seconds, PATIENCE_SECONDS))
        if self._companions:
            await asyncio.wait(self._companions, timeout=PIPES_SECONDS)

    async def end(self) -> None:
        """Make sure that nothing of the job is left; a cancellation takes effect after that."""
        import asyncio

        with contextlib.ExitStack() as descriptors:
            for part in (*self._captures, self._supervisor_socket, self._channel):
                descriptors.callback(part.close)
            self._close_child_ends()
            self._supervisor_socket.end()
            # Garbage collection ends a job of a closed event loop, where nothing can be awaited.
            is_cancelled = not self._supervisor_socket.ended.get_loop().is_closed() and await self._see_ended()
        if is_cancelled:
            raise asyncio.CancelledError

    async def _see_ended(self) -> bool:
        """Wait until everything of the job has ended; returns whether this task was cancelled meanwhile."""
        for task in self._companions:
            task.cancel()
        cancelled = await _wait((self._supervisor_socket.ended,), 0 if self._overdue else _END_SECONDS)
        pipes_seconds = PIPES_SECONDS
        if not self._supervisor_socket.ended.done():
            self._supervisor_socket.kill()
            cancelled |= await _wait((self._supervisor_socket.ended,), _KILLED_SECONDS)
            pipes_seconds = PATIENCE_SECONDS  # the launcher kills the job, which holds them until then
        cancelled |= await _wait([capture.ended for capture in self._captures], pipes_seconds)
        cancelled |= await _wait(self._companions, _COMPANION_SECONDS)
        for task in self._companions:
            if task.done() and not task.cancelled():
                self._companion_error = self._companion_error or task.exception()
        # A task that was cancelled keeps its frames, which hold this object: that would be a cycle.
        self._companions.clear()
        return cancelled

    def ended(self) -> CompletedJob:
        """The outcome; raises ToolError if the supervisor did not report it, or the error of `talk` or `proxy`."""
        if self._companion_error is not None:
            raise self._companion_error
        facts = self._supervisor_socket.facts
        if "failed" in facts:
            problem = explain_start(str(facts["failed"]))
            raise ToolError(Kind.SANDBOX_UNAVAILABLE, f"the sandbox cannot start a process: {problem}")
        if "killed" not in facts and not self._overdue:
            raise ToolError(
                Kind.INTERNAL, "the job's supervisor was killed, and the job with it", partial_side_effects=True
            )
        result = self._result
        return CompletedJob(
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
            refused=_texts(facts.get("refused")),
        )

    def _close_child_ends(self) -> None:
        """Close the child's ends here, so that end of file is seen when the child closes them."""
        self._supervisor_socket.theirs.close()
        self._their_channel.close()
        for capture in self._captures:
            capture.close_write()

    async def _wait_for_end(self, until: float) -> bool:
        """Wait for the job unless `talk` or `proxy` fails; False if the time is up first."""
        import asyncio

        waiting: set[asyncio.Future[None]] = {self._supervisor_socket.ended, *self._companions}
        while not self._supervisor_socket.ended.done():
            done, waiting = await asyncio.wait(
                waiting, timeout=until - time.monotonic(), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return False
            if any(task.cancelled() or task.exception() for task in done):
                return True
        return True

    async def _talk(self, talk: Talk) -> None:
        import asyncio

        await asyncio.wait((self._supervisor_socket.begun,))
        if not self._supervisor_socket.started:
            return
        try:
            await talk(Lines(self._channel, end_job=self._supervisor_socket.end))
        except asyncio.CancelledError as cancelled:
            # The frame of a task group holds the error that holds it, and all of the call would wait for the collector.
            cancelled.__traceback__ = None
            raise
        finally:
            self._channel.close()

    async def _serve(self, proxy: Proxy) -> None:
        """Let the proxy accept the connections of the job."""
        import asyncio

        await asyncio.wait(
            (self._supervisor_socket.listener, self._supervisor_socket.ended), return_when=asyncio.FIRST_COMPLETED
        )
        if not self._supervisor_socket.listener.done():
            return
        async with proxy(self._supervisor_socket.listener.result()):
            await asyncio.wait((self._supervisor_socket.ended,))


async def _wait(futures: Iterable[asyncio.Future[None]], seconds: float) -> bool:
    """Wait for all of them even if cancelled; returns whether this task was cancelled."""
    import asyncio

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
    """The reason if the worker reported that it could not start the job."""
    if not result.startswith(b'{"cannot_start"'):
        return ""
    try:
        return str(json.loads(result)["cannot_start"])
    except ValueError:
        return ""


def _texts(fact: object) -> tuple[str, ...]:
    return tuple(map(str, fact)) if isinstance(fact, list) else ()


def _effects(fact: object) -> tuple[Effect, ...]:
    return tuple(Effect(*effect) for effect in fact) if isinstance(fact, list) else ()


# The socket of a call and its pipes.

_READ_BYTES = 65536
REPORTED = "gone"
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_INTEGER = struct.Struct("i")


class SupervisorSocket:
    """The socket of a call: sends the job, receives its start and its report; closing it ends the call.

    `begun` is done when a worker may run or never will; `listener` is the proxy socket of a job with network.
    """

    def __init__(self) -> None:
        import asyncio

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
        """Send the job; if the supervisor is gone, `ended` is set."""
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
        # The report is the supervisor's last message; there is no need to wait until it exits.
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
        """Kill a supervisor that does not respond; the launcher kills the processes that it leaves behind."""
        # Its end of the socket is still open, so the process ID was not reused.
        if self._supervisor is not None and not self.ended.done():
            os.kill(self._supervisor, signal.SIGKILL)

    def close(self) -> None:
        """Close the socket."""
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        self._ours.close()
        self.theirs.close()
        if self.listener.done() and not self.listener.cancelled():
            self.listener.result().close()
        self.listener.cancel()


def _receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """The next bytes and any descriptor that came with them; socket.recv_fds does not set close-on-exec."""
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


class Capture:
    """Read a pipe to its end, keep the first bytes and count the rest; `hear` is called with what is kept."""

    def __init__(self, limit: int, on_overflow: Callable[[], None] | None = None, hear: Hear | None = None) -> None:
        import asyncio

        self._limit = limit
        self._on_overflow = on_overflow
        self._hear = hear
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
        left = self._limit - len(self.kept)
        self.kept += data[:left]
        if self._hear is not None and left:
            self._hear(data[:left])
        if len(data) <= left:
            return
        self.dropped += len(data) - left
        if self._on_overflow is not None:
            self._on_overflow()

    def close(self) -> None:
        """Stop reading."""
        if self._read < 0:
            return
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._read = -1
        self.close_write()
        if not self.ended.done():
            self.ended.set_result(None)

    def close_write(self) -> None:
        """Close the write end, which the child has inherited or never will."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1


# The channel of a job: JSON objects, one per line, in both directions.

# After this many messages or bytes in a row, other tasks get a turn; a longer line is parsed in a thread.
_IN_A_ROW = 32
_LONG_BYTES = 16_000
# An argument sent by a script may be nested as deep as any other, inside the object of the message.
_MAX_DEPTH = MAX_DEPTH + 8
_CUT = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Lines:
    """The channel to a job. Input is untrusted: an invalid line ends the channel and nothing else.

    `problem` says what was wrong with it. `end_job` ends the job, from any thread.
    """

    def __init__(
        self,
        connection: socket.socket,
        max_bytes: int = MAX_LINE_BYTES,
        end_job: Callable[[], None] = lambda: None,
    ) -> None:
        import asyncio

        self.problem = ""
        self.end_job = end_job
        connection.settimeout(0)
        self._connection = connection
        self._max_bytes = max_bytes
        self._cutter = LineCutter(max_bytes)
        self._writing = asyncio.Lock()
        self._over = False
        self._in_a_row = self._bytes_in_a_row = 0

    @property
    def is_silent(self) -> bool:
        """Whether the job is connected and has sent nothing that is still unread."""
        if self._over or not self._cutter.is_empty:
            return False
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def is_cut(self) -> bool:
        """Whether the other end was closed."""
        if self._connection.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._connection, 0)
        return any(events & _CUT for _, events in poll.poll(0))

    async def read(self) -> dict[str, object] | None:
        """The next message, None at the end of the channel."""
        import asyncio

        while not self._over:
            try:
                line = self._cutter.next()
                if line is not None:
                    await self._let_others_go_on(len(line))
                    return self._parse(line) if len(line) < _LONG_BYTES else await asyncio.to_thread(self._parse, line)
            except (ToolError, ValueError) as problem:
                await self._refuse(str(problem))
                break
            data = await self._receive()
            if not data:
                break
            self._cutter.feed(data)
        self._over = True
        return None

    async def write(self, message: dict[str, object]) -> None:
        """Send a message; does nothing if the job has ended. Raises LIMIT_EXCEEDED if it is too long for a line."""
        import asyncio

        try:
            line = to_line(message, self._max_bytes)
        except (TypeError, ValueError, RecursionError) as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"the answer cannot be sent to the script: {problem}") from problem
        async with self._writing:  # concurrent answers must not interleave
            try:
                await asyncio.get_running_loop().sock_sendall(self._connection, line)
            except OSError:
                return

    async def _receive(self) -> bytes:
        import asyncio

        try:
            return await asyncio.get_running_loop().sock_recv(self._connection, _READ_BYTES)
        except OSError:
            return b""

    async def _let_others_go_on(self, length: int) -> None:
        """Yield to other tasks: reading what is already buffered never waits, so a busy job would block the event loop."""
        import asyncio

        self._in_a_row += 1
        self._bytes_in_a_row += length
        if self._in_a_row >= _IN_A_ROW or self._bytes_in_a_row >= _LONG_BYTES:
            self._in_a_row = self._bytes_in_a_row = 0
            await asyncio.sleep(0)

    def _parse(self, line: bytes) -> dict[str, object]:
        message = read_json(line, place="the line", max_bytes=self._max_bytes, max_depth=_MAX_DEPTH)
        if not isinstance(message, dict):
            raise ValueError('the line is not a JSON object; write {"id": 1, "tool": "name", "arguments": {}}')
        return message

    async def _refuse(self, reason: str) -> None:
        self.problem = reason
        error = {"type": str(Kind.VALIDATION), "message": f"{reason}; nothing more is read here", "retryable": False}
        await self.write({"id": None, "ok": False, "error": error})
