"""Seccomp: the system calls that a job has no business with are answered with an error."""

from __future__ import annotations

import errno
import functools
import os
import struct

from toolcrib.infra.sandbox.child import system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = tuple[int | None, int | None]
    # The number of an argument, the bits of it that matter, and what they may be.
    Condition = tuple[int, int, Sequence[int]]

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_CALLS = 0x40000000
_FIRST_UNKNOWN_CALL = 470  # what later kernels add is not there, until somebody has looked at it
_ALL_BITS = 0xFFFFFFFF

# The number of a call on x86_64 and on aarch64, where it has one.
_DENIED: dict[str, Numbers] = {
    # Mounts and other worlds.
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
    # Large parts of the kernel that a tool can do without.
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
    # Memory and messages that all processes of a user share, and that outlive them.
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
    # Files by another way than their path, and news of files that cannot be opened.
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
# Programs ask for these first and know what to do without. Memory behind a descriptor is counted by nobody, and what
# clone3 and openat2 are to do stands in memory, where no filter sees it.
_ABSENT: dict[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
# They reach files that may only be read, or not even that, unless mounts are in the way.
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
# They give a file its mode. Behind the numbers stands the argument that is the mode, and the one with the flags without
# which it means nothing.
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
# A process may be changed by whoever has the same user; 0 means the caller itself.
_CHANGE_A_PROCESS = ((302, 261), (203, 122), (144, 119), (142, 118), (314, 274))

_NEW_NAMESPACES = 0x7E020000
_EVERYBODY = 0xFFFFFFFF
_SHARED, _ANONYMOUS = 0x01, 0x20
_MAKES_A_FILE = 0o100 | 0o20000000  # under a name, or without one
# Whoever starts such a file does so as its owner or with its group: what a job leaves behind must not do that for anybody.
_SET_ID = 0o6000
# To type into a terminal, to paste into one, and to change what a file is.
_IOCTLS = (0x5412, 0x541C, 0x40086602, 0x401C5820)
_UNIX, _IPV4, _IPV6 = 1, 2, 10
_STREAM, _SEQPACKET = 1, 5
_KIND_OF_SOCKET = 0xF
_TCP = 6
# In a network of its own a job has what it needs to talk to our proxy.
_OPEN_SOCKETS: tuple[Condition, ...] = (
    (0, _ALL_BITS, (_IPV4, _IPV6)),
    (1, _KIND_OF_SOCKET, (_STREAM,)),
    (2, _ALL_BITS, (0, _TCP)),
)

_LOAD, _AND, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_CALL_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_MODE_FILTER = 2


class Once:
    """The one start of a program that a job makes itself, told apart by addresses that nobody can guess."""

    __slots__ = ("addresses",)

    def __init__(self, path: int, argv: int, environment: int) -> None:
        self.addresses = (path, argv, environment)


@functools.cache
def is_known() -> bool:
    """Whether the numbers of this machine's calls are known here."""
    return system.HAS_SUBREAPER and os.uname().machine in _ARCHITECTURES


def build(*, network: bool, mounts: bool, starts: bool | Once, observed: bool = False) -> bytes:
    """The filter of a job: `network` of its own, its files behind `mounts` of its own, and what programs it `starts`.

    Of a job that is `observed`, the supervisor answers the calls that `refuses` knows, and those that start programs.
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
    """What the filters of all such jobs begin with; a launcher that has it ready spares it every worker."""
    steps = _Steps()
    steps.begin()
    # Pages that are shared and nobody's stay when they are let go of, and belong to no process that is measured.
    steps.fail_with_bits(_MMAP, (3, _SHARED), (3, _ANONYMOUS))
    steps.fail(_DENIED, errno.EPERM)
    steps.fail(_ABSENT, errno.ENOSYS)
    if not mounts and not observed:
        steps.fail(_CHANGES_OF_OTHERS_FILES, errno.EPERM)
    if not observed:
        steps.fail_set_id()
    steps.fail_with_bits(_CLONE, (0, _NEW_NAMESPACES))
    steps.fail_with(_KILL, 0, (_EVERYBODY,))
    steps.fail_with(_IOCTL, 1, _IOCTLS)
    for call in _CHANGE_A_PROCESS:
        steps.fail_unless(call, (0, _ALL_BITS, (0,)))
    steps.fail_unless(_SETPRIORITY, (0, _ALL_BITS, (0, 1)), (1, _ALL_BITS, (0,)))
    # A socket for datagrams, even one of a pair, can be sent from to any name; these cannot be led anywhere else.
    steps.fail_unless(_SOCKETPAIR, (0, _ALL_BITS, (_UNIX,)), (1, _KIND_OF_SOCKET, (_STREAM, _SEQPACKET)))
    if observed:
        return steps.packed()
    if network:
        steps.fail_unless(_SOCKET, *_OPEN_SOCKETS)
    else:
        steps.fail({"socket": _SOCKET, **_OF_SOCKETS}, errno.EPERM)
    return steps.packed()


def install(program: bytes) -> None:
    """Filter the calls of this process and of all it starts; it must have given up new privileges."""
    import ctypes

    steps = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(program) // _Steps.SIZE, ctypes.addressof(steps))
    system.invoke("prctl", system.SECCOMP, _MODE_FILTER, header, 0, 0)


class _Steps:
    """The steps of a filter, one block after the other; each begins and ends with the number of the call at hand."""

    SIZE = 8

    def __init__(self) -> None:
        self._column, self._architecture = _ARCHITECTURES[os.uname().machine]
        self._steps: list[int] = []

    def begin(self) -> None:
        """Refuse calls whose numbers mean something else, or nothing that is known."""
        self._add(_LOAD, _ARCHITECTURE_OFFSET)
        self._add(_EQUAL, self._architecture, 1, 0)
        self._add(_RETURN, _FAIL | errno.EPERM)
        self._add(_LOAD, _CALL_OFFSET)
        self._add(_AT_LEAST, _X32_CALLS, 0, 1)
        self._add(_RETURN, _FAIL | errno.EPERM)
        self._add(_AT_LEAST, _FIRST_UNKNOWN_CALL, 0, 1)
        self._add(_RETURN, _FAIL | errno.ENOSYS)

    def fail(self, calls: dict[str, Numbers], number: int) -> None:
        """Answer these calls with an error."""
        numbers = [pair[self._column] for pair in calls.values()]
        known = [call for call in numbers if call is not None]
        for left, call in zip(range(len(known) - 1, -1, -1), known, strict=True):
            self._add(_EQUAL, call, left, 0 if left else 1)
        self._add(_RETURN, _FAIL | number)

    def fail_with(self, call: tuple[int, int], argument: int, values: Sequence[int]) -> None:
        """Refuse the call with one of these values as its argument."""
        steps = [(_LOAD, _argument_offset(argument), 0, 0)]
        steps += [(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
        self._block(call, [*steps, (_RETURN, _ALLOW, 0, 0), (_RETURN, _FAIL | errno.EPERM, 0, 0)])

    def fail_with_bits(self, call: Numbers, *conditions: tuple[int, int]) -> None:
        """Refuse the call if every one of these arguments has one of its bits."""
        steps: list[tuple[int, int, int, int]] = []
        for left, (argument, bits) in zip(range(len(conditions), 0, -1), conditions, strict=True):
            steps += [(_LOAD, _argument_offset(argument), 0, 0), (_ANY_BIT, bits, 0, 2 * left - 1)]
        self._block(call, [*steps, (_RETURN, _FAIL | errno.EPERM, 0, 0), (_RETURN, _ALLOW, 0, 0)])

    def fail_set_id(self) -> None:
        """Let no file be made that is started as somebody else than whoever starts it."""
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

    def limit_starts(self, starts: bool | Once) -> None:  # noqa: FBT001 - it is what is limited
        """Let programs be started at will, never, or once."""
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
        """The last steps; what was not refused is allowed."""
        self._add(_RETURN, _ALLOW)
        return self.packed()

    def packed(self) -> bytes:
        """The steps as the kernel reads them."""
        return struct.pack("=" + "HBBI" * (len(self._steps) // 4), *self._steps)

    def _block(self, call: Numbers, steps: list[tuple[int, int, int, int]]) -> None:
        """Steps for one call, the last of which decides."""
        number = call[self._column]
        if number is None:
            return
        self._add(_EQUAL, number, 0, len(steps))
        for step in steps:
            self._add(*step)

    def _add(self, code: int, operand: int, then: int = 0, otherwise: int = 0) -> None:
        self._steps += code, then, otherwise, operand


def _argument_offset(argument: int) -> int:
    """Where the lower half of an argument is; both machines put it first."""
    return _ARGUMENTS_OFFSET + 8 * argument
