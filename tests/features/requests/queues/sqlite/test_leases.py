"""Leases go by the monotonic clock of one boot; what else a clock does has no say."""

from datetime import UTC, datetime, timedelta

import pytest

from toolcrib.features.requests.queues.sqlite_changes import Clock, read_clock


class Machine:
    """Clocks that the test sets."""

    def __init__(self):
        self.boot, self.ticks = "first boot", 1_000.0
        self.today = datetime(2024, 1, 15, 12, tzinfo=UTC)

    def clock(self):
        return Clock(boot=self.boot, ticks=self.ticks)

    def now(self):
        return self.today


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def queue(open_one, machine, a_request):
    queue = open_one(now=machine.now, clock=machine.clock)
    queue.file(a_request(id="req_20240115_001"))
    return queue


def test_a_lease_ends_to_the_second(queue, machine):
    first = queue.claim("anna", 30)
    machine.ticks += 29.9
    assert queue.claim("bert", 30) is None
    machine.ticks += 0.1
    second = queue.claim("bert", 30)
    assert second.fence == first.fence + 1


def test_to_renew_lets_the_lease_begin_anew(queue, machine):
    claim = queue.claim("anna", 30)
    machine.ticks += 29
    assert queue.renew(claim)
    machine.ticks += 29
    assert queue.claim("bert", 30) is None
    assert queue.reconcile() == 0
    machine.ticks += 1
    assert queue.reconcile() == 1
    assert not queue.renew(claim)


@pytest.mark.parametrize("days", [-10_000, 10_000])
def test_a_clock_that_is_set_neither_ends_a_lease_nor_keeps_it(queue, machine, days):
    queue.claim("anna", 30)
    machine.today += timedelta(days=days)
    machine.ticks += 29
    assert queue.claim("bert", 30) is None
    machine.ticks += 1
    assert queue.claim("bert", 30) is not None


@pytest.mark.parametrize("ticks", [1.0, 1_010.0, 10_000.0])
@pytest.mark.parametrize("by_id", [False, True])
def test_no_lease_outlives_the_boot_that_it_was_given_on(queue, machine, ticks, by_id):
    claim = queue.claim("anna", 30)
    machine.boot, machine.ticks = "second boot", ticks
    assert queue.claim("bert", 30, claim.id if by_id else None) is not None
    assert not queue.renew(claim)


def test_what_was_left_before_a_restart_is_taken_back_after_it(queue, machine):
    claim = queue.claim("anna", 30)
    machine.boot = "second boot"
    assert queue.reconcile() == 1
    assert queue.get(claim.id).status == "pending"
    assert queue.history(claim.id)[-1].text == "the lease of anna expired"


def test_where_boots_cannot_be_told_apart_a_clock_that_began_anew_ends_a_lease(queue, machine):
    machine.boot = ""
    queue.claim("anna", 30)
    machine.ticks = 5.0
    assert queue.claim("bert", 30) is not None


def test_the_clock_of_the_machine_goes_on_and_knows_its_boot():
    first, second = read_clock(), read_clock()
    assert first.ticks <= second.ticks
    assert first.boot == second.boot != ""
