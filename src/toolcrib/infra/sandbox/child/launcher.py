"""The launcher: a small process with nothing to inherit, out of which every call is forked."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys

from toolcrib.infra.sandbox.child import confinement, resource_limits, system
from toolcrib.infra.sandbox.child.preload import ORDER_BYTES, preload
from toolcrib.infra.sandbox.child.process_tree import Family
from toolcrib.infra.sandbox.child.supervisor import Spare, receive, supervise, tell
from toolcrib.infra.sandbox.child.system import Events
from toolcrib.infra.sandbox.child.worker import work

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from toolcrib.infra.sandbox.child.supervisor import Descriptors, Task

_END_SECONDS = 2.5
_STRAY_SECONDS = 0.01
_PAUSE_SECONDS = 0.003


def main(control: int, host: int) -> NoReturn:
    """Serve the host until it goes away. Forked processes come out of `serve` and `supervise` and go on from there."""
    _harden()
    watch = _watch_process(host)
    become = _serve(socket.socket(fileno=control), host, watch)
    work(become(watch))


def _harden() -> None:
    """Become a process that passes nothing of the host on, and that no worker can look into."""
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
    """A descriptor that can be read once the process has ended, where the system has such."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _serve(control: socket.socket, host: int, watch: int | None) -> Callable[[int | None], Task]:
    """Have a supervisor for every call; like fork, this returns in the supervisors alone, with what makes them one."""
    launcher = os.getpid()
    events = Events()
    family = Family(events)
    supervisors: set[int] = set()
    spare = Spare(launcher)
    watched = [control.fileno()] if watch is None else [control.fileno(), watch]
    strays, pause, had_orders = False, None, False
    while True:
        ready, signals = events.wait(watched, _STRAY_SECONDS if strays else pause)
        strays = _look_after(family, supervisors, spare, strays=strays)
        if watch in ready or signal.SIGTERM in signals or os.getppid() != host:
            _end(family, supervisors, spare)
        if control.fileno() not in ready:
            # In a pause, and not beside a call that it would hold up: the next one finds a process ready.
            if not signals and not supervisors and spare.make():
                events.close()
                control.close()
                return spare.become
            pause = None if supervisors or spare.is_there else _PAUSE_SECONDS
            continue
        wish, descriptors = receive(control, ORDER_BYTES)
        if not wish:
            _end(family, supervisors, spare)
        if descriptors is None:
            continue
        if preload(wish):
            spare.dismiss()
        if _hand_out(descriptors, spare, supervisors):
            events.close()
            control.close()
            return lambda host: supervise(descriptors, launcher=launcher, host=host)
        # Beside a single call there is room for it; the very first call is perhaps the only one.
        if had_orders and len(supervisors) == 1 and spare.make():
            events.close()
            control.close()
            return spare.become
        had_orders = True


def _hand_out(descriptors: Descriptors, spare: Spare, supervisors: set[int]) -> bool:
    """Let a supervisor have the call, one that waits or a new one; like fork, True in the new one alone."""
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


def _look_after(family: Family, supervisors: set[int], spare: Spare, *, strays: bool) -> bool:
    """Bury supervisors; whether one left processes behind, because it was killed, that are not yet gone."""
    family.reap()
    strays = strays or any(status != 0 for status in family.statuses.values())
    supervisors.difference_update(family.statuses)
    family.statuses.clear()
    return strays and system.HAS_SUBREAPER and family.kill_strays({*supervisors, spare.process})


def _end(family: Family, supervisors: set[int], spare: Spare) -> NoReturn:
    """Let the supervisors end their calls, then make sure."""
    spare.dismiss()
    system.send_signal(supervisors, signal.SIGTERM)
    if not family.wait(_END_SECONDS) and system.HAS_SUBREAPER:
        family.press(signal.SIGKILL, _END_SECONDS)
    resource_limits.leave()
    os._exit(0)
