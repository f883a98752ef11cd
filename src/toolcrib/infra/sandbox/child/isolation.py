"""Kernel isolation for a worker: Landlock rulesets, mount, user and network namespaces."""

# ruff: noqa: PTH102, PTH103, PTH112, PTH116, PTH120, PTH123 - pathlib would take a third of the start
from __future__ import annotations

import functools
import os
import socket
import stat
import struct

from toolcrib.infra.sandbox import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Iterable


# Landlock: this process and its descendants can only access the files that are allowed explicitly.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15

READ = READ_FILE | READ_DIR
# Devices and sockets cannot be created; connecting to a named socket is blocked separately.
WRITE = WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER | _TRUNCATE
USE_DEVICE = READ_FILE | WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
_OF_FILES = EXECUTE | USE_DEVICE

_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals


@functools.cache
def version() -> int:
    """The Landlock ABI version of the kernel; 0 means none."""
    if not system.HAS_SUBREAPER:
        return 0
    try:
        return system.invoke("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str | int, int]], *, tcp: bool) -> None:
    """Give up all rights except these on these files and folders; a path that does not exist grants nothing.

    A place is a path or an open descriptor. `tcp` does not restrict TCP, for a process with its own network namespace.
    """
    ruleset, handled = _create(tcp=tcp)
    try:
        for place, rights in rules:
            _allow(ruleset, place, rights & handled)
        system.invoke("syscall", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def rehearse() -> None:
    """Create a ruleset without enforcing it; see `python_file.rehearse`."""
    ruleset, handled = _create(tcp=False)
    _allow(ruleset, "/", READ & handled)
    os.close(ruleset)


def _create(*, tcp: bool) -> tuple[int, int]:
    """A new ruleset, and the file rights that it handles."""
    offered = version()
    handled = _FILE_RIGHTS[min(offered, max(_FILE_RIGHTS))]
    attributes = [handled]
    if offered >= _NETWORK_SINCE:
        attributes.append(0 if tcp else _TCP)
    if offered >= _SCOPES_SINCE:
        attributes.append(_SCOPES)
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    return system.invoke("syscall", _CREATE_RULESET, packed, len(packed), 0), handled


def _allow(ruleset: int, place: str | int, rights: int) -> None:
    if isinstance(place, int):
        _add_rule(ruleset, place, rights)
        return
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _add_rule(ruleset, descriptor, rights)
    finally:
        os.close(descriptor)


def _add_rule(ruleset: int, place: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _OF_FILES
    if rights:
        system.invoke("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)


_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000

_NO_SETUID, _NO_DEVICES = 2, 4
_BIND, _RECURSIVE, _PRIVATE, _FOLLOWING = 4096, 16384, 1 << 18, 1 << 19

_MOVE_MOUNT = 429
_CLONE, _CLOSE_ON_EXEC, _WITH_ALL_BELOW, _DESCRIPTOR_ITSELF = 1, 0o2000000, 0x8000, 0x1000
_FROM_DESCRIPTOR, _TO_DESCRIPTOR = 4, 0x40
_READ_ONLY = 1

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a system folder, over which every worker mounts a private one
SCRATCH = f"{SHARED_MEMORY}/scratch"
_BYTES_PER_FILE = 4096
_RESTRICTED_BY_PROFILE = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

_SET_FLAGS = 0x8914
_UP = 1
_BACKLOG = 128


def enter(*, network: bool, in_advance: bool = False) -> bool:
    """Enter new namespaces; False, without visible changes, if that is not possible.

    When called `in_advance` of a job, mounts and unmounts outside still propagate inside, until `settle`.
    """
    if not system.HAS_SUBREAPER or not os.path.isdir(SHARED_MEMORY) or not system.can_arrange_mounts():
        return False
    if not _unshare(_NEW_MOUNTS | (_NEW_NETWORK if network else 0)):
        return False
    try:
        _mount(None, "/", None, _RECURSIVE | (_FOLLOWING if in_advance else _PRIVATE))
    except PermissionError:
        return False
    return True


def settle() -> None:
    """Stop the propagation of mounts from outside."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)


def _unshare(wanted: int) -> bool:
    """Without privileges, create a user namespace as well, in which the user keeps its identity."""
    if os.geteuid() == 0:
        try:
            system.invoke("unshare", wanted)
        except OSError:
            pass
        else:
            return True
    user, group = os.geteuid(), os.getegid()
    if _is_restricted_by_profile():
        return False
    try:
        system.invoke("unshare", wanted | _NEW_USER)
    except OSError:
        return False
    system.prctl(system.DUMPABLE, 1)  # or the next files belong to another user
    system.write_text("/proc/self/setgroups", "deny")
    system.write_text("/proc/self/uid_map", f"{user} {user} 1")
    system.write_text("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _is_restricted_by_profile() -> bool:
    """Whether AppArmor lets a user namespace be created but takes away its privileges."""
    try:
        with open(_RESTRICTED_BY_PROFILE, encoding="ascii") as file:
            return file.read().strip() == "1" and os.geteuid() != 0
    except OSError:
        return False


def make_read_only(writable: list[str | int]) -> None:
    """Mount everything read-only except these folders and files: paths, or open descriptors."""
    if "/" in writable:
        return
    trees = [(place, _open_tree(place)) for place in writable]
    _set_read_only("/")
    for place, tree in trees:
        _move(tree, place)


def hold(folder: str) -> None:
    """Bind-mount a folder onto itself: a mount point cannot be renamed or removed."""
    _mount(folder, folder, None, _BIND | _RECURSIVE)


def fix(path: str) -> None:
    """Make a file or folder read-only."""
    _mount(path, path, None, _BIND | _RECURSIVE)
    _set_read_only(path)


def close(paths: list[str], shown: list[str]) -> None:
    """Cover each path with an empty file or folder in which only `shown` paths are visible."""
    if not paths:
        return
    void_folder, void_file = _make_voids(0o500)
    for path in paths:
        trees = [(inner, _open_tree(inner)) for inner in shown if inner.startswith(f"{path}/")]
        if trees:
            _mount_memory(path, "size=1m,nr_inodes=1k,mode=700")
            _show(trees)
        else:
            _mount(void_folder if os.path.isdir(path) else void_file, path, None, _BIND)
        _set_read_only(path)


def mask(paths: list[str]) -> None:
    """Cover each path so that it exists but can neither be read nor changed."""
    if not paths:
        return
    void_folder, void_file = _make_voids(0)
    for path in paths:
        _mount(void_folder if os.path.isdir(path) else void_file, path, None, _BIND)
        _set_read_only(path)


def _make_voids(mode: int) -> tuple[str, str]:
    """An empty folder and an empty file to mount over others; a file is never executable."""
    _mount_memory(SHARED_MEMORY, "size=4k,nr_inodes=4,mode=700")
    folder, file = f"{SHARED_MEMORY}/folder", f"{SHARED_MEMORY}/file"
    os.mkdir(folder, mode)
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, mode & 0o400))
    return folder, file


def _show(trees: list[tuple[str, int]]) -> None:
    for path, tree in trees:
        if os.path.isdir(f"/proc/self/fd/{tree}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o400))
        _move(tree, path)


def put_over(contents: list[tuple[str, bytes]]) -> None:
    """Cover each file with this content, also against later writes from outside; its mode stays."""
    if not contents:
        return
    # A file takes whole pages, and its inode part of another.
    size = sum(len(content) + 2 * _BYTES_PER_FILE for _, content in contents)
    _mount_memory(SHARED_MEMORY, f"size={size},nr_inodes={len(contents) + 4},mode=700")
    for number, (path, content) in enumerate(contents):
        copy = f"{SHARED_MEMORY}/{number}"
        with open(copy, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), os.stat(path).st_mode & 0o777)
        _mount(copy, path, None, _BIND)
        _set_read_only(path)


def make_scratch(size: int) -> None:
    """Mount a private scratch folder in memory, with shared memory beside it."""
    _mount_memory(SHARED_MEMORY, f"size={size},nr_inodes={max(size // _BYTES_PER_FILE, 64)},mode=700")
    os.mkdir(SCRATCH, 0o700)


def listen(host: str, port: int) -> socket.socket:
    """Bring up the loopback interface and listen on the only address that the host will accept on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        import fcntl

        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((host, port))
    listener.listen(_BACKLOG)
    return listener


def _mount_memory(path: str, options: str) -> None:
    _mount("tmpfs", path, "tmpfs", _NO_SETUID | _NO_DEVICES, options)


def _move(tree: int, place: str | int) -> None:
    if isinstance(place, int):
        system.invoke("syscall", _MOVE_MOUNT, tree, b"", place, b"", _FROM_DESCRIPTOR | _TO_DESCRIPTOR)
    else:
        system.invoke("syscall", _MOVE_MOUNT, tree, b"", system.HERE, os.fsencode(place), _FROM_DESCRIPTOR)
    os.close(tree)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    try:
        system.invoke("mount", _encode(source), _encode(target), _encode(kind), flags, _encode(options))
    except OSError as problem:
        raise type(problem)(problem.errno, f"{target}: {problem.strerror}") from problem


def _encode(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def _open_tree(place: str | int) -> int:
    flags = _CLONE | _CLOSE_ON_EXEC | _WITH_ALL_BELOW
    if isinstance(place, int):
        return system.invoke("syscall", system.OPEN_TREE, place, b"", flags | _DESCRIPTOR_ITSELF)
    return system.invoke("syscall", system.OPEN_TREE, system.HERE, os.fsencode(place), flags)


def _set_read_only(path: str) -> None:
    attributes = struct.pack("=4Q", _READ_ONLY, 0, 0, 0)
    system.invoke(
        "syscall", system.MOUNT_SETATTR, system.HERE, os.fsencode(path), _WITH_ALL_BELOW, attributes, len(attributes)
    )
