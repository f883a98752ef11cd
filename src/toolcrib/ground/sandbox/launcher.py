"""The launcher: a small process with nothing to inherit, out of which every call is forked."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys

from toolcrib.ground.sandbox import enclosure, system
from toolcrib.ground.sandbox.family import Family
from toolcrib.ground.sandbox.preload import ORDER_BYTES, preload
from toolcrib.ground.sandbox.supervisor import Descriptors, supervise, tell
from toolcrib.ground.sandbox.system import Events
from toolcrib.ground.sandbox.worker import work

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from typing import NoReturn

_DESCRIPTORS = 5
_END_SECONDS = 2.5
_STRAY_SECONDS = 0.01


def main(control: int, host: int) -> NoReturn:
    """Serve the host until it goes away. Forked processes come out of `serve` and `supervise` and go on from there."""
    _harden()
    launcher = os.getpid()
    watch = _watch_process(host)
    descriptors = _serve(socket.socket(fileno=control), host, watch)
    task = supervise(descriptors, launcher=launcher, host=watch)
    work(task)


def _harden() -> None:
    """Become a process that passes nothing of the host on, and that no worker can look into."""
    system.forget_signals()
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    system.prctl(system.NO_NEW_PRIVS, 1)
    system.prctl(system.DUMPABLE, 0)
    system.prctl(system.CHILD_SUBREAPER, 1)
    sys.dont_write_bytecode = True
    enclosure.prepare()
    gc.freeze()


def _watch_process(process: int) -> int | None:
    """A descriptor that can be read once the process has ended, where the system has such."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _serve(control: socket.socket, host: int, watch: int | None) -> Descriptors:
    """Fork a supervisor for every call; like fork, this returns in the supervisors alone."""
    events = Events()
    family = Family(events)
    supervisors: set[int] = set()
    watched = [control.fileno()] if watch is None else [control.fileno(), watch]
    strays = False
    while True:
        ready, signals = events.wait(watched, _STRAY_SECONDS if strays else None)
        strays = _look_after(family, supervisors, strays=strays)
        if watch in ready or signal.SIGTERM in signals or os.getppid() != host:
            _end(family, supervisors)
        if control.fileno() not in ready:
            continue
        wish, descriptors = _receive(control)
        if not wish:
            _end(family, supervisors)
        if descriptors is None:
            continue
        preload(wish)
        supervisor = _fork_supervisor(descriptors)
        if supervisor == 0:
            events.close()
            control.close()
            return descriptors
        if supervisor is not None:
            supervisors.add(supervisor)


def _receive(control: socket.socket) -> tuple[bytes, Descriptors | None]:
    """The next wish of the host, empty when it has gone; without descriptors if they did not all arrive."""
    try:
        wish, descriptors, _, _ = socket.recv_fds(control, ORDER_BYTES, _DESCRIPTORS)
    except ConnectionError:
        return b"", None
    if len(descriptors) == _DESCRIPTORS:
        return wish, Descriptors(*descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return wish, None


def _fork_supervisor(descriptors: Descriptors) -> int | None:
    supervisor = None
    try:
        supervisor = system.fork()
    except OSError as problem:
        tell(descriptors.socket, {"failed": f"no process could be started: {problem.strerror}"})
    if supervisor != 0:
        descriptors.close()
    return supervisor


def _look_after(family: Family, supervisors: set[int], *, strays: bool) -> bool:
    """Bury supervisors; whether one left processes behind, because it was killed, that are not yet gone."""
    family.reap()
    strays = strays or any(status != 0 for status in family.statuses.values())
    supervisors.difference_update(family.statuses)
    family.statuses.clear()
    return strays and system.HAS_SUBREAPER and family.kill_strays(supervisors)


def _end(family: Family, supervisors: set[int]) -> NoReturn:
    """Let the supervisors end their calls, then make sure."""
    system.send_signal(supervisors, signal.SIGTERM)
    if not family.wait(_END_SECONDS) and system.HAS_SUBREAPER:
        family.press(signal.SIGKILL, _END_SECONDS)
    os._exit(0)
