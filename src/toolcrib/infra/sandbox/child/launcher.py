"""The launcher: a small process without inherited state, from which every call is forked."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys

from toolcrib.infra.channel import FAREWELL, ORDER_BYTES
from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import confinement
from toolcrib.infra.sandbox.child.python_file import preload
from toolcrib.infra.sandbox.child.supervisor import SpareSupervisor, receive, supervise, tell
from toolcrib.infra.sandbox.child.worker import work
from toolcrib.infra.sandbox.system import Events, ProcessTree

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from toolcrib.infra.sandbox.child.supervisor import Descriptors, Task

_END_SECONDS = 2.5
_STRAY_SECONDS = 0.01
_PAUSE_SECONDS = 0.003


def main(control: int, host: int) -> NoReturn:
    """Serve the host until it exits; a forked worker returns from `become` and runs its job here."""
    _harden()
    watch = _watch_process(host)
    become = _serve(socket.socket(fileno=control), host, watch)
    work(become(watch))


def _harden() -> None:
    """Drop everything inherited from the host, and prevent workers from inspecting this process."""
    system.forget_signals()
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    system.prctl(system.NO_NEW_PRIVS, 1)
    system.prctl(system.DUMPABLE, 0)
    system.prctl(system.CHILD_SUBREAPER, 1)
    sys.dont_write_bytecode = True
    confinement.prepare()
    gc.freeze()


def _watch_process(process: int) -> int | None:
    """A descriptor that becomes readable when the process ends, None if the system has no pidfd."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _serve(control: socket.socket, host: int, watch: int | None) -> Callable[[int | None], Task]:
    """Provide a supervisor for every call; like fork, this returns only in supervisors, with what they have to run."""
    launcher = os.getpid()
    events = Events()
    tree = ProcessTree(events)
    supervisors: set[int] = set()
    spare = SpareSupervisor(launcher)
    watched = [control.fileno()] if watch is None else [control.fileno(), watch]
    strays, pause, had_orders, is_awaited = False, None, False, False
    while True:
        ready, signals = events.wait(watched, _STRAY_SECONDS if strays else pause)
        strays = _reap_supervisors(tree, supervisors, spare, strays=strays)
        if watch in ready or signal.SIGTERM in signals or os.getppid() != host:
            _end(tree, supervisors, spare)
        if control.fileno() not in ready:
            # Fork a spare supervisor while idle, not beside a call that it would delay.
            if not signals and not supervisors and spare.make():
                events.close()
                control.close()
                return spare.become
            pause = None if supervisors or spare.is_there else _PAUSE_SECONDS
            continue
        order, descriptors = receive(control, ORDER_BYTES)
        if not order:
            _end(tree, supervisors, spare, leave=not is_awaited)
        is_awaited = order == FAREWELL
        if descriptors is None:
            continue
        if preload(order):
            spare.dismiss()
        if _assign(descriptors, spare, supervisors):
            events.close()
            control.close()
            return lambda host: supervise(descriptors, launcher=launcher, host=host)
        # There is capacity beside a single call; the very first call may be the only one.
        if had_orders and len(supervisors) == 1 and spare.make():
            events.close()
            control.close()
            return spare.become
        had_orders = True


def _assign(descriptors: Descriptors, spare: SpareSupervisor, supervisors: set[int]) -> bool:
    """Give the call to the spare supervisor or to a new one; like fork, True only in the new one."""
    if spare.take(descriptors):
        supervisors.add(spare.process)
        return False
    supervisor = _fork_supervisor(descriptors)
    if supervisor:
        supervisors.add(supervisor)
    return supervisor == 0


def _fork_supervisor(descriptors: Descriptors) -> int | None:
    supervisor = None
    try:
        supervisor = system.fork()
    except OSError as problem:
        tell(descriptors.socket, {"failed": f"no process could be started: {problem.strerror}"})
    if supervisor != 0:
        descriptors.close()
    return supervisor


def _reap_supervisors(tree: ProcessTree, supervisors: set[int], spare: SpareSupervisor, *, strays: bool) -> bool:
    """Reap supervisors; returns whether processes of a killed supervisor are still left."""
    tree.reap()
    strays = strays or any(status != 0 for status in tree.statuses.values())
    supervisors.difference_update(tree.statuses)
    tree.statuses.clear()
    return strays and system.HAS_SUBREAPER and tree.kill_strays({*supervisors, spare.process})


def _end(tree: ProcessTree, supervisors: set[int], spare: SpareSupervisor, *, leave: bool = True) -> NoReturn:
    """Let the supervisors end their calls, then kill what is left, and leave the cgroup unless the host removes it."""
    spare.dismiss()
    system.send_signal(supervisors, signal.SIGTERM)
    if not tree.wait(_END_SECONDS) and system.HAS_SUBREAPER:
        tree.kill_all(_END_SECONDS)
    if leave:
        system.leave_cgroup()
    os._exit(0)
