"""Processes that are forked before they are needed: a supervisor that waits for its call, and a worker for its task."""

from __future__ import annotations

import json
import os
import signal
import socket

from toolcrib.ground.channel import frame
from toolcrib.ground.sandbox import enclosure, python, system
from toolcrib.ground.sandbox.supervisor import Descriptors, Task, read_job, supervise

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
        if task.observer is not None or walls["network"] or walls["open"]:
            self.end()
            return False
        message = {**task.job, "folder": task.folder}
        with self._ours as line:
            try:
                socket.send_fds(line, [b"."], task.descriptors.all())
                line.sendall(frame(json.dumps(message).encode()) + frame(task.content))
            except OSError:
                self.end()
                return False
        return True

    def receive(self) -> Task:
        """Wait for the task, in the worker; ends it if there will be none."""
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        self._ours.close()
        room = enclosure.enter(network=False, ahead=True)
        enclosure.rehearse()
        python.rehearse()
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        with self._theirs as line:
            _, descriptors = receive(line, 1)
            if descriptors is None:
                os._exit(0)
            job, content = read_job(line.fileno())
        return Task(job, content, descriptors, folder=job["folder"], room=room)

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
