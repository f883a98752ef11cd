"""One call: start its worker, watch the clock and the host, and leave no process behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import time

from toolcrib.infra.channel import Frames, frame
from toolcrib.infra.sandbox.child import broker, confinement, notifications, python_file, resource_limits, system
from toolcrib.infra.sandbox.child.observer import Observer
from toolcrib.infra.sandbox.child.process_tree import Family
from toolcrib.infra.sandbox.child.protected_paths import Mounts, Placeholders
from toolcrib.infra.sandbox.child.system import Events

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from toolcrib.infra.sandbox.child.broker import Broker
    from toolcrib.infra.sandbox.child.confinement import Room


class Descriptors:
    """What the host sent along with a call: its socket, the ends of three pipes, and of the line to the host's tools."""

    __slots__ = ("channel", "result", "socket", "stderr", "stdout")

    def __init__(self, socket: int, stdout: int, stderr: int, result: int, channel: int) -> None:
        self.socket = socket
        self.stdout = stdout
        self.stderr = stderr
        self.result = result
        self.channel = channel

    def all(self) -> list[int]:
        """All of them, in the order of the constructor."""
        return [self.socket, self.stdout, self.stderr, self.result, self.channel]

    def close(self) -> None:
        """Let go of all of them."""
        self.leave()
        os.close(self.socket)

    def leave(self) -> None:
        """Let go of those that belong to the worker."""
        for descriptor in (self.stdout, self.stderr, self.result, self.channel):
            os.close(descriptor)


class Task:
    """What the worker has to do; `job` is described in `jobs`, `content` is the code with the files behind it.

    `folder` is where it has to make a scratch folder on disk if it cannot have one in memory, `room` the namespaces that it
    is in already, `overseer` what answers calls of it that wait, and `line` a way there that the worker has already.
    """

    __slots__ = ("content", "descriptors", "folder", "job", "line", "overseer", "room")

    def __init__(
        self,
        job: dict[str, Any],
        content: bytes,
        descriptors: Descriptors,
        *,
        folder: str,
        room: Room | None = None,
        overseer: Observer | Broker | None = None,
        line: int | None = None,
    ) -> None:
        self.job = job
        self.content = content
        self.descriptors = descriptors
        self.folder = folder
        self.room = room
        self.overseer = overseer
        self.line = line

    def way_out(self) -> int | None:
        """In the worker: the descriptor that leads to what answers its calls, if anything does."""
        return self.line if self.overseer is None else self.overseer.oversight.way_out()

    def code(self) -> bytes:
        """The code of a Python file."""
        return self.content[: len(self.content) - sum(size for _, size in self.job["files"])]

    def files(self) -> list[tuple[str, bytes]]:
        """What the job finds in some files, by their paths."""
        found, place = [], len(self.code())
        for path, size in self.job["files"]:
            found.append((path, self.content[place : place + size]))
            place += size
        return found


def _find_overseer(job: dict[str, Any]) -> Observer | Broker | None:
    """What answers the calls of this job that wait; None if none has to."""
    walls = job["walls"]
    covered = [path for path, _ in job["files"]]
    performs = broker.Broker(walls, covered) if broker.is_needed(walls) else None
    if not walls["observe"]:
        return performs
    if not notifications.is_available():
        raise OSError("this system does not let a job be observed")
    return Observer(walls, is_program="argv" in job, broker=performs)


def supervise(descriptors: Descriptors, *, launcher: int, host: int | None, ahead: Ahead | None = None) -> Task:
    """Fork the worker and stay until nothing of the call is left; like fork, this returns in the worker alone.

    `ahead` is a worker that was forked already.
    """
    try:
        task = _start(descriptors, launcher, host, ahead)
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


def _start(descriptors: Descriptors, launcher: int, host: int | None, ahead: Ahead | None) -> Task:
    system.prctl(system.CHILD_SUBREAPER, 1)
    system.prctl(system.PDEATHSIG, signal.SIGTERM)
    events = Events()
    if os.getppid() != launcher:  # it went before its end could have been signalled to us
        os._exit(1)
    job, content = read_job(descriptors.socket)
    placeholders = Placeholders(job["walls"])
    task = Task(job, content, descriptors, folder=resource_limits.name(), overseer=_find_overseer(job))
    mounts = Mounts(job)
    tell(descriptors.socket, {"started": os.getpid()})
    if ahead is not None and ahead.give(task):
        worker = ahead.process
    else:
        if task.overseer is not None:
            task.overseer.oversight.connect()
        worker = system.fork()
    if worker != 0:
        descriptors.leave()
        if task.overseer is not None:
            task.overseer.oversight.begin()
            system.come_first()
        watched = [descriptors.socket] if host is None else [descriptors.socket, host]
        mounts.watch(worker)
        _watch(worker, events, watched, task, placeholders, mounts)
    events.close()
    return task


def read_job(socket: int) -> tuple[dict[str, Any], bytes]:
    """The two frames that describe the job; a sender that went away before it had sent them ends the process."""
    frames = Frames()
    parts: list[bytes] = []
    while len(parts) < 2:  # noqa: PLR2004 - the job and what stands beside it
        data = os.read(socket, 1 << 20)
        if not data:
            os._exit(0)
        parts += frames.feed(data)
    return json.loads(parts[0]), parts[1]


def _watch(
    worker: int, events: Events, watched: list[int], task: Task, placeholders: Placeholders, mounts: Mounts
) -> NoReturn:
    """Wait for the worker, a limit or the host, end whatever is left, and report."""
    family = Family(events, None if task.overseer is None else task.overseer.oversight)
    meter = resource_limits.Meter(task.job["walls"], task.folder)
    timed_out, exceeded = False, ""
    while not family.reap() and worker not in family.statuses:
        seconds = task.job["deadline"] - time.monotonic()
        timed_out = seconds <= 0
        if timed_out or exceeded:
            break
        wanted = [*watched, *_observed(task), *mounts.descriptors()]
        pause = min(seconds, meter.seconds_left(), mounts.seconds_left())
        ready, signals = events.wait(wanted, pause, urgent=mounts.urgent())
        if mounts.have_fallen(ready):
            break
        if task.overseer is not None:
            task.overseer.oversight.retry()
            if ready.intersection(_observed(task)):
                task.overseer.oversight.serve()
        # The host says nothing after the job: what can be read is the end of its interest.
        if ready.intersection(watched) or signal.SIGTERM in signals:
            break
        if meter.is_due():
            exceeded = meter.exceeded()
    if mounts.have_fallen():  # perhaps just before the end
        exceeded = resource_limits.WALLS
    gone = family.end(worker, at_once=bool(exceeded))
    mounts.leave()
    if task.overseer is not None:
        task.overseer.leave()
    placeholders.remove()
    resource_limits.remove(task.folder)
    report = _report(family, worker, timed_out=timed_out, gone=gone)
    effects = [] if task.overseer is None else task.overseer.report()
    tell(watched[0], {**report, "exceeded": exceeded or report["exceeded"], "effects": effects})
    os._exit(0 if gone else 1)


def _observed(task: Task) -> list[int]:
    """The descriptor that tells of a system call which waits for an answer, as long as there is one."""
    if task.overseer is None or task.overseer.oversight.is_over:
        return []
    return [task.overseer.oversight.fileno()]


def _report(family: Family, worker: int, *, timed_out: bool, gone: bool) -> dict[str, object]:
    status = family.statuses.get(worker)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "exit_code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "timed_out": timed_out,
        "exceeded": resource_limits.DISK if code == -signal.SIGXFSZ else "",
        "killed": len(family.signalled),
        "gone": gone,
    }


# Processes that are forked before they are needed: a supervisor that waits for its call, and a worker for its task.

_DESCRIPTORS = 5


class Spare:
    """A supervisor that was forked ahead, with its worker, and waits for its call. There is at most one of them."""

    def __init__(self, launcher: int) -> None:
        self.process = 0
        self._launcher = launcher
        self._line: socket.socket | None = None

    @property
    def is_there(self) -> bool:
        """Whether one waits."""
        return self._line is not None

    def make(self) -> bool:
        """Fork one, if there is none and the system lets us; like fork, True in the child alone, which has to `become`."""
        if self._line is not None or not system.HAS_SUBREAPER:
            return False
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError:
            return False
        with ours, theirs:
            try:
                self.process = system.fork()
            except OSError:
                return False
            # Detached, so that leaving closes the other end alone.
            self._line = socket.socket(fileno=(theirs if self.process == 0 else ours).detach())
        return self.process == 0

    def take(self, descriptors: Descriptors) -> bool:
        """Give it the call; False if there is none, or it has gone."""
        if self._line is None:
            return False
        try:
            socket.send_fds(self._line, [b"."], descriptors.all())
        except OSError:
            return False
        else:
            descriptors.close()
            return True
        finally:
            self.dismiss()

    def dismiss(self) -> None:
        """Let go of it: one that has its call goes on, one that still waits ends."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def become(self, host: int | None) -> Task:
        """Wait for the call in the process that was made, with a worker beside it; returns in that worker alone."""
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        system.prctl(system.CHILD_SUBREAPER, 1)
        if os.getppid() != self._launcher or self._line is None:
            os._exit(0)
        with self._line as line:
            worker = _fork_ahead()
            if worker is not None and worker.process == 0:
                return worker.receive()
            wish, descriptors = receive(line, 1)
        if not wish or descriptors is None:
            if worker is not None:
                worker.end()
            os._exit(0)
        return supervise(descriptors, launcher=self._launcher, host=host, ahead=worker)


class Ahead:
    """A worker that was forked ahead: it has a view of the files of its own, and waits for its task."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.process = system.fork()
        if self.process != 0:
            self._theirs.close()

    def give(self, task: Task) -> bool:
        """Hand the task over; False if it needs a worker that begins otherwise, and this one ends."""
        walls = task.job["walls"]
        if walls["observe"] or walls["network"] or walls["open"]:
            self.end()
            return False
        message = {**task.job, "folder": task.folder}
        try:
            socket.send_fds(self._ours, [b"."], task.descriptors.all())
            self._ours.sendall(frame(json.dumps(message).encode()) + frame(task.content))
        except OSError:
            self.end()
            return False
        if task.overseer is None:
            self._ours.close()
        else:
            task.overseer.oversight.adopt(self._ours)
        return True

    def receive(self) -> Task:
        """Wait for the task, in the worker; ends it if there will be none."""
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        self._ours.close()
        room = confinement.enter(network=False, ahead=True)
        confinement.rehearse()
        python_file.rehearse()
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        with self._theirs as line:
            _, descriptors = receive(line, 1)
            if descriptors is None:
                os._exit(0)
            job, content = read_job(line.fileno())
            way_out = line.detach() if broker.is_needed(job["walls"]) else None
        return Task(job, content, descriptors, folder=job["folder"], room=room, line=way_out)

    def end(self) -> None:
        """Let it go, and see it gone."""
        self._ours.close()
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def receive(line: socket.socket, size: int) -> tuple[bytes, Descriptors | None]:
    """The next order, empty when nobody is there to give one; without descriptors if they did not all arrive."""
    try:
        wish, descriptors, _, _ = socket.recv_fds(line, size, _DESCRIPTORS)
    except ConnectionError:
        return b"", None
    if len(descriptors) == _DESCRIPTORS:
        return wish, Descriptors(*descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return wish, None


def _fork_ahead() -> Ahead | None:
    try:
        return Ahead()
    except OSError:
        return None
