"""The walls around a worker, raised from the inside before anything foreign runs."""

# ruff: noqa: PTH110, PTH112, PTH116, PTH118, PTH120 - pathlib would take a third of the start
from __future__ import annotations

import functools
import json
import os
import signal
import stat
import struct

from toolcrib.infra.sandbox.child import broker, isolation, notifications, resource_limits, seccomp, system
from toolcrib.infra.sandbox.child.observer import observed_calls

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator
    from typing import Any

    from toolcrib.infra.sandbox.child.seccomp import Once

PROXY_HOST, PROXY_PORT = "127.0.0.1", 3128  # as in jobs

_DEVICES = ("null", "full", "random", "urandom", "tty")
# Whoever could write to it could map it as memory that is shared and that nobody measures.
_ZEROES = "/dev/zero"
# Not all of it: it also shows the connections of the whole machine.
_OWN_PROCESS = (
    *("cgroup", "cmdline", "comm", "environ", "fd", "limits", "maps", "mountinfo", "mounts", "stat", "statm", "status"),
)
# Where the system has no such names of files they are opened.
_FILE_ITSELF = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_CAPABILITIES_VERSION = 0x20080522
_CLEAR_ALL = 4


class CannotEnclose(Exception):  # noqa: N818 - it says what cannot be done
    """The walls of this job cannot be raised here; the message says why."""


class Room:
    """The namespaces that a worker is in: whether it has mounts of its own, and whether another user namespace."""

    __slots__ = ("has_mounts", "is_elsewhere")

    def __init__(self, *, has_mounts: bool, is_elsewhere: bool) -> None:
        self.has_mounts = has_mounts
        self.is_elsewhere = is_elsewhere


def enter(*, network: bool, ahead: bool = False) -> Room:
    """Step into namespaces of one's own, as far as they are to be had; `ahead` of the job, the outside is still seen to change."""
    users = _users()
    has_mounts = isolation.enter(network=network, ahead=ahead)
    return Room(has_mounts=has_mounts, is_elsewhere=has_mounts and _users() != users)


def _users() -> int:
    """The namespace for users that this process is in; 0 where the system has none."""
    try:
        return os.stat("/proc/self/ns/user").st_ino
    except OSError:
        return 0


class Enclosure:
    """The walls of one job. `furnish` makes the room, `shut` closes it; in between is the last look at the outside."""

    def __init__(
        self, job: dict[str, Any], contents: list[tuple[str, bytes]], *, folder: str, room: Room | None = None
    ) -> None:
        self._walls: dict[str, Any] = job["walls"]
        self._required: list[str] = job.get("layers", [])
        self._is_program = "argv" in job
        self._contents = contents
        self._folder = folder
        self._room = room
        self._has_mounts = False
        self._is_elsewhere = False
        self._files: list[int] = []
        self.layers = ["hygiene"]
        self.scratch = isolation.SCRATCH

    def furnish(self) -> socket.socket | None:
        """Give the job its scratch folder, its view of the files, its limits and its network, whose door is returned."""
        walls = self._walls
        if self._room is not None and self._room.has_mounts:
            isolation.settle()
        room = self._room or enter(network=walls["network"])
        self._has_mounts, self._is_elsewhere = room.has_mounts, room.is_elsewhere
        self._files = [_open_itself(*file) for file in walls["files"]]
        if self._has_mounts:
            self.layers.append("mounts")
            _arrange(walls, self._files)
            isolation.put_over([(path, content) for path, content in self._contents if os.path.exists(path)])
            isolation.make_scratch(walls["disk_bytes"])
        else:
            _refuse_exceptions(walls)
            _refuse_writing(walls)
            self.scratch = self._folder
            resource_limits.make(self._folder)
        resource_limits.limit(walls, is_program=self._is_program, count_processes=self._is_elsewhere)
        return self._open_network() if walls["network"] else None

    def shut(self, starts: bool | Once, *, executable: bool, way_out: int | None) -> None:  # noqa: FBT001 - it is the kind of start
        """Give up every privilege and every way out; `executable` lets programs be read for being started.

        `way_out` leads to what answers calls that wait: what observes the job, or changes files for it.
        """
        _drop_capabilities(anew=self._is_elsewhere)
        system.prctl(system.NO_NEW_PRIVS, 1)
        system.prctl(system.DUMPABLE, 1)
        system.prctl(system.PDEATHSIG, signal.SIGKILL)
        if broker.is_needed(self._walls) and not isolation.version():
            raise CannotEnclose(f"{self._walls['write'][0]} cannot be opened for writing: this kernel has no Landlock")
        if isolation.version():
            self.layers.append(f"landlock {isolation.version()}")
            isolation.restrict(self._rules(executable=executable), tcp=self._walls["network"])
        for file in self._files:
            os.close(file)
        if seccomp.is_known():
            self.layers.append("seccomp")
        self._check_layers()
        if seccomp.is_known():
            observed: bool = self._walls["observe"]
            facts = {"network": self._walls["network"], "mounts": self._has_mounts, "observed": observed}
            seccomp.install(seccomp.build(**facts, starts=starts))
        if way_out is not None:
            self._be_overseen(way_out)

    def _be_overseen(self, way_out: int) -> None:
        own = isolation.SHARED_MEMORY if self._has_mounts else self.scratch
        words = json.dumps({"own": own, "mounts": self._has_mounts}).encode()
        if not self._walls["observe"]:
            notifications.install_filter(broker.build_filter(), way_out, words)
            return
        notifications.install(observed_calls(), way_out, words)

    def _open_network(self) -> socket.socket:
        if not self._has_mounts:
            raise CannotEnclose("a job with a network needs one of its own, and this system does not offer it")
        self.layers.append("network")
        return isolation.listen(PROXY_HOST, PROXY_PORT)

    def _check_layers(self) -> None:
        """Never run with fewer walls than were promised."""
        missing = [layer for layer in self._required if layer not in self.layers]
        if missing:
            raise CannotEnclose(f"{', '.join(missing)} was there when the sandbox was tried and is not there now")

    def _rules(self, *, executable: bool) -> Iterator[tuple[str | int, int]]:
        walls = self._walls
        execute = isolation.EXECUTE if executable else 0
        listed = set(walls["listed"])
        for path in walls["read"]:
            yield path, isolation.READ_DIR if path in listed else isolation.READ | execute
        for file in self._files:
            yield file, isolation.WRITE
        yield self.scratch, isolation.READ | isolation.WRITE | (isolation.EXECUTE if walls["programs"] else 0)
        if self._has_mounts:
            yield isolation.SHARED_MEMORY, isolation.READ | isolation.WRITE
        for device in _DEVICES:
            yield f"/dev/{device}", isolation.USE_DEVICE
        yield _ZEROES, isolation.READ
        for entry in _OWN_PROCESS:
            yield f"/proc/self/{entry}", isolation.READ


def _open_itself(path: str, device: int, inode: int) -> int:
    """The file that is meant; from here on nobody asks where its path leads."""
    try:
        file = os.open(path, _FILE_ITSELF)
    except OSError as problem:
        raise _replaced(path) from problem
    facts = os.fstat(file)
    if (facts.st_dev, facts.st_ino) != (device, inode) or not stat.S_ISREG(facts.st_mode):
        raise _replaced(path)
    return file


def _replaced(path: str) -> CannotEnclose:
    return CannotEnclose(f"{path}: the file was replaced meanwhile; call again")


def _arrange(walls: dict[str, Any], files: list[int]) -> None:
    """Let nothing be changed but what may be, keep what is fixed and cover what is closed."""
    writable = _outermost(map(os.path.realpath, walls["write"]))
    # In a folder that may be written it stays a file like others, to be renamed and removed.
    alone = [file for file, (path, *_) in zip(files, walls["files"], strict=True) if not _roots_of(path, writable)]
    try:
        isolation.make_read_only([*writable, *alone])
    except FileNotFoundError as problem:
        raise CannotEnclose("something that the job may write was removed meanwhile; call again") from problem
    isolation.mask([path for path in walls["masked"] if os.path.lexists(path)])
    fixed = [path for path in _outermost(map(os.path.realpath, walls["fixed"])) if _roots_of(path, writable)]
    closed = list(map(os.path.realpath, walls["closed"]))
    _refuse_links([*walls["fixed"], *walls["closed"]], walls["write"])
    for folder in _folders_to_hold([*fixed, *closed], writable):
        isolation.hold(folder)
    for path in fixed:
        if os.path.lexists(path):
            isolation.fix(path)
    if closed:
        shown = _outermost(path for path in map(os.path.realpath, walls["read"]) if _roots_of(path, closed))
        isolation.close([path for path in closed if os.path.lexists(path)], shown)


def _folders_to_hold(paths: Iterable[str], writable: Iterable[str]) -> list[str]:
    """The folders between a writable one and what in it may not be changed, the outer ones first.

    With one of them renamed, another could be put in its place.
    """
    found: set[str] = set()
    for path in paths:
        for root in _roots_of(path, writable):
            folder = os.path.dirname(path)
            while _is_in(folder, root) and folder != root:
                found.add(folder)
                folder = os.path.dirname(folder)
    return sorted(folder for folder in found if os.path.isdir(folder))


def _refuse_links(paths: Iterable[str], roots: Iterable[str]) -> None:
    """A link in a writable folder could be made to lead elsewhere, past whatever keeps its target."""
    for root in roots:
        real = os.path.realpath(root)
        for path in paths:
            if not _is_in(path, root) and not _is_in(path, real):
                continue
            expected = os.path.join(real, os.path.relpath(path, root if _is_in(path, root) else real))
            if os.path.realpath(path) != os.path.normpath(expected):
                raise CannotEnclose(
                    f"{path} is or lies behind a symbolic link that the job could change; replace the link"
                )


def _refuse_exceptions(walls: dict[str, Any]) -> None:
    """Without mounts there are no exceptions from what may be read or written."""
    readable, writable = list(map(os.path.realpath, walls["read"])), list(map(os.path.realpath, walls["write"]))
    for path in map(os.path.realpath, [*walls["closed"], *walls["masked"]]):
        if _roots_of(path, readable) or _roots_of(path, writable):
            raise CannotEnclose(
                f"{path} cannot be closed to a job that may use what is around it: no mount namespace here"
            )
    for path in map(os.path.realpath, walls["fixed"]):
        if _roots_of(path, writable):
            raise CannotEnclose(f"{path} cannot be kept from a job that may write around it: no mount namespace here")


def _refuse_writing(walls: dict[str, Any]) -> None:
    """Without mounts nothing would be kept from what changes files for the job."""
    if walls["write"]:
        raise CannotEnclose(f"{walls['write'][0]} cannot be opened for writing: no mount namespace here")


def _outermost(paths: Iterable[str]) -> list[str]:
    """These paths without those that lie below another, and without what is not there."""
    found: list[str] = []
    for path in sorted({path for path in paths if os.path.exists(path)}):
        if not _roots_of(path, found):
            found.append(path)
    return found


def _roots_of(path: str, roots: Iterable[str]) -> list[str]:
    return [root for root in roots if _is_in(path, root)]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def prepare() -> None:
    """Do in the launcher what would otherwise be done anew in every worker."""
    if system.HAS_SUBREAPER:
        system.look_up()
    if seccomp.is_known():
        seccomp.build_common(network=False, mounts=True, observed=False)
    isolation.version()
    if notifications.can_perform():
        broker.build_filter()
    _drop_future_capabilities()


def rehearse() -> None:
    """Do, ahead of the job, what raising its walls will do again; see `python.rehearse`."""
    if isolation.version():
        isolation.rehearse()


def _drop_capabilities(*, anew: bool) -> None:
    """Give up every privilege of root, and the right to get one back; `anew` where another namespace gave them all."""
    if anew:
        _drop_future_capabilities.cache_clear()
    _drop_future_capabilities()
    if not system.HAS_SUBREAPER:
        return
    system.prctl(system.AMBIENT_CAPABILITIES, _CLEAR_ALL)
    system.invoke("capset", struct.pack("=Ii", _CAPABILITIES_VERSION, 0), bytes(24))


@functools.cache
def _drop_future_capabilities() -> None:
    """Let no program that is started have a privilege by its name or its owner."""
    if not system.HAS_SUBREAPER:
        return
    capability = 0
    try:
        while True:
            if system.invoke("prctl", system.IS_IN_BOUNDING_SET, capability, 0, 0, 0):
                system.prctl(system.DROP_FROM_BOUNDING_SET, capability)
            capability += 1
    except OSError:
        return  # the last one, or nobody with privileges in the first place
