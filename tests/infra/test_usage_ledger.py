"""The ledger of limits: exact for all processes, under changes of the clock, a failing disk and killed processes."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.limits import Claim, Shortage, Taken
from warm_python import WarmPython


class Clock:
    def __init__(self, now=1_000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "limits.sqlite3"


@pytest.fixture
def ledger(path, clock):
    ledger = UsageLedger(path, clock=clock)
    yield ledger
    ledger.close()


def claim(limit=3, amount=1, window=60, subject="tool a"):
    return [Claim(subject=subject, amount=amount, limit=limit, window=window)]


def takes(ledger, claims, times):
    return [isinstance(ledger.take(claims), Taken) for _ in range(times)]


def test_a_call_that_ends_while_its_own_thread_counts_is_not_counted(ledger):
    """Garbage collection ends calls of closed event loops at any line."""
    refusals = []

    def count():
        with ledger._writing():
            with pytest.raises(ToolError, match="this thread is counting another call"):
                ledger.add(claim())
            refusals.append(1)
        ledger.add(claim())

    counting = threading.Thread(target=count, daemon=True)
    counting.start()
    counting.join(20)
    assert not counting.is_alive()
    assert (refusals, ledger.used(claim())) == ([1], [1])


def test_so_many_are_admitted_within_any_window_and_the_next_hears_when_to_come_again(ledger, clock):
    assert takes(ledger, claim(), 1) == [True]
    clock.now += 20
    assert takes(ledger, claim(), 3) == [True, True, False]
    refused = ledger.take(claim())
    assert isinstance(refused, Shortage)
    assert (refused.used, refused.wait) == (3, 40.0)
    clock.now += 39.999
    assert takes(ledger, claim(), 1) == [False]
    clock.now += 0.001
    assert takes(ledger, claim(), 2) == [True, False]
    clock.now += 20
    assert takes(ledger, claim(), 3) == [True, True, False]


STEPS = st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 3)), max_size=40)


@given(STEPS, st.integers(1, 6))
@example([(436, 1), (30_000, 1), (30_000, 1)], 1)
@settings(max_examples=60)
def test_exactly_what_a_sliding_window_allows_is_admitted(steps, limit):
    clock, ledger, admitted = Clock(), UsageLedger(None), deque()
    ledger._clock = clock
    for milliseconds, amount in steps:
        clock.now = round(clock.now + milliseconds / 1_000, 3)
        used = sum(number for at, number in admitted if at > clock.now - 60 + 1e-9)
        fits = used + amount <= limit
        assert isinstance(ledger.take(claim(limit, amount)), Taken) is fits
        if fits:
            admitted.append((clock.now, amount))
    ledger.close()


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 4)), max_size=30))
@settings(max_examples=40)
def test_a_long_window_never_admits_too_much(steps):
    clock, ledger, admitted = Clock(), UsageLedger(None), []
    ledger._clock = clock
    for seconds, amount in steps:
        clock.now += seconds
        if isinstance(ledger.take(claim(5, amount, 86_400)), Taken):
            admitted.append((clock.now, amount))
    ledger.close()
    for start, _ in admitted:
        assert sum(number for at, number in admitted if start <= at < start + 86_400) <= 5


def test_looking_uses_nothing_up(ledger):
    assert [ledger.check(claim(1)) for _ in range(3)] == [None, None, None]
    assert ledger.used(claim(1)) == [0]
    ledger.take(claim(1))
    assert ledger.check(claim(1)).wait == 60.0
    assert ledger.used(claim(1)) == [1]


def test_several_claims_are_taken_together_or_not_at_all(ledger):
    both = [*claim(5, subject="a"), *claim(1, subject="b")]
    assert takes(ledger, both, 2) == [True, False]
    assert ledger.used(both) == [1, 1]


def test_what_is_given_back_can_be_taken_again(ledger, clock):
    first = ledger.take(claim(2))
    clock.now += 10
    ledger.take(claim(2))
    ledger.give_back(claim(2), first)
    assert ledger.used(claim(2)) == [1]
    assert takes(ledger, claim(2), 2) == [True, False]
    # The one that stayed is the later one.
    clock.now += 55
    assert takes(ledger, claim(2), 1) == [False]


@pytest.mark.parametrize("window", [60, 3_600])
def test_what_has_left_its_window_cannot_be_given_back(ledger, clock, window):
    first = ledger.take(claim(2, window=window))
    # The window is over, and its steps too; the next one that asks forgets the use.
    clock.now += window + 60
    assert takes(ledger, claim(2, window=window), 2) == [True, True]
    ledger.give_back(claim(2, window=window), first)
    assert ledger.used(claim(2, window=window)) == [2]
    assert takes(ledger, claim(2, window=window), 1) == [False]


def test_a_name_is_used_once_and_is_on_the_disk_before_the_caller_goes_on(ledger, path):
    said = []
    ledger.take(claim())
    ledger._connection.set_trace_callback(said.append)
    assert ledger.use_once("one", 1_300.0, 1_000.0) is True
    assert said[0] == "PRAGMA synchronous = FULL"
    assert said[1].startswith("BEGIN")
    assert said[-2:] == ["COMMIT", "PRAGMA synchronous = NORMAL"]
    del said[:]
    ledger.take(claim())
    assert not [statement for statement in said if "synchronous" in statement]
    assert (ledger.use_once("one", 1_300.0, 1_000.0), ledger.was_used("one", 1_300.0)) == (False, True)
    other = UsageLedger(path)
    assert (other.use_once("one", 1_300.0, 1_000.0), other.use_once("two", 1_300.0, 1_000.0)) == (False, True)
    other.close()


def test_a_name_that_was_used_before_a_reboot_is_used_after_it(path, clock):
    before = UsageLedger(path, clock=clock, wall=lambda: 5_000.0, boot=lambda: "a")
    assert before.use_once("one", 5_300.0, 5_000.0)
    before.close()
    after = UsageLedger(path, clock=lambda: 10.0, wall=lambda: 5_100.0, boot=lambda: "b")
    assert after.use_once("two", 5_400.0, 5_100.0)
    assert not after.use_once("one", 5_300.0, 5_100.0)
    after.close()


def test_a_file_of_before_names_were_remembered_goes_on(path, clock):
    old = UsageLedger(path, clock=clock)
    assert takes(old, claim(), 1) == [True]
    old._connection.execute("DROP TABLE once")
    old.close()
    new = UsageLedger(path, clock=clock)
    assert new.use_once("one", 1_300.0, 1_000.0)
    assert new.used(claim()) == [1]
    new.close()


def test_a_claim_that_is_larger_than_its_limit_is_refused_for_good(ledger):
    assert ledger.take(claim(3, 4)).wait is None


def test_a_claim_of_nothing_asks_whether_anything_is_left(ledger):
    ledger.add(claim(10, 9))
    assert takes(ledger, claim(10, 0), 2) == [True, True]
    ledger.add(claim(10, 5))
    assert takes(ledger, claim(10, 0), 1) == [False]
    assert ledger.used(claim(10)) == [14]


def test_what_was_used_is_known_to_another_process_and_after_a_restart(path, clock):
    first, second = UsageLedger(path, clock=clock), UsageLedger(path, clock=clock)
    assert takes(first, claim(2), 1) == takes(second, claim(2), 1) == [True]
    assert takes(first, claim(2), 1) == takes(second, claim(2), 1) == [False]
    first.close()
    second.close()
    third = UsageLedger(path, clock=clock)
    assert takes(third, claim(2), 1) == [False]
    third.close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("passed", "left"), [(20, 40.0), (-86_400, 60.0), (70, None)])
def test_over_a_reboot_the_wall_clock_says_what_has_passed(path, passed, left):
    before = UsageLedger(path, clock=Clock(9_000), wall=Clock(1_000_000), boot=lambda: "one")
    before.take(claim(1))
    before.close()
    after = UsageLedger(path, clock=Clock(5), wall=Clock(1_000_000 + passed), boot=lambda: "two")
    shortage = after.check(claim(1))
    assert (None if shortage is None else shortage.wait) == left
    after.close()


def test_setting_the_wall_clock_changes_nothing(path, clock):
    wall = Clock(1_000_000)
    ledger = UsageLedger(path, clock=clock, wall=wall, boot=lambda: "one")
    ledger.take(claim(1))
    for moved in (86_400, -86_400):
        wall.now += moved
        again = UsageLedger(path, clock=clock, wall=wall, boot=lambda: "one")
        assert takes(again, claim(1), 1) == [False]
        again.close()
    ledger.close()


def test_what_no_window_reaches_any_more_is_forgotten(path, clock):
    ledger = UsageLedger(path, clock=clock)
    for number in range(20):
        ledger.take(claim(subject=f"tool {number}"))
    ledger.close()
    clock.now += 61
    UsageLedger(path, clock=clock).take(claim(subject="new"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT subject FROM totals").fetchall() == [("new",)]
        assert connection.execute("SELECT count(*) FROM uses").fetchone() == (1,)


class TestTrouble:
    def test_a_locked_file_refuses_the_call_and_says_that_it_may_be_tried_again(self, path, clock):
        ledger = UsageLedger(path, clock=clock, busy_seconds=0.01)
        ledger.take(claim())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ToolError, match="another process holds .*; try again") as caught:
                ledger.take(claim())
            other.execute("ROLLBACK")
        assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
        assert takes(ledger, claim(), 3) == [True, True, False]
        ledger.close()

    @pytest.mark.parametrize("content", [b"not a database" * 100, b""], ids=["garbage", "another layout"])
    def test_a_damaged_file_refuses_every_call_and_names_the_cure(self, path, clock, content):
        path.write_bytes(content)
        if not content:
            with closing(sqlite3.connect(path)) as other:
                other.execute("CREATE TABLE mine (x)")
        ledger = UsageLedger(path, clock=clock)
        for _ in range(2):
            with pytest.raises(ToolError, match="is damaged .* move it away, and counting starts again") as caught:
                ledger.take(claim())
            assert caught.value.kind is Kind.PERMANENT
        path.rename(path.with_name("aside"))
        assert takes(ledger, claim(), 1) == [True]
        ledger.close()

    def test_a_file_that_is_torn_while_it_is_used_is_noticed(self, path, clock):
        ledger = UsageLedger(path, clock=clock)
        ledger.take(claim())
        ledger.close()
        data = bytearray(path.read_bytes())
        data[1_024:] = os.urandom(len(data) - 1_024)
        path.write_bytes(bytes(data))
        with pytest.raises(ToolError, match="limits and confirmations could not be counted"):
            ledger.take(claim())

    def test_a_full_disk_refuses_the_call(self, ledger):
        ledger.take(claim())
        pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(ToolError, match="disk is full; check the file and its disk") as caught:
            for number in range(1_000):
                ledger.take(claim(subject=f"tool {number}" * 20))
        assert caught.value.kind is Kind.PERMANENT
        assert ledger.used(claim()) == [1]

    def test_a_file_that_is_moved_away_is_not_written_to_by_mistake(self, ledger, path):
        ledger.take(claim(1))
        path.rename(path.with_name("aside"))
        assert takes(ledger, claim(1), 2) == [True, False]


KILLED = """
import os, signal, sys
from pathlib import Path
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.limits import Claim
left = [int(sys.argv[2])]
def clock():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1000.0
ledger = UsageLedger(Path(sys.argv[1]), clock=clock)
for _ in range(3):
    ledger.take([Claim(subject="tool a", amount=1, limit=3)])
    print("taken", flush=True)
"""


def test_a_process_that_is_killed_in_the_middle_has_counted_what_it_was_told_and_holds_no_lock(tmp_path, clock):
    for point in (1, 2, 3, 4):
        path = tmp_path / f"{point}.sqlite3"
        run = WarmPython([sys.executable, "-c", KILLED, str(path), str(point)], stdout=subprocess.PIPE, text=True)
        said, _ = run.communicate(timeout=60)
        ledger = UsageLedger(path, clock=clock)
        # The clock is read once when the file is opened, and then inside of each count.
        assert said.count("taken") == max(0, point - 2)
        assert ledger.used(claim()) == [max(0, point - 2)]
        assert sum(takes(ledger, claim(), 5)) == 3 - max(0, point - 2)
        ledger.close()


CALLERS = """
import sys, threading
from pathlib import Path
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.limits import Claim, Taken
ledger, start, won = UsageLedger(Path(sys.argv[1]), busy_seconds=20), threading.Barrier(16), []
used = []
def call():
    start.wait(30)
    for _ in range(5):
        if isinstance(ledger.take([Claim(subject="tool a", amount=1, limit=37)]), Taken):
            won.append(1)
    for name in "abc":
        if ledger.use_once(name, 2e9, 1e9):
            used.append(name)
print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=call) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join(60) for thread in threads]
print(len(won), *used, flush=True)
"""


@pytest.mark.spec("S1-95")
def test_of_sixty_four_callers_in_four_processes_no_more_than_the_limit_are_admitted_and_each_name_is_used_once(path):
    command = [sys.executable, "-c", CALLERS, str(path)]
    processes = [WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [process.stdout.readline().split() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sum(int(count) for count, *_ in told) == 37
    assert sorted(name for _, *names in told for name in names) == ["a", "b", "c"]
