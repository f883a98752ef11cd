"""The worker: detaches from the supervisor, applies the confinement and runs the job."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct

from toolcrib.infra.channel import frame
from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import python_file, seccomp
from toolcrib.infra.sandbox.child.confinement import Confinement, ConfinementError
from toolcrib.infra.sandbox.child.seccomp import SingleStart
from toolcrib.infra.sandbox.child.supervisor import tell

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from toolcrib.infra.sandbox.child.supervisor import Descriptors, Task

CHANNEL = "TOOLCRIB_CHANNEL"
# The launcher and a supervisor only open a handful of descriptors, all below this number.
_ABOVE_OUR_DESCRIPTORS = 1024
_CANNOT_START = 127
# What every pipe takes; more has to be asked for.
_PIPE_BYTES = 65_536
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which older interpreters do not name


def work(task: Task) -> NoReturn:
    """Run the job and exit."""
    supervisor = os.getppid()
    job, descriptors = task.job, task.descriptors
    notify_socket = task.notify_socket()
    _set_up_process(descriptors, channel=job["channel"], notify_socket=notify_socket)
    try:
        _set_up_input(job["stdin"])
        start = _confine(task, notify_socket)
    except ConfinementError as problem:
        _fail(descriptors.socket, str(problem))
    except Exception as problem:  # noqa: BLE001 - the main function of a child: every failure must reach the host
        _fail(descriptors.socket, f"{type(problem).__name__}: {problem}")
    os.close(descriptors.socket)
    if os.getppid() != supervisor:  # the supervisor ended before the death signal was set
        os._exit(_CANNOT_START)
    if start is not None:
        _become(start, descriptors.result)
    python_file.run(job, task.code(), lambda answer: system.write_all(descriptors.result, answer))


def _set_up_process(descriptors: Descriptors, *, channel: bool, notify_socket: int | None) -> None:
    """Keep the standard streams, the result pipe and the channel; programs do not inherit the result pipe."""
    os.setsid()
    system.prctl(system.PDEATHSIG, signal.SIGKILL)
    system.prctl(system.DUMPABLE, 1)
    os.dup2(descriptors.stdout, 1)
    os.dup2(descriptors.stderr, 2)
    kept = {descriptors.socket, descriptors.result}
    if notify_socket is not None:
        kept.add(notify_socket)
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


def _set_up_input(text: str | None) -> None:
    """Make the text the standard input: all of it is in the pipe before anything runs, so that nothing has to feed it."""
    if text is None:
        return
    data = text.encode("utf-8", "surrogatepass")
    reading, writing = os.pipe()
    if len(data) > _PIPE_BYTES:
        fcntl.fcntl(writing, _SET_PIPE_SIZE, len(data))
    os.set_blocking(writing, False)
    if os.write(writing, data) < len(data):
        raise OSError("the standard input is too long for a pipe")
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)


def _confine(task: Task, notify_socket: int | None) -> ProgramStart | None:
    """Apply the confinement; returns the program to start, if the job is one."""
    job, descriptors = task.job, task.descriptors
    if job["policy"]["unconfined"]:
        return _start_unconfined(job, descriptors)
    programs: bool = job["policy"]["programs"]
    confinement = Confinement(job, task.files(), folder=task.folder, namespaces=task.namespaces)
    listener = confinement.set_up()
    if listener is not None:
        _send_listener(listener, descriptors.socket)
    job["environment"] = _environment(job, confinement.scratch, descriptors.channel)
    try:
        os.chdir(job["cwd"])
        only = not programs and seccomp.is_known()
        start = ProgramStart(job["argv"], job["environment"], only=only) if "argv" in job else None
    except (OSError, ValueError) as problem:
        _cannot_start(descriptors.result, problem)
    starts = programs if start is None or start.single_start is None else start.single_start
    confinement.lock_down(starts, executable=programs or start is not None, notify_socket=notify_socket)
    return start


def _start_unconfined(job: dict[str, Any], descriptors: Descriptors) -> ProgramStart:
    """Prepare a program of the operator that needs access that no tool has."""
    try:
        os.chdir(job["cwd"])
        return ProgramStart(job["argv"], job["environment"], only=False)
    except (OSError, ValueError) as problem:
        _cannot_start(descriptors.result, problem)


def _environment(job: dict[str, Any], scratch: str, channel: int) -> dict[str, str]:
    environment = {"TMPDIR": scratch, "HOME": scratch, **job["environment"]}
    return {**environment, CHANNEL: str(channel)} if job["channel"] else environment


def _send_listener(listener: socket.socket, line: int) -> None:
    """Send the listening socket of the job's network namespace to the host, which accepts there."""
    with listener, socket.socket(fileno=os.dup(line)) as host:
        socket.send_fds(host, [frame(json.dumps({"listener": True}).encode())], [listener.fileno()])


def _become(start: ProgramStart, result: int) -> NoReturn:
    # Python ignores these two signals; a program expects the default action.
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
    system.write_all(result, json.dumps({"cannot_start": str(problem)}).encode())
    os._exit(_CANNOT_START)


# Starting a program so that the seccomp filter can tell this execve from any later one.

_READ_WRITE = 3
_PRIVATE_ANONYMOUS, _NOT_OVER_OTHERS = 0x22, 0x100000
_PAGE = 4096
_LARGEST_ADDRESS = 1 << 38  # available on every supported machine
_TRIES = 20


class ProgramStart:
    """A program with its arguments and environment, ready to be executed by this process.

    With `only`, they are placed at random addresses, and the filter allows execve with these addresses alone. After the
    execve nothing is left in memory from which the program could learn them.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], *, only: bool) -> None:
        self._argv = list(argv)
        self._environment = environment
        self.single_start = _lay_out(argv, environment) if only else None

    def go(self) -> NoReturn:
        """Execute the program; raises OSError if that fails."""
        if self.single_start is None:
            os.execve(self._argv[0], self._argv, self._environment)  # noqa: S606 - executing programs is the purpose of a worker
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        library.execve(*map(ctypes.c_void_p, self.single_start.addresses))
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), self._argv[0])


def _lay_out(argv: Sequence[str], environment: Mapping[str, str]) -> SingleStart:
    variables = [f"{name}={value}" for name, value in environment.items()]
    return SingleStart(
        _place(lambda _: _bytes_of(argv[0])),
        _place(lambda address: _table(argv, address)),
        _place(lambda address: _table(variables, address)),
    )


def _bytes_of(text: str) -> bytes:
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return data + b"\0"


def _table(texts: Sequence[str], address: int) -> bytes:
    """The pointer array, a null pointer, and the strings."""
    parts = list(map(_bytes_of, texts))
    place = address + 8 * (len(parts) + 1)
    addresses = []
    for part in parts:
        addresses.append(place)
        place += len(part)
    return struct.pack(f"@{len(parts) + 1}Q", *addresses, 0) + b"".join(parts)


def _place(layout: Callable[[int], bytes]) -> int:
    """Map memory at a random address and fill it with the bytes laid out for that address."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    for _ in range(_TRIES):
        lot = int.from_bytes(os.urandom(8), "little")
        address = lot % _LARGEST_ADDRESS // 8 * 8
        data = layout(address)
        page = address // _PAGE * _PAGE
        flags = _PRIVATE_ANONYMOUS | _NOT_OVER_OTHERS
        size = ctypes.c_size_t(address - page + len(data))
        got = library.mmap(ctypes.c_void_p(page), size, _READ_WRITE, flags, -1, ctypes.c_long(0))
        if got == page:
            ctypes.memmove(address, data, len(data))
            return address
    raise OSError("no free memory address for the arguments of the program")
