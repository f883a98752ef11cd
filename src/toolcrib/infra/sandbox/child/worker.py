"""The worker: steps out of the supervisor's world, has its walls raised and becomes the job."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct

from toolcrib.infra.channel import frame
from toolcrib.infra.sandbox.child import python_file, seccomp, system
from toolcrib.infra.sandbox.child.confinement import CannotEnclose, Enclosure
from toolcrib.infra.sandbox.child.seccomp import Once
from toolcrib.infra.sandbox.child.supervisor import tell

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from toolcrib.infra.sandbox.child.supervisor import Descriptors, Task


# Starting a program so that this start, and no later one, can be told apart by a filter of system calls.

_READ_WRITE = 3
_PRIVATE_ANONYMOUS, _NOT_OVER_OTHERS = 0x22, 0x100000
_PAGE = 4096
_LARGEST_ADDRESS = 1 << 38  # every machine has that much
_TRIES = 20


class Start:
    """A program with its arguments and variables, ready to be started by this process.

    If it is to be the `only` start they are laid out at addresses that are drawn by lot, and a filter lets only these
    through. Once the program has started nothing of them is left that it could learn them from.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], *, only: bool) -> None:
        self._argv = list(argv)
        self._environment = environment
        self.once = _lay_out(argv, environment) if only else None

    def go(self) -> NoReturn:
        """Become the program; OSError if that is not possible."""
        if self.once is None:
            os.execve(self._argv[0], self._argv, self._environment)  # noqa: S606 - running programs is what a worker is for
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        library.execve(*map(ctypes.c_void_p, self.once.addresses))
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), self._argv[0])


def _lay_out(argv: Sequence[str], environment: Mapping[str, str]) -> Once:
    variables = [f"{name}={value}" for name, value in environment.items()]
    return Once(
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
    """The addresses of the texts, a zero, and the texts."""
    parts = list(map(_bytes_of, texts))
    place = address + 8 * (len(parts) + 1)
    addresses = []
    for part in parts:
        addresses.append(place)
        place += len(part)
    return struct.pack(f"@{len(parts) + 1}Q", *addresses, 0) + b"".join(parts)


def _place(layout: Callable[[int], bytes]) -> int:
    """Put the bytes at an address drawn by lot, for which they are laid out."""
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
    raise OSError("there is no room in memory for the program's arguments")


CHANNEL = "TOOLCRIB_CHANNEL"

# Every descriptor of the launcher and of a supervisor is below: they are started with one and open a handful.
_ABOVE_OUR_DESCRIPTORS = 1024
_CANNOT_START = 127


def work(task: Task) -> NoReturn:
    """Do the job and end with it."""
    supervisor = os.getppid()
    job, descriptors = task.job, task.descriptors
    way_out = task.way_out()
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
    python_file.run(job, task.code(), lambda answer: write_all(descriptors.result, answer))


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
