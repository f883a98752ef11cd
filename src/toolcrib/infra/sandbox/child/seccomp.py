"""The seccomp filter: system calls that a job does not need fail with an error."""

from __future__ import annotations

import errno
import functools
import os
import struct

from toolcrib.infra.sandbox import system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = tuple[int | None, int | None]
    # The index of an argument, the bits that matter, and their allowed values.
    Condition = tuple[int, int, Sequence[int]]

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_CALLS = 0x40000000
_FIRST_UNKNOWN_CALL = 470  # calls of later kernels do not exist here until they were reviewed
_ALL_BITS = 0xFFFFFFFF

# The number of a call on x86_64 and on aarch64, where it has one.
_DENIED: dict[str, Numbers] = {
    # Mounts and namespaces.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "unshare": (272, 97),
    "setns": (308, 268),
    # Large parts of the kernel that a tool does not need.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "get_robust_list": (274, 100),
    "ioprio_set": (251, 30),
    # Memory and messages shared by all processes of a user, which outlive them.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # Access to files other than by path, and events of files that cannot be opened.
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # The machine.
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "vhangup": (153, 58),
}
# Programs try these first and have a fallback. Memory behind a descriptor is not counted by any limit, and the
# arguments of clone3 and openat2 are in memory, where no filter sees them.
_ABSENT: dict[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
# These reach files that are read-only to the job, or closed, unless mounts protect them.
_CHANGES_OF_OTHERS_FILES: dict[str, Numbers] = {
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
# Calls that set a file's mode: their numbers, the argument with the mode, and the one with the flags that must be
# present for the mode to matter.
_GIVE_A_MODE: dict[str, tuple[Numbers, int, int | None]] = {
    "chmod": ((90, None), 1, None),
    "fchmod": ((91, 52), 1, None),
    "fchmodat": ((268, 53), 2, None),
    "fchmodat2": ((452, 452), 2, None),
    "creat": ((85, None), 1, None),
    "open": ((2, None), 2, 1),
    "openat": ((257, 56), 3, 2),
    "mkdir": ((83, None), 1, None),
    "mkdirat": ((258, 34), 2, None),
    "mknod": ((133, None), 1, None),
    "mknodat": ((259, 33), 2, None),
}
_OF_SOCKETS: dict[str, Numbers] = {
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
}
_CLONE, _KILL, _IOCTL, _SOCKET, _SOCKETPAIR = (56, 220), (62, 129), (16, 29), (41, 198), (53, 199)
_EXECVE, _EXECVEAT = (59, 221), (322, 281)
_MMAP = (9, 222)
_SETPRIORITY = (141, 140)
# These change any process of the same user; 0 means the caller itself.
_CHANGE_A_PROCESS = ((302, 261), (203, 122), (144, 119), (142, 118), (314, 274))

_NEW_NAMESPACES = 0x7E020000
_EVERY_PROCESS = 0xFFFFFFFF
_SHARED, _ANONYMOUS = 0x01, 0x20
_MAKES_A_FILE = 0o100 | 0o20000000  # with or without a name
# A set-uid or set-gid file would let anyone who executes it act as its owner or group after the job.
_SET_ID = 0o6000
# Insert input into a terminal, paste into one, and change file attributes.
_IOCTLS = (0x5412, 0x541C, 0x40086602, 0x401C5820)
_UNIX, _IPV4, _IPV6 = 1, 2, 10
_STREAM, _SEQPACKET = 1, 5
_KIND_OF_SOCKET = 0xF
_TCP = 6
# In its own network namespace a job may create the sockets that reach our proxy.
_OPEN_SOCKETS: tuple[Condition, ...] = (
    (0, _ALL_BITS, (_IPV4, _IPV6)),
    (1, _KIND_OF_SOCKET, (_STREAM,)),
    (2, _ALL_BITS, (0, _TCP)),
)

_LOAD, _AND, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_CALL_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_MODE_FILTER = 2


class SingleStart:
    """The single execve that a program job needs, identified by random addresses of its arguments."""

    __slots__ = ("addresses",)

    def __init__(self, path: int, argv: int, environment: int) -> None:
        self.addresses = (path, argv, environment)


@functools.cache
def is_known() -> bool:
    """Whether the system call numbers of this architecture are known."""
    return system.HAS_SUBREAPER and os.uname().machine in _ARCHITECTURES


def build(*, network: bool, mounts: bool, starts: bool | SingleStart, observed: bool = False) -> bytes:
    """Build the filter of a job with its own `network` namespace, its own `mounts`, and these program `starts`.

    For an `observed` job, the supervisor answers the calls that `refuses` covers, and those that start programs.
    """
    steps = _Steps()
    steps.limit_starts(observed or starts)
    return build_common(network=network, mounts=mounts, observed=observed) + steps.end()


def refuses(call: str, arguments: Sequence[int], *, network: bool, mounts: bool) -> bool:
    """Whether the filter of such a job would refuse this call with these arguments."""
    if call in _CHANGES_OF_OTHERS_FILES and not mounts:
        return True
    if call in _GIVE_A_MODE:
        return _sets_id(call, arguments)
    if call != "socket" or not network:
        return not network and (call == "socket" or call in _OF_SOCKETS)
    return any(arguments[place] & bits not in values for place, bits, values in _OPEN_SOCKETS)


def _sets_id(call: str, arguments: Sequence[int]) -> bool:
    _, mode, flags = _GIVE_A_MODE[call]
    return bool(arguments[mode] & _SET_ID) and (flags is None or bool(arguments[flags] & _MAKES_A_FILE))


@functools.cache
def build_common(*, network: bool, mounts: bool, observed: bool) -> bytes:
    """The common beginning of such filters, built once in the launcher."""
    steps = _Steps()
    steps.begin()
    # Anonymous shared pages stay allocated after munmap and belong to no process that is measured.
    steps.fail_with_bits(_MMAP, (3, _SHARED), (3, _ANONYMOUS))
    steps.fail(_DENIED, errno.EPERM)
    steps.fail(_ABSENT, errno.ENOSYS)
    if not mounts and not observed:
        steps.fail(_CHANGES_OF_OTHERS_FILES, errno.EPERM)
    if not observed:
        steps.fail_set_id()
    steps.fail_with_bits(_CLONE, (0, _NEW_NAMESPACES))
    steps.fail_with(_KILL, 0, (_EVERY_PROCESS,))
    steps.fail_with(_IOCTL, 1, _IOCTLS)
    for call in _CHANGE_A_PROCESS:
        steps.fail_unless(call, (0, _ALL_BITS, (0,)))
    steps.fail_unless(_SETPRIORITY, (0, _ALL_BITS, (0, 1)), (1, _ALL_BITS, (0,)))
    # A datagram socket, even of a pair, can send to any address; these types cannot.
    steps.fail_unless(_SOCKETPAIR, (0, _ALL_BITS, (_UNIX,)), (1, _KIND_OF_SOCKET, (_STREAM, _SEQPACKET)))
    if observed:
        return steps.packed()
    if network:
        steps.fail_unless(_SOCKET, *_OPEN_SOCKETS)
    else:
        steps.fail({"socket": _SOCKET, **_OF_SOCKETS}, errno.EPERM)
    return steps.packed()


def install(program: bytes) -> None:
    """Install the filter for this process and its descendants; no_new_privs must be set."""
    import ctypes

    steps = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(program) // _Steps.SIZE, ctypes.addressof(steps))
    system.invoke("prctl", system.SECCOMP, _MODE_FILTER, header, 0, 0)


class _Steps:
    """The instructions of a filter, in blocks; each block starts and ends with the call number loaded."""

    SIZE = 8

    def __init__(self) -> None:
        self._column, self._architecture = _ARCHITECTURES[os.uname().machine]
        self._steps: list[int] = []

    def begin(self) -> None:
        """Refuse other architectures and unknown call numbers."""
        self._add(_LOAD, _ARCHITECTURE_OFFSET)
        self._add(_EQUAL, self._architecture, 1, 0)
        self._add(_RETURN, _FAIL | errno.EPERM)
        self._add(_LOAD, _CALL_OFFSET)
        self._add(_AT_LEAST, _X32_CALLS, 0, 1)
        self._add(_RETURN, _FAIL | errno.EPERM)
        self._add(_AT_LEAST, _FIRST_UNKNOWN_CALL, 0, 1)
        self._add(_RETURN, _FAIL | errno.ENOSYS)

    def fail(self, calls: dict[str, Numbers], number: int) -> None:
        """Fail these calls with an error."""
        numbers = [pair[self._column] for pair in calls.values()]
        known = [call for call in numbers if call is not None]
        for left, call in zip(range(len(known) - 1, -1, -1), known, strict=True):
            self._add(_EQUAL, call, left, 0 if left else 1)
        self._add(_RETURN, _FAIL | number)

    def fail_with(self, call: tuple[int, int], argument: int, values: Sequence[int]) -> None:
        """Refuse the call if its argument has one of these values."""
        steps = [(_LOAD, _argument_offset(argument), 0, 0)]
        steps += [(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
        self._block(call, [*steps, (_RETURN, _ALLOW, 0, 0), (_RETURN, _FAIL | errno.EPERM, 0, 0)])

    def fail_with_bits(self, call: Numbers, *conditions: tuple[int, int]) -> None:
        """Refuse the call if each of these arguments has one of its bits set."""
        steps: list[tuple[int, int, int, int]] = []
        for left, (argument, bits) in zip(range(len(conditions), 0, -1), conditions, strict=True):
            steps += [(_LOAD, _argument_offset(argument), 0, 0), (_ANY_BIT, bits, 0, 2 * left - 1)]
        self._block(call, [*steps, (_RETURN, _FAIL | errno.EPERM, 0, 0), (_RETURN, _ALLOW, 0, 0)])

    def fail_set_id(self) -> None:
        """Refuse to create set-uid and set-gid files."""
        for call, mode, flags in _GIVE_A_MODE.values():
            self.fail_with_bits(call, *([] if flags is None else [(flags, _MAKES_A_FILE)]), (mode, _SET_ID))

    def fail_unless(self, call: tuple[int, int], *conditions: Condition) -> None:
        """Refuse the call unless every condition holds."""
        checks: list[tuple[int, int, int, int]] = []
        for argument, bits, values in conditions:
            checks.append((_LOAD, _argument_offset(argument), 0, 0))
            if bits != _ALL_BITS:
                checks.append((_AND, bits, 0, 0))
            checks += [(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
            checks.append((_RETURN, _FAIL | errno.EPERM, 0, 0))
        self._block(call, [*checks, (_RETURN, _ALLOW, 0, 0)])

    def limit_starts(self, starts: bool | SingleStart) -> None:  # noqa: FBT001 - it is what is limited
        """Allow starting programs always, never, or once."""
        if starts is True:
            return
        self.fail({"execveat": _EXECVEAT}, errno.EPERM)
        if starts is False:
            self.fail({"execve": _EXECVE}, errno.EPERM)
            return
        words = [word for address in starts.addresses for word in (address & _ALL_BITS, address >> 32)]
        checks: list[tuple[int, int, int, int]] = []
        for place, word in enumerate(words):
            offset = _ARGUMENTS_OFFSET + 4 * place
            checks += [(_LOAD, offset, 0, 0), (_EQUAL, word, 1, 0), (_RETURN, _FAIL | errno.EPERM, 0, 0)]
        self._block(_EXECVE, [*checks, (_RETURN, _ALLOW, 0, 0)])

    def end(self) -> bytes:
        """Finish the filter; what was not refused is allowed."""
        self._add(_RETURN, _ALLOW)
        return self.packed()

    def packed(self) -> bytes:
        """The instructions in the kernel's format."""
        return struct.pack("=" + "HBBI" * (len(self._steps) // 4), *self._steps)

    def _block(self, call: Numbers, steps: list[tuple[int, int, int, int]]) -> None:
        """Add instructions for one call; the last one decides."""
        number = call[self._column]
        if number is None:
            return
        self._add(_EQUAL, number, 0, len(steps))
        for step in steps:
            self._add(*step)

    def _add(self, code: int, operand: int, then: int = 0, otherwise: int = 0) -> None:
        self._steps += code, then, otherwise, operand


def _argument_offset(argument: int) -> int:
    """The offset of the lower half of an argument; both architectures are little-endian."""
    return _ARGUMENTS_OFFSET + 8 * argument
