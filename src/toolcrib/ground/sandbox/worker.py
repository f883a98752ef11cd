"""The worker: steps out of the supervisor's world and becomes the job."""

from __future__ import annotations

import fcntl
import json
import os
import signal

from toolcrib.ground.sandbox import python, system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from toolcrib.ground.sandbox.supervisor import Descriptors, Task

# Every descriptor of the launcher and of a supervisor is below: they are started with one and open a handful.
_ABOVE_OUR_DESCRIPTORS = 1024
_CANNOT_START = 127


def work(task: Task) -> NoReturn:
    """Do the job and end with it."""
    _step_out(task.descriptors)
    job, result = task.job, task.descriptors.result
    try:
        os.chdir(job["cwd"])
        if "argv" in job:
            _become(job)
    except (OSError, ValueError) as problem:
        write_all(result, json.dumps({"cannot_start": str(problem)}).encode())
        os._exit(_CANNOT_START)
    python.run(job, task.code, lambda answer: write_all(result, answer))


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, unless the reader has gone."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return


def _step_out(descriptors: Descriptors) -> None:
    """Keep the standard streams and the result pipe; the result pipe is not passed on to programs."""
    os.setsid()
    system.prctl(system.PDEATHSIG, signal.SIGKILL)
    system.prctl(system.DUMPABLE, 1)
    os.dup2(descriptors.stdout, 1)
    os.dup2(descriptors.stderr, 2)
    os.closerange(3, descriptors.result)
    os.closerange(descriptors.result + 1, _ABOVE_OUR_DESCRIPTORS)
    fcntl.fcntl(descriptors.result, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _become(job: dict[str, Any]) -> NoReturn:
    # Python ignores these two; a program expects to be ended by them.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execve(job["argv"][0], job["argv"], job["environment"])  # noqa: S606 - running programs is what a worker is for
