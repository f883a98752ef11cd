"""The filter of system calls, step by step, as the kernel goes through it, on both kinds of machines."""

import errno
import os
import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infra.sandbox.child import seccomp

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = 0
WORD = st.integers(min_value=0, max_value=2**64 - 1)


def judge(program, architecture, call, arguments=()):
    """What the kernel would answer: 0 or the number of an error."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", call, architecture, 0, *words)
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator, place = 0, 0
    while True:
        code, then, otherwise, operand = steps[place]
        place += 1
        if code == 0x06:
            return ALLOWED if operand == 0x7FFF0000 else operand & 0xFFFF
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}[
                code
            ]
            place += then if holds else otherwise


@pytest.fixture(params=MACHINES)
def machine(request, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=request.param))
    seccomp.build_common.cache_clear()
    yield request.param
    seccomp.build_common.cache_clear()


def number_of(pair, machine):
    return pair[list(MACHINES).index(machine)]


def test_what_is_denied_is_denied_under_its_number_here(machine):
    program = seccomp.build(network=True, mounts=True, starts=True)
    for name, pair in seccomp._DENIED.items():
        number = number_of(pair, machine)
        if number is not None:
            assert judge(program, MACHINES[machine], number) == errno.EPERM, name
    for name, pair in seccomp._ABSENT.items():
        assert judge(program, MACHINES[machine], number_of(pair, machine)) == errno.ENOSYS, name
    assert judge(program, MACHINES[machine], number_of((0, 63), machine)) == ALLOWED


def test_numbers_that_mean_something_else_are_refused(machine):
    program = seccomp.build(network=True, mounts=True, starts=True)
    reading = number_of((0, 63), machine)
    assert judge(program, 0x40000003, reading) == errno.EPERM
    assert judge(program, MACHINES[machine], reading | 0x40000000) == errno.EPERM
    assert judge(program, MACHINES[machine], 470) == errno.ENOSYS
    assert judge(program, MACHINES[machine], 469) == ALLOWED


def test_files_are_changed_by_such_calls_only_behind_mounts(machine):
    for mounts in (True, False):
        program = seccomp.build(network=False, mounts=mounts, starts=False)
        for name, pair in seccomp._CHANGES_OF_OTHERS_FILES.items():
            number = number_of(pair, machine)
            if number is not None:
                expected = ALLOWED if mounts else errno.EPERM
                assert judge(program, MACHINES[machine], number) == expected
                assert seccomp.refuses(name, (0,) * 6, network=False, mounts=mounts) is not mounts


@given(flags=WORD, process=WORD, request=WORD)
def test_one_argument_decides(flags, process, request):
    program = seccomp.build(network=False, mounts=True, starts=True)
    ask = lambda call, *arguments: judge(program, MACHINES["x86_64"], call, arguments)  # noqa: E731
    assert ask(56, flags) == (errno.EPERM if flags & 0x7E020000 else ALLOWED)
    assert ask(62, process) == (errno.EPERM if process & 0xFFFFFFFF == 0xFFFFFFFF else ALLOWED)
    assert ask(302, process) == (errno.EPERM if process & 0xFFFFFFFF else ALLOWED)
    assert ask(16, 0, request) == (errno.EPERM if request & 0xFFFFFFFF in seccomp._IOCTLS else ALLOWED)
    assert ask(16, 0, 0x5412 | request >> 32 << 32) == errno.EPERM


MODES = {
    "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
    "creat": ((85, None), 1),
    "mkdir": ((83, None), 1),
    "mkdirat": ((258, 34), 2),
    "mknod": ((133, None), 1),
    "mknodat": ((259, 33), 2),
}
OPENINGS = {"open": ((2, None), 2, 1), "openat": ((257, 56), 3, 2)}


def with_arguments(**places):
    arguments = [0xFFFF_FFFF_0000_0000] * 6
    for place, value in places.items():
        arguments[int(place.removeprefix("at"))] |= value
    return arguments


@pytest.mark.parametrize("bit", [0o4000, 0o2000])
def test_no_file_is_made_that_is_started_as_its_owner(machine, bit):
    program = seccomp.build(network=False, mounts=True, starts=True)
    observed = seccomp.build(network=False, mounts=True, starts=True, observed=True)

    def ask(name, pair, arguments, expected):
        number = number_of(pair, machine)
        assert seccomp.refuses(name, arguments, network=False, mounts=True) is (expected != ALLOWED), name
        if number is not None:
            assert judge(program, MACHINES[machine], number, arguments) == expected, name
            assert judge(observed, MACHINES[machine], number, arguments) == ALLOWED, name

    for name, (pair, mode) in MODES.items():
        ask(name, pair, with_arguments(**{f"at{mode}": 0o755 | bit}), errno.EPERM)
        ask(name, pair, with_arguments(**{f"at{mode}": 0o101777}), ALLOWED)
    for name, (pair, mode, flags) in OPENINGS.items():
        for making in (os.O_CREAT, os.O_TMPFILE, os.O_CREAT | os.O_EXCL | os.O_WRONLY):
            ask(name, pair, with_arguments(**{f"at{mode}": 0o755 | bit, f"at{flags}": making}), errno.EPERM)
            ask(name, pair, with_arguments(**{f"at{mode}": 0o1777, f"at{flags}": making}), ALLOWED)
        # Without such a flag the argument is undefined.
        ask(name, pair, with_arguments(**{f"at{mode}": 0o755 | bit, f"at{flags}": os.O_RDWR | os.O_TRUNC}), ALLOWED)


def test_memory_that_is_shared_and_anonymous_is_refused(machine):
    program = seccomp.build(network=False, mounts=True, starts=True)
    ask = lambda flags: judge(program, MACHINES[machine], number_of((9, 222), machine), [0, 0, 0, flags])  # noqa: E731
    for shared in (0x21, 0x23, 0x8021, 0xFFFFFFFF_00000021):
        assert ask(shared) == errno.EPERM
    for flags in (0x01, 0x02, 0x22, 0x20, 0x4022):
        assert ask(flags) == ALLOWED


SMALL = st.one_of(st.integers(0, 20), WORD)


@given(network=st.booleans(), tree=SMALL, kind=SMALL, protocol=SMALL)
def test_a_supervisor_refuses_what_a_filter_refuses(network, tree, kind, protocol):
    program = seccomp.build(network=network, mounts=True, starts=True)
    observed = seccomp.build(network=network, mounts=True, starts=False, observed=True)
    arguments = (tree, kind, protocol)
    verdict = judge(program, MACHINES["x86_64"], 41, arguments)
    assert seccomp.refuses("socket", arguments, network=network, mounts=True) is (verdict == errno.EPERM)
    for name, (number, _) in seccomp._OF_SOCKETS.items():
        verdict = judge(program, MACHINES["x86_64"], number, arguments)
        assert seccomp.refuses(name, arguments, network=network, mounts=True) is (verdict == errno.EPERM)
    for call in (41, 42, 49, 59, 322):
        assert judge(observed, MACHINES["x86_64"], call, arguments) == ALLOWED


@given(addresses=st.tuples(WORD, WORD, WORD), others=st.tuples(WORD, WORD, WORD))
def test_the_only_start_is_the_one_with_these_addresses(addresses, others):
    program = seccomp.build(network=False, mounts=True, starts=seccomp.SingleStart(*addresses))
    assert judge(program, MACHINES["x86_64"], 59, addresses) == ALLOWED
    assert judge(program, MACHINES["x86_64"], 322, addresses) == errno.EPERM
    for place in range(3):
        changed = list(addresses)
        changed[place] = others[place]
        expected = ALLOWED if tuple(changed) == addresses else errno.EPERM
        assert judge(program, MACHINES["x86_64"], 59, changed) == expected


def test_without_the_capability_there_is_no_start(machine):
    program = seccomp.build(network=False, mounts=True, starts=False)
    for pair in (seccomp._EXECVE, seccomp._EXECVEAT):
        assert judge(program, MACHINES[machine], number_of(pair, machine)) == errno.EPERM
