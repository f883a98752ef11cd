"""The supervisor of one call: start its worker, enforce limits, and leave no process behind."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time

from toolcrib.infra.channel import Frames, frame
from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import broker, confinement, notifications, python_file, resource_limits
from toolcrib.infra.sandbox.child.observer import Observer
from toolcrib.infra.sandbox.child.protected_paths import Mounts, Placeholders, has_event
from toolcrib.infra.sandbox.system import Events, ProcessTree

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from toolcrib.infra.sandbox.child.broker import Broker
    from toolcrib.infra.sandbox.child.confinement import Namespaces


class Descriptors:
    """The descriptors that the host sent with a call: its socket, three pipe ends, and the channel."""

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
        """Close all of them."""
        self.leave()
        os.close(self.socket)

    def leave(self) -> None:
        """Close those that belong to the worker."""
        for descriptor in (self.stdout, self.stderr, self.result, self.channel):
            os.close(descriptor)


class Task:
    """The task of a worker; `job` is described in `jobs`, `content` is the code followed by the files.

    `folder` is where to create a scratch folder on disk if none can be mounted, `namespaces` are those that the worker
    has entered already, `call_handler` answers its notified system calls, and `line` is an existing connection to that
    handler.
    """

    __slots__ = ("call_handler", "content", "descriptors", "folder", "job", "line", "namespaces")

    def __init__(
        self,
        job: dict[str, Any],
        content: bytes,
        descriptors: Descriptors,
        *,
        folder: str,
        namespaces: Namespaces | None = None,
        call_handler: Observer | Broker | None = None,
        line: int | None = None,
    ) -> None:
        self.job = job
        self.content = content
        self.descriptors = descriptors
        self.folder = folder
        self.namespaces = namespaces
        self.call_handler = call_handler
        self.line = line

    def notify_socket(self) -> int | None:
        """In the worker: the descriptor to send the notification listener over, if a handler answers calls."""
        return self.line if self.call_handler is None else self.call_handler.notifications.notify_socket()

    def code(self) -> bytes:
        """The code of a Python file."""
        return self.content[: len(self.content) - sum(size for _, size in self.job["files"])]

    def files(self) -> list[tuple[str, bytes]]:
        """The checked contents of files, by their paths."""
        found, place = [], len(self.code())
        for path, size in self.job["files"]:
            found.append((path, self.content[place : place + size]))
            place += size
        return found


def _find_call_handler(job: dict[str, Any]) -> Observer | Broker | None:
    """The handler for system calls of this job that need an answer; None if there is none."""
    policy = job["policy"]
    covered = [path for path, _ in job["files"]]
    performs = broker.Broker(policy, covered) if broker.is_needed(policy) else None
    if not policy["observe"]:
        return performs
    if not notifications.is_available():
        raise OSError("this system cannot observe a job: seccomp notifications need Linux 5.5")
    return Observer(policy, is_program="argv" in job, broker=performs)


def supervise(
    descriptors: Descriptors, *, launcher: int, host: int | None, spare_worker: SpareWorker | None = None
) -> Task:
    """Fork the worker and stay until nothing of the call is left; like fork, this returns only in the worker.

    `spare_worker` was forked already.
    """
    try:
        task = _start(descriptors, launcher, host, spare_worker)
    except Exception as problem:  # noqa: BLE001 - the main function of a child: every failure must reach the host
        tell(descriptors.socket, {"failed": f"{type(problem).__name__}: {problem}"})
        os._exit(1)
    return task


def tell(socket: int, message: dict[str, object]) -> None:
    """Send a message to the host, which may be gone."""
    system.write_all(socket, frame(json.dumps(message).encode()))


def _start(descriptors: Descriptors, launcher: int, host: int | None, spare_worker: SpareWorker | None) -> Task:
    system.prctl(system.CHILD_SUBREAPER, 1)
    system.prctl(system.PDEATHSIG, signal.SIGTERM)
    events = Events()
    if os.getppid() != launcher:  # the launcher ended before the death signal was set
        os._exit(1)
    job, content = read_job(descriptors.socket)
    placeholders = Placeholders(job["policy"])
    task = Task(job, content, descriptors, folder=resource_limits.name(), call_handler=_find_call_handler(job))
    mounts = Mounts(job)
    tell(descriptors.socket, {"started": os.getpid()})
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if spare_worker is not None:  # before it starts: among the processes of a bomb this one would wait for seconds
        system.raise_priority()
    if spare_worker is not None and spare_worker.give(task):
        worker = spare_worker.process
    else:
        if task.call_handler is not None:
            task.call_handler.notifications.connect()
        os.setpriority(os.PRIO_PROCESS, 0, nice)  # a fork inherits it
        worker = system.fork()
    if worker != 0:
        descriptors.leave()
        if task.call_handler is not None:
            task.call_handler.notifications.begin()
        system.raise_priority()
        watched = [descriptors.socket] if host is None else [descriptors.socket, host]
        mounts.watch(worker)
        _watch(worker, events, watched, task, placeholders, mounts)
    events.close()
    return task


def read_job(socket: int) -> tuple[dict[str, Any], bytes]:
    """Receive the two frames of the job; exits if the sender closes before they are complete."""
    frames = Frames()
    parts: list[bytes] = []
    while len(parts) < 2:  # noqa: PLR2004 - the description and the content
        data = os.read(socket, 1 << 20)
        if not data:
            os._exit(0)
        parts += frames.feed(data)
    return json.loads(parts[0]), parts[1]


def _watch(
    worker: int, events: Events, watched: list[int], task: Task, placeholders: Placeholders, mounts: Mounts
) -> NoReturn:
    """Wait for the worker, a limit or the host, end what is left, and report."""
    tree = ProcessTree(events, None if task.call_handler is None else task.call_handler.notifications)
    meter = resource_limits.Meter(task.job["policy"], task.folder)
    timed_out, exceeded = False, ""
    while not tree.reap() and worker not in tree.statuses:
        seconds = task.job["deadline"] - time.monotonic()
        timed_out = seconds <= 0
        if timed_out or exceeded:
            break
        wanted = [*watched, *_observed(task), *mounts.descriptors()]
        pause = min(seconds, meter.seconds_left(), mounts.seconds_left())
        ready, signals = events.wait(wanted, pause, urgent=mounts.urgent())
        if mounts.were_lost(ready):
            break
        if task.call_handler is not None:
            task.call_handler.notifications.retry()
            if ready.intersection(_observed(task)):
                task.call_handler.notifications.serve()
        # The host sends nothing after the job: readable means that it closed the socket.
        if ready.intersection(watched) or signal.SIGTERM in signals:
            break
        if meter.is_due():
            exceeded = meter.exceeded()
    if mounts.were_lost():  # perhaps just before the end
        exceeded = resource_limits.ISOLATION
    gone = tree.end(worker, at_once=bool(exceeded))
    mounts.leave()
    if task.call_handler is not None:
        task.call_handler.leave()
    placeholders.remove()
    resource_limits.remove(task.folder)
    report = _report(tree, worker, timed_out=timed_out, gone=gone)
    tell(watched[0], {**report, **_report_calls(task), "exceeded": exceeded or report["exceeded"]})
    os._exit(0 if gone else 1)


def _report_calls(task: Task) -> dict[str, object]:
    """What the handler of its system calls tells of the job."""
    handler = task.call_handler
    return {} if handler is None else {"effects": handler.report(), "refused": handler.refused}


def _observed(task: Task) -> list[int]:
    """The descriptor that signals a pending system call, while there is a listener."""
    if task.call_handler is None or task.call_handler.notifications.is_over:
        return []
    return [task.call_handler.notifications.fileno()]


def _report(tree: ProcessTree, worker: int, *, timed_out: bool, gone: bool) -> dict[str, object]:
    status = tree.statuses.get(worker)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "exit_code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "timed_out": timed_out,
        "exceeded": resource_limits.DISK if code == -signal.SIGXFSZ else "",
        "killed": len(tree.signalled),
        "gone": gone,
    }


# Processes forked before they are needed: a supervisor that waits for a call, and a worker that waits for a task.

_DESCRIPTORS = 5


class SpareSupervisor:
    """A supervisor forked in advance, with its worker, waiting for a call. There is at most one."""

    def __init__(self, launcher: int) -> None:
        self.process = 0
        self._launcher = launcher
        self._line: socket.socket | None = None

    @property
    def is_there(self) -> bool:
        """Whether one is waiting."""
        return self._line is not None

    def make(self) -> bool:
        """Fork one, if there is none and the system supports it; True only in the child, which must call `become`."""
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
            # Detached, so that leaving the block closes only the other end.
            self._line = socket.socket(fileno=(theirs if self.process == 0 else ours).detach())
        return self.process == 0

    def take(self, descriptors: Descriptors) -> bool:
        """Give it the call; False if there is none, or it is gone."""
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
        """Close the connection: a supervisor with a call continues, one that is still waiting exits."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def become(self, host: int | None) -> Task:
        """In the forked process, fork a worker and wait for the call; returns only in that worker."""
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        system.prctl(system.CHILD_SUBREAPER, 1)
        if os.getppid() != self._launcher or self._line is None:
            os._exit(0)
        with self._line as line:
            worker = _fork_spare_worker()
            if worker is not None and worker.process == 0:
                return worker.receive()
            order, descriptors = receive(line, 1)
        if not order or descriptors is None:
            if worker is not None:
                worker.end()
            os._exit(0)
        return supervise(descriptors, launcher=self._launcher, host=host, spare_worker=worker)


class SpareWorker:
    """A worker forked in advance: it has its own mount namespace and waits for its task."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        # Tells of changes since the fork. Mounts that are not shared, as in many containers, do not propagate to the worker.
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.process = system.fork()
        if self.process != 0:
            self._theirs.close()

    def give(self, task: Task) -> bool:
        """Send it the task; False if the task needs a differently prepared worker, and this one is killed."""
        policy = task.job["policy"]
        if policy["network"] or policy["unconfined"] or has_event(self._mounts, select.POLLPRI):
            self.end()
            return False
        message = {**task.job, "folder": task.folder}
        try:
            socket.send_fds(self._ours, [b"."], task.descriptors.all())
            self._ours.sendall(frame(json.dumps(message).encode()) + frame(task.content))
        except OSError:
            self.end()
            return False
        os.close(self._mounts)
        if task.call_handler is None:
            self._ours.close()
        else:
            task.call_handler.notifications.adopt(self._ours)
        return True

    def receive(self) -> Task:
        """In the worker, wait for the task; exits if there will be none."""
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        self._ours.close()
        os.close(self._mounts)
        namespaces = confinement.enter(network=False, in_advance=True)
        confinement.rehearse()
        python_file.rehearse()
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        with self._theirs as line:
            _, descriptors = receive(line, 1)
            if descriptors is None:
                os._exit(0)
            job, content = read_job(line.fileno())
            notify_socket = line.detach() if job["policy"]["observe"] or broker.is_needed(job["policy"]) else None
        return Task(job, content, descriptors, folder=job["folder"], namespaces=namespaces, line=notify_socket)

    def end(self) -> None:
        """Kill it and reap it."""
        self._ours.close()
        os.close(self._mounts)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def receive(line: socket.socket, size: int) -> tuple[bytes, Descriptors | None]:
    """The next order, empty at end of file; without descriptors if not all of them arrived."""
    try:
        order, descriptors, _, _ = socket.recv_fds(line, size, _DESCRIPTORS)
    except ConnectionError:
        return b"", None
    if len(descriptors) == _DESCRIPTORS:
        return order, Descriptors(*descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return order, None


def _fork_spare_worker() -> SpareWorker | None:
    try:
        return SpareWorker()
    except OSError:
        return None
