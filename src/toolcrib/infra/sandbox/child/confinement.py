"""The confinement of a worker, applied in its own process before any untrusted code runs."""

# ruff: noqa: PTH110, PTH112, PTH116, PTH118, PTH120 - pathlib would take a third of the start
from __future__ import annotations

import functools
import json
import os
import signal
import stat

from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import broker, isolation, notifications, resource_limits, seccomp
from toolcrib.infra.sandbox.child.observer import observed_calls

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator
    from typing import Any

    from toolcrib.infra.sandbox.child.seccomp import SingleStart

PROXY_HOST, PROXY_PORT = "127.0.0.1", 3128  # as in jobs

_DEVICES = ("null", "full", "random", "urandom", "tty")
# With write access it could be mapped as shared memory that no limit counts.
_ZEROES = "/dev/zero"
# Not the whole folder: it also shows the connections of the machine.
_OWN_PROCESS = (
    *("cgroup", "cmdline", "comm", "environ", "fd", "limits", "maps", "mountinfo", "mounts", "stat", "statm", "status"),
)
# Without O_PATH the files are opened for reading.
_FILE_ITSELF = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_CLEAR_ALL = 4


class ConfinementError(Exception):
    """The confinement of this job cannot be applied here; the message says why."""


class Namespaces:
    """The namespaces of a worker: whether it has its own mount namespace and its own user namespace."""

    __slots__ = ("has_mounts", "in_user_namespace")

    def __init__(self, *, has_mounts: bool, in_user_namespace: bool) -> None:
        self.has_mounts = has_mounts
        self.in_user_namespace = in_user_namespace


def enter(*, network: bool, in_advance: bool = False) -> Namespaces:
    """Enter new namespaces as far as available; `in_advance` of the job, mounts from outside still propagate."""
    users = _users()
    has_mounts = isolation.enter(network=network, in_advance=in_advance)
    return Namespaces(has_mounts=has_mounts, in_user_namespace=has_mounts and _users() != users)


def _users() -> int:
    """The user namespace of this process; 0 if unknown."""
    try:
        return os.stat("/proc/self/ns/user").st_ino
    except OSError:
        return 0


class Confinement:
    """The confinement of one job: `set_up` prepares its environment, `lock_down` drops all further access."""

    def __init__(
        self,
        job: dict[str, Any],
        contents: list[tuple[str, bytes]],
        *,
        folder: str,
        namespaces: Namespaces | None = None,
    ) -> None:
        self._policy: dict[str, Any] = job["policy"]
        self._required: list[str] = job.get("layers", [])
        self._is_program = "argv" in job
        self._contents = contents
        self._folder = folder
        self._namespaces = namespaces
        self._has_mounts = False
        self._in_user_namespace = False
        self._files: list[int] = []
        self.layers = ["hygiene"]
        self.scratch = isolation.SCRATCH

    def set_up(self) -> socket.socket | None:
        """Set up scratch folder, mounts, limits and network; returns the listening socket of the network."""
        policy = self._policy
        if self._namespaces is not None and self._namespaces.has_mounts:
            isolation.settle()
        namespaces = self._namespaces or enter(network=policy["network"])
        self._has_mounts, self._in_user_namespace = namespaces.has_mounts, namespaces.in_user_namespace
        self._files = [_open_itself(*file) for file in policy["files"]]
        if self._has_mounts:
            self.layers.append("mounts")
            _arrange(policy, self._files)
            isolation.put_over([(path, content) for path, content in self._contents if os.path.exists(path)])
            isolation.make_scratch(policy["disk_bytes"])
        else:
            _refuse_exceptions(policy)
            _refuse_writing(policy)
            self.scratch = self._folder
            resource_limits.make(self._folder)
        resource_limits.limit(policy, is_program=self._is_program, count_processes=self._in_user_namespace)
        return self._open_network() if policy["network"] else None

    def lock_down(self, starts: bool | SingleStart, *, executable: bool, notify_socket: int | None) -> None:  # noqa: FBT001 - it is the kind of start
        """Drop privileges, apply Landlock and the seccomp filter; `executable` allows reading programs for execution.

        `notify_socket` leads to the handler of notified calls: the observer, or the broker that changes files.
        """
        _drop_capabilities(again=self._in_user_namespace)
        system.prctl(system.NO_NEW_PRIVS, 1)
        system.prctl(system.DUMPABLE, 1)
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        if broker.is_needed(self._policy) and not isolation.version():
            raise ConfinementError(
                f"{self._policy['write'][0]} cannot be opened for writing: Landlock is blocked here, or not in the kernel"
            )
        if isolation.version():
            self.layers.append(f"landlock {isolation.version()}")
            isolation.restrict(self._rules(executable=executable), tcp=self._policy["network"])
        for file in self._files:
            os.close(file)
        if seccomp.is_known():
            self.layers.append("seccomp")
        self._check_layers()
        if seccomp.is_known():
            observed: bool = self._policy["observe"]
            facts = {"network": self._policy["network"], "mounts": self._has_mounts, "observed": observed}
            seccomp.install(seccomp.build(**facts, starts=starts))
        if notify_socket is not None:
            self._install_notifications(notify_socket)

    def _install_notifications(self, notify_socket: int) -> None:
        own = isolation.SHARED_MEMORY if self._has_mounts else self.scratch
        words = json.dumps({"own": own, "mounts": self._has_mounts}).encode()
        if not self._policy["observe"]:
            notifications.install_filter(broker.build_filter(reads=bool(self._policy["only"])), notify_socket, words)
            return
        notifications.install(observed_calls(), notify_socket, words)

    def _open_network(self) -> socket.socket:
        if not self._has_mounts:
            raise ConfinementError(
                "a job with network access needs a network namespace, which this system does not offer"
            )
        self.layers.append("network")
        return isolation.listen(PROXY_HOST, PROXY_PORT)

    def _check_layers(self) -> None:
        """Refuse to run with fewer layers than the probe found."""
        missing = [layer for layer in self._required if layer not in self.layers]
        if missing:
            raise ConfinementError(f"{', '.join(missing)} was active when the sandbox was probed and is not active now")

    def _rules(self, *, executable: bool) -> Iterator[tuple[str | int, int]]:
        policy = self._policy
        execute = isolation.EXECUTE if executable else 0
        listed = set(policy["listed"])
        for path in policy["read"]:
            yield path, isolation.READ_DIR if path in listed else isolation.READ | execute
        for file in self._files:
            yield file, isolation.WRITE
        yield self.scratch, isolation.READ | isolation.WRITE | (isolation.EXECUTE if policy["programs"] else 0)
        if self._has_mounts:
            yield isolation.SHARED_MEMORY, isolation.READ | isolation.WRITE
        for device in _DEVICES:
            yield f"/dev/{device}", isolation.USE_DEVICE
        yield _ZEROES, isolation.READ
        for entry in _OWN_PROCESS:
            yield f"/proc/self/{entry}", isolation.READ


def _open_itself(path: str, device: int, inode: int) -> int:
    """Open the file with this identity; from here on its path does not matter."""
    try:
        file = os.open(path, _FILE_ITSELF)
    except OSError as problem:
        raise _replaced(path) from problem
    facts = os.fstat(file)
    if (facts.st_dev, facts.st_ino) != (device, inode) or not stat.S_ISREG(facts.st_mode):
        raise _replaced(path)
    return file


def _replaced(path: str) -> ConfinementError:
    return ConfinementError(f"{path}: the file was replaced meanwhile; call again")


def _arrange(policy: dict[str, Any], files: list[int]) -> None:
    """Mount everything read-only except what is writable, protect what is fixed and cover what is closed."""
    writable = _outermost(map(os.path.realpath, policy["write"]))
    # Inside a writable folder it stays an ordinary file, which can be renamed and removed.
    alone = [file for file, (path, *_) in zip(files, policy["files"], strict=True) if not _roots_of(path, writable)]
    try:
        isolation.make_read_only([*writable, *alone])
    except FileNotFoundError as problem:
        raise ConfinementError("something that the job may write was removed meanwhile; call again") from problem
    isolation.mask([path for path in (*policy["masked"], *policy["hidden"]) if os.path.lexists(path)])
    fixed = [path for path in _outermost(map(os.path.realpath, policy["fixed"])) if _roots_of(path, writable)]
    closed = list(map(os.path.realpath, policy["closed"]))
    _refuse_links([*policy["fixed"], *policy["closed"]], policy["write"])
    for folder in _folders_to_hold([*fixed, *closed], writable):
        isolation.hold(folder)
    for path in fixed:
        if os.path.lexists(path):
            isolation.fix(path)
    if closed:
        shown = _outermost(path for path in map(os.path.realpath, policy["read"]) if _roots_of(path, closed))
        isolation.close([path for path in closed if os.path.lexists(path)], shown)


def _folders_to_hold(paths: Iterable[str], writable: Iterable[str]) -> list[str]:
    """The folders between a writable one and a protected path in it, outer ones first.

    If one of them could be renamed, another could be put in its place.
    """
    found: set[str] = set()
    for path in paths:
        for root in _roots_of(path, writable):
            folder = os.path.dirname(path)
            while system.is_in(folder, (root,)) and folder != root:
                found.add(folder)
                folder = os.path.dirname(folder)
    return sorted(folder for folder in found if os.path.isdir(folder))


def _refuse_links(paths: Iterable[str], roots: Iterable[str]) -> None:
    """Refuse a link in a writable folder that the job could redirect, past the mount over its target."""
    for root in roots:
        real = os.path.realpath(root)
        for path in paths:
            if not system.is_in(path, (root, real)):
                continue
            expected = os.path.join(real, os.path.relpath(path, root if system.is_in(path, (root,)) else real))
            if os.path.realpath(path) != os.path.normpath(expected):
                raise ConfinementError(
                    f"{path} is or is behind a symbolic link that the job could change; replace the link"
                )


def _refuse_exceptions(policy: dict[str, Any]) -> None:
    """Without mounts there are no exceptions from readable and writable paths."""
    readable, writable = list(map(os.path.realpath, policy["read"])), list(map(os.path.realpath, policy["write"]))
    for path in map(os.path.realpath, [*policy["closed"], *policy["masked"]]):
        if _roots_of(path, readable) or _roots_of(path, writable):
            raise ConfinementError(
                f"{path} cannot be closed to a job that may access the folder around it: no mount namespace here"
            )
    for path in map(os.path.realpath, policy["fixed"]):
        if _roots_of(path, writable):
            raise ConfinementError(
                f"{path} cannot be protected from a job that may write to the folder around it: no mount namespace here"
            )


def _refuse_writing(policy: dict[str, Any]) -> None:
    """Without mounts the broker could not protect anything."""
    if policy["write"]:
        raise ConfinementError(f"{policy['write'][0]} cannot be opened for writing: no mount namespace here")


def _outermost(paths: Iterable[str]) -> list[str]:
    """The existing paths without those below another one."""
    found: list[str] = []
    for path in sorted({path for path in paths if os.path.exists(path)}):
        if not _roots_of(path, found):
            found.append(path)
    return found


def _roots_of(path: str, roots: Iterable[str]) -> list[str]:
    return [root for root in roots if system.is_in(path, (root,))]


def prepare() -> None:
    """Do the work in the launcher that every worker would repeat otherwise."""
    if system.HAS_SUBREAPER:
        system.look_up()
    if seccomp.is_known():
        seccomp.build_common(network=False, mounts=True, observed=False)
    isolation.version()
    if notifications.can_perform():
        broker.build_filter()
    _drop_future_capabilities()


def rehearse() -> None:
    """Run through the confinement in advance of the job; see `python_file.rehearse`."""
    if isolation.version():
        isolation.rehearse()


def _drop_capabilities(*, again: bool) -> None:
    """Drop every capability for good; `again` after entering a user namespace, which grants them all."""
    if again:
        _drop_future_capabilities.cache_clear()
    _drop_future_capabilities()
    if not system.HAS_SUBREAPER:
        return
    system.prctl(system.AMBIENT_CAPABILITIES, _CLEAR_ALL)
    system.set_capabilities()


@functools.cache
def _drop_future_capabilities() -> None:
    """Drop the bounding set, so that no program gains a capability by being set-uid or having file capabilities."""
    if not system.HAS_SUBREAPER:
        return
    capability = 0
    try:
        while True:
            if system.invoke("prctl", system.IS_IN_BOUNDING_SET, capability, 0, 0, 0):
                system.prctl(system.DROP_FROM_BOUNDING_SET, capability)
            capability += 1
    except OSError:
        return  # past the last capability, or no privilege to drop any
