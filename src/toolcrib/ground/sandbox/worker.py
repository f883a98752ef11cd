"""The worker: steps out of the supervisor's world, has its walls raised and becomes the job."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket

from toolcrib.ground.channel import frame
from toolcrib.ground.sandbox import python, seccomp, system
from toolcrib.ground.sandbox.enclosure import CannotEnclose, Enclosure
from toolcrib.ground.sandbox.starts import Start
from toolcrib.ground.sandbox.supervisor import tell

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from toolcrib.ground.sandbox.supervisor import Descriptors, Task

CHANNEL = "TOOLCRIB_CHANNEL"

# Every descriptor of the launcher and of a supervisor is below: they are started with one and open a handful.
_ABOVE_OUR_DESCRIPTORS = 1024
_CANNOT_START = 127


def work(task: Task) -> NoReturn:
    """Do the job and end with it."""
    supervisor = os.getppid()
    job, descriptors = task.job, task.descriptors
    way_out = None if task.observer is None else task.observer.oversight.way_out()
    _step_out(descriptors, channel=job["channel"], way_out=way_out)
    try:
        start = _raise_walls(task, way_out)
    except CannotEnclose as problem:
        _fail(descriptors.socket, str(problem))
    except Exception as problem:  # noqa: BLE001 - the main function of a child: the host must hear of any failure
        _fail(descriptors.socket, f"{type(problem).__name__}: {problem}")
    os.close(descriptors.socket)
    if os.getppid() != supervisor:  # it went before its end could have been signalled to us
        os._exit(_CANNOT_START)
    if start is not None:
        _become(start, descriptors.result)
    python.run(job, task.code(), lambda answer: write_all(descriptors.result, answer))


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, unless the reader has gone."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return


def _step_out(descriptors: Descriptors, *, channel: bool, way_out: int | None) -> None:
    """Keep the standard streams, the result pipe and the channel; the result pipe is not passed on to programs."""
    os.setsid()
    system.prctl(system.PDEATHSIG, signal.SIGKILL)
    system.prctl(system.DUMPABLE, 1)
    os.dup2(descriptors.stdout, 1)
    os.dup2(descriptors.stderr, 2)
    kept = {descriptors.socket, descriptors.result}
    if way_out is not None:
        kept.add(way_out)
    if channel:
        kept.add(descriptors.channel)
        os.set_inheritable(descriptors.channel, True)  # noqa: FBT003 - the function takes it so
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, _ABOVE_OUR_DESCRIPTORS)
    fcntl.fcntl(descriptors.result, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _raise_walls(task: Task, way_out: int | None) -> Start | None:
    """Close the job in; the start of its program, if it is one."""
    job, descriptors = task.job, task.descriptors
    if job["walls"]["open"]:
        return _start_openly(job, descriptors)
    programs: bool = job["walls"]["programs"]
    enclosure = Enclosure(job, task.files(), folder=task.folder, room=task.room)
    listener = enclosure.furnish()
    if listener is not None:
        _hand_over(listener, descriptors.socket)
    job["environment"] = _environment(job, enclosure.scratch, descriptors.channel)
    try:
        os.chdir(job["cwd"])
        only = not programs and seccomp.is_known()
        start = Start(job["argv"], job["environment"], only=only) if "argv" in job else None
    except (OSError, ValueError) as problem:
        _cannot_start(descriptors.result, problem)
    starts = programs if start is None or start.once is None else start.once
    enclosure.shut(starts, executable=programs or start is not None, way_out=way_out)
    return start


def _start_openly(job: dict[str, Any], descriptors: Descriptors) -> Start:
    """The start of a program of the operator's own, which has to reach what no tool may."""
    try:
        os.chdir(job["cwd"])
        return Start(job["argv"], job["environment"], only=False)
    except (OSError, ValueError) as problem:
        _cannot_start(descriptors.result, problem)


def _environment(job: dict[str, Any], scratch: str, channel: int) -> dict[str, str]:
    environment = {"TMPDIR": scratch, "HOME": scratch, **job["environment"]}
    return {**environment, CHANNEL: str(channel)} if job["channel"] else environment


def _hand_over(listener: socket.socket, line: int) -> None:
    """Give the door of the job's network to the host, who answers there."""
    with listener, socket.socket(fileno=os.dup(line)) as host:
        socket.send_fds(host, [frame(json.dumps({"listener": True}).encode())], [listener.fileno()])


def _become(start: Start, result: int) -> NoReturn:
    # Python ignores these two; a program expects to be ended by them.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        start.go()
    except (OSError, ValueError) as problem:
        _cannot_start(result, problem)


def _fail(line: int, reason: str) -> NoReturn:
    tell(line, {"failed": reason})
    os._exit(_CANNOT_START)


def _cannot_start(result: int, problem: Exception) -> NoReturn:
    write_all(result, json.dumps({"cannot_start": str(problem)}).encode())
    os._exit(_CANNOT_START)
