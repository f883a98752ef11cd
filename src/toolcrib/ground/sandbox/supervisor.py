"""One call: start its worker, watch the clock and the host, and leave no process behind."""

from __future__ import annotations

import json
import os
import signal
import time

from toolcrib.ground.channel import Frames, frame
from toolcrib.ground.sandbox import system
from toolcrib.ground.sandbox.family import Family
from toolcrib.ground.sandbox.system import Events

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from typing import Any, NoReturn

_HOUR = 3600.0


class Descriptors:
    """What the host sent along with a call: the socket of the call and the ends of three pipes."""

    __slots__ = ("result", "socket", "stderr", "stdout")

    def __init__(self, socket: int, stdout: int, stderr: int, result: int) -> None:
        self.socket = socket
        self.stdout = stdout
        self.stderr = stderr
        self.result = result

    def close(self) -> None:
        """Let go of all of them."""
        for name in self.__slots__:
            os.close(getattr(self, name))


class Task:
    """What the worker has to do; `job` is described in `jobs`."""

    __slots__ = ("code", "descriptors", "job")

    def __init__(self, job: dict[str, Any], code: bytes, descriptors: Descriptors) -> None:
        self.job = job
        self.code = code
        self.descriptors = descriptors


def supervise(descriptors: Descriptors, *, launcher: int, host: int | None) -> Task:
    """Fork the worker and stay until nothing of the call is left; like fork, this returns in the worker alone."""
    try:
        task = _start(descriptors, launcher=launcher, host=host)
    except Exception as problem:  # noqa: BLE001 - the main function of a child: the host must hear of any failure
        tell(descriptors.socket, {"failed": f"{type(problem).__name__}: {problem}"})
        os._exit(1)
    return task


def tell(socket: int, message: dict[str, object]) -> None:
    """Send a message to the host, which may have gone."""
    left = memoryview(frame(json.dumps(message).encode()))
    try:
        while left:
            left = left[os.write(socket, left) :]
    except OSError:
        return


def _start(descriptors: Descriptors, *, launcher: int, host: int | None) -> Task:
    system.prctl(system.CHILD_SUBREAPER, 1)
    system.prctl(system.PDEATHSIG, signal.SIGTERM)
    events = Events()
    if os.getppid() != launcher:  # it went before its end could have been signalled to us
        os._exit(1)
    task = Task(*_read_job(descriptors.socket), descriptors)
    tell(descriptors.socket, {"started": os.getpid()})
    worker = system.fork()
    if worker != 0:
        for pipe in (descriptors.stdout, descriptors.stderr, descriptors.result):
            os.close(pipe)
        watched = [descriptors.socket] if host is None else [descriptors.socket, host]
        _watch(worker, events, watched, task.job["deadline"])
    events.close()
    return task


def _read_job(socket: int) -> tuple[dict[str, Any], bytes]:
    """The two frames that describe the job; a host that went away before it had sent them ends the process."""
    frames = Frames()
    parts: list[bytes] = []
    while len(parts) < 2:  # noqa: PLR2004 - the job and the code
        data = os.read(socket, 1 << 20)
        if not data:
            os._exit(0)
        parts += frames.feed(data)
    return json.loads(parts[0]), parts[1]


def _watch(worker: int, events: Events, watched: list[int], deadline: float) -> NoReturn:
    """Wait for the worker, the deadline or the host, end whatever is left, and report."""
    family = Family(events)
    timed_out = False
    while not family.reap() and worker not in family.statuses:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            timed_out = True
            break
        ready, signals = events.wait(watched, min(seconds, _HOUR))
        # The host says nothing after the job: what can be read is the end of its interest.
        if ready or signal.SIGTERM in signals:
            break
    gone = family.end(worker)
    tell(watched[0], _report(family, worker, timed_out=timed_out, gone=gone))
    os._exit(0 if gone else 1)


def _report(family: Family, worker: int, *, timed_out: bool, gone: bool) -> dict[str, object]:
    status = family.statuses.get(worker)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "exit_code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "timed_out": timed_out,
        "killed": len(family.signalled),
        "gone": gone,
    }
