"""The filter of system calls, step by step, as the kernel goes through it, on both kinds of machines."""

import errno
import os
import struct
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.ground.sandbox import seccomp
from toolcrib.ground.sandbox.seccomp import Once

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
                assert seccomp.refuses(name, (), network=False, mounts=mounts) is not mounts


@given(flags=WORD, process=WORD, request=WORD)
def test_one_argument_decides(flags, process, request):
    program = seccomp.build(network=False, mounts=True, starts=True)
    ask = lambda call, *arguments: judge(program, MACHINES["x86_64"], call, arguments)  # noqa: E731
    assert ask(56, flags) == (errno.EPERM if flags & 0x7E020000 else ALLOWED)
    assert ask(62, process) == (errno.EPERM if process & 0xFFFFFFFF == 0xFFFFFFFF else ALLOWED)
    assert ask(302, process) == (errno.EPERM if process & 0xFFFFFFFF else ALLOWED)
    assert ask(16, 0, request) == (errno.EPERM if request & 0xFFFFFFFF in seccomp._IOCTLS else ALLOWED)
    assert ask(16, 0, 0x5412 | request >> 32 << 32) == errno.EPERM


SMALL = st.one_of(st.integers(0, 20), WORD)


@given(network=st.booleans(), family=SMALL, kind=SMALL, protocol=SMALL)
def test_a_supervisor_refuses_what_a_filter_refuses(network, family, kind, protocol):
    program = seccomp.build(network=network, mounts=True, starts=True)
    observed = seccomp.build(network=network, mounts=True, starts=False, observed=True)
    arguments = (family, kind, protocol)
    verdict = judge(program, MACHINES["x86_64"], 41, arguments)
    assert seccomp.refuses("socket", arguments, network=network, mounts=True) is (verdict == errno.EPERM)
    for name, (number, _) in seccomp._OF_SOCKETS.items():
        verdict = judge(program, MACHINES["x86_64"], number, arguments)
        assert seccomp.refuses(name, arguments, network=network, mounts=True) is (verdict == errno.EPERM)
    for call in (41, 42, 49, 59, 322):
        assert judge(observed, MACHINES["x86_64"], call, arguments) == ALLOWED


@given(addresses=st.tuples(WORD, WORD, WORD), others=st.tuples(WORD, WORD, WORD))
def test_the_only_start_is_the_one_with_these_addresses(addresses, others):
    program = seccomp.build(network=False, mounts=True, starts=Once(*addresses))
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
