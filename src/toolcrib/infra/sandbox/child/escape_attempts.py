"""Try everything that a job must not be able to do. The probe runs this file as a job; no module imports it.

It needs only the standard library, and reports the attempts that succeeded.
"""

# ruff: noqa: PTH101, PTH108, PTH115, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import ctypes
import errno
import functools
import json
import mmap
import os
import socket
import sys

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Act = Callable[[], object]

# x86_64 and aarch64.
_CALLS = {
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "setns": (308, 268),
    "shmget": (29, 194),
}
_MACHINES = ("x86_64", "aarch64")
_NO_CALL = -1
_NOTHING = (0,) * 6
# With zeros only it would succeed, and the parent would be notified of every step from then on.
_ARGUMENTS = {"ptrace": (0x4206, 0x7FFFFFFF, 0, 0, 0, 0)}  # PTRACE_SEIZE of a process that does not exist
_UNAVAILABLE = (errno.EPERM, errno.EACCES, errno.ENOSYS)
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_ASK_VERSION = 1
_LANDLOCK_CREATE_RULESET = 444


def main(facts: dict[str, Any]) -> dict[str, object]:
    """The successful attempts by the guarantee that they break, and the active layers."""
    acts = {
        "fs": _files(facts),
        "net": _network(facts),
        "proc": _processes(facts),
        "priv": _privileges(facts),
        "mem": _memory(),
    }
    through = {guarantee: [name for name, act in tried if _succeeds(act)] for guarantee, tried in acts.items()}
    through["env"] = sorted(set(os.environ) - set(facts["environment"]))
    return {"through": through, "layers": list(_layers(facts))}


def _succeeds(act: Act) -> bool:
    try:
        act()
    except (OSError, ValueError):
        return False
    return True


def _files(facts: dict[str, Any]) -> Iterator[tuple[str, Act]]:
    secret, folder = facts["secret"], facts["folder"]
    yield "read a file", lambda: open(secret).read()  # noqa: SIM115 - an attempt
    yield "list a folder", lambda: os.listdir(folder)
    yield "list the root", lambda: os.listdir("/")
    yield "write a file", lambda: os.open(f"{folder}/made", os.O_CREAT | os.O_WRONLY)
    yield "change a file", lambda: os.open(secret, os.O_WRONLY)
    yield "empty a file", lambda: os.truncate(secret, 0)
    yield "change the mode of a file", lambda: os.chmod(secret, 0o600)
    yield "change the time of a file", lambda: os.utime(secret, (0, 0))
    yield "remove a file", lambda: os.unlink(f"{folder}/spare")
    yield "write to the kernel", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)


def _network(facts: dict[str, Any]) -> Iterator[tuple[str, Act]]:
    def connect(tree: int, address: tuple[str, int] | str) -> None:
        with socket.socket(tree, socket.SOCK_STREAM) as line:
            line.settimeout(2)
            line.connect(address)

    def send(address: tuple[str, int]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"x", address)

    def send_from_pair() -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            ours.sendto(b"x", facts["datagrams"])

    yield "connect by TCP", lambda: connect(socket.AF_INET, ("127.0.0.1", facts["tcp"]))
    yield "send by UDP", lambda: send(("127.0.0.1", facts["udp"]))
    yield "connect to a socket in a folder", lambda: connect(socket.AF_UNIX, facts["stream"])
    yield "connect to an abstract socket", lambda: connect(socket.AF_UNIX, "\0" + facts["abstract"])
    yield "send from a pair of sockets", send_from_pair
    yield "open a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
    yield "talk to the kernel's network", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()


def _processes(facts: dict[str, Any]) -> Iterator[tuple[str, Act]]:
    host = facts["host"]
    yield "signal the host", lambda: os.kill(host, 0)
    yield "signal the supervisor", lambda: os.kill(os.getppid(), 0)
    yield "read the host's environment", lambda: open(f"/proc/{host}/environ").read()  # noqa: SIM115 - an attempt
    yield "read the host's arguments", lambda: open(f"/proc/{host}/cmdline").read()  # noqa: SIM115 - an attempt
    yield "read the host's memory", lambda: os.open(f"/proc/{host}/mem", os.O_RDONLY)
    yield "list the processes", lambda: os.listdir("/proc")
    yield "slow the host down", lambda: os.setpriority(os.PRIO_PROCESS, host, os.getpriority(os.PRIO_PROCESS, host))


def _privileges(facts: dict[str, Any]) -> Iterator[tuple[str, Act]]:
    library = ctypes.CDLL(None, use_errno=True)
    yield "keep a privilege", _hold_capabilities
    yield "make a namespace for mounts", functools.partial(_ask, library.unshare, _NEW_MOUNTS)
    yield "make a namespace for users", functools.partial(_ask, library.unshare, _NEW_USER)
    yield "mount", functools.partial(_ask, library.mount, None, None, None, 0, None)
    machine = os.uname().machine
    for name, numbers in _CALLS.items():
        # On another architecture the call cannot be tried, and counts as successful.
        number = numbers[_MACHINES.index(machine)] if machine in _MACHINES else _NO_CALL
        arguments = map(ctypes.c_long, _ARGUMENTS.get(name, _NOTHING))
        yield name, functools.partial(_ask, library.syscall, number, *arguments)
    if not facts["programs"]:
        yield "start a program", _start


def _memory() -> Iterator[tuple[str, Act]]:
    """Shared memory that no process is charged for."""
    yield "share pages", lambda: mmap.mmap(-1, mmap.PAGESIZE)
    yield "share pages of a device", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), mmap.PAGESIZE)
    if hasattr(os, "memfd_create"):
        yield "make a file in memory", lambda: os.memfd_create("made")


def _ask(function: Callable[..., int], *arguments: object) -> None:
    if arguments[0] != _NO_CALL and function(*arguments) == -1 and ctypes.get_errno() in _UNAVAILABLE:
        raise PermissionError


def _start() -> None:
    child = os.fork()
    if child == 0:
        try:
            os.execv("/bin/true", ["true"])  # noqa: S606 - an attempt
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise PermissionError


def _hold_capabilities() -> None:
    """An unknown value counts as held."""
    status = dict(line.split(":", 1) for line in _read("/proc/self/status").splitlines() if ":" in line)
    held = any(int(status.get(name, "1"), 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    if status.get("NoNewPrivs", "").strip() == "1" and not held:
        raise PermissionError


def _layers(facts: dict[str, Any]) -> Iterator[str]:
    yield "hygiene"
    if _is_another("mnt", facts["mounts"]):
        yield "mounts"
    if _is_another("net", facts["network"]):
        yield "network"
    version = ctypes.CDLL(None).syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_long(0), _ASK_VERSION)
    if version > 0 and not _succeeds(lambda: os.listdir("/")):
        yield f"landlock {version}"
    if "Seccomp:\t2" in _read("/proc/self/status"):
        yield "seccomp"


def _is_another(kind: str, hosts: str) -> bool:
    """Whether this process is in another namespace than the host."""
    try:
        own = os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return False
    return bool(hosts) and own != hosts


def _read(path: str) -> str:
    """The content of a file; empty if it cannot be read."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
