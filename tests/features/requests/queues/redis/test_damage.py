"""Hashes of ours that another client removed, damaged or wrote over, and what a forked child inherits."""

import os
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues import redis_intake
from toolcrib.model.toolrequest import Allowance, Made, Status

FIRST, SECOND, THIRD = (f"req_20240115_00{number}" for number in (1, 2, 3))
REQUESTS = "fullsend:builder_requests"
MADE = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)


def key(request_id):
    return f"tool_requests:{request_id}"


@pytest.fixture
def file(queue, spelled):
    """File a request under an id."""
    return lambda request_id, **fields: queue.file(read_request(spelled(id=request_id, **fields)))


class TestAKeyOfAnotherKind:
    def test_the_requests_beside_it_are_not_affected(self, queue, client, file):
        for number, request_id in enumerate((FIRST, SECOND, THIRD)):
            file(request_id, name=f"tool_{number}")
        queue.claim("o", 60)
        for request_id in (FIRST, SECOND):
            client.delete(key(request_id))
            client.set(key(request_id), "not a hash")
        assert queue.reconcile() == 0
        assert [filed.id for filed in queue.requests()] == [THIRD]
        assert queue.get(SECOND) is None
        assert queue.find_open("tool_1") is None
        assert queue.experiments()[0].waits_for == ("tool_2",)
        assert queue.claim("o", 60).id == THIRD
        assert queue.claim("o", 60) is None

    def test_a_request_under_that_id_is_refused_with_the_key(self, queue, client, file, eventually, spelled):
        client.set(key(FIRST), "not a hash")
        with pytest.raises(
            ToolError, match=f"the key {key(FIRST)} at .* holds something else than a request"
        ) as caught:
            file(FIRST)
        assert caught.value.kind is Kind.CONFLICT
        with pytest.raises(ToolError, match="there is no request"):
            queue.cancel(FIRST, "")
        queue.reconcile()
        eventually(lambda: client.pubsub_numsub(REQUESTS)[0][1] == 1)
        client.publish(REQUESTS, spelled(id=FIRST))
        eventually(lambda: f"{FIRST}: its key holds something else than a request" in "".join(queue.remarks()))
        assert client.get(key(FIRST)) == "not a hash"

    def test_a_key_of_our_own_is_told_with_the_cure(self, queue, client, file):
        file(FIRST)
        client.delete("toolcrib:tool_requests:pending")
        client.set("toolcrib:tool_requests:pending", "x")
        with pytest.raises(ToolError, match="a key that begins with toolcrib: belongs to another program; delete it"):
            queue.claim("o", 60)


class TestAHashThatWasDamaged:
    @pytest.mark.parametrize(
        "damage",
        [
            {"crib_status": "garbage"},
            {"crib_age": "old"},
            {"crib_age": "1e400"},
            {"crib_priority": "urgent"},
            {"crib_fence": ""},
            {"crib_attempts": "0x10"},
            {"crib_requesters": "9" * 30},
        ],
    )
    def test_it_is_taken_in_anew_and_the_others_are_built_meanwhile(self, queue, client, file, damage):
        file(FIRST, priority="high")
        file(SECOND, name="other_tool", priority="low")
        client.hset(key(FIRST), mapping=damage)
        assert queue.claim("o", 60).id == SECOND
        assert [filed.id for filed in queue.requests()] == [SECOND]
        assert queue.reconcile() == 1
        assert queue.get(FIRST).status is Status.PENDING
        assert queue.claim("o", 60).id == FIRST

    def test_what_fills_an_answer_and_can_never_be_taken_in_blocks_no_caller(self, queue, client, spelled, monkeypatch):
        monkeypatch.setattr(redis_intake, "ANSWER_BYTES", 1_000)
        for number in range(30):
            client.hset(key(f"no id {number}"), mapping={"status": "pending", "yaml": "x" * 2_000})
        client.hset(key("y" * 2_000), mapping={"status": "pending", "yaml": "x"})
        client.hset(key(FIRST), mapping={"status": "pending", "yaml": spelled(id=FIRST)})
        assert queue.reconcile() == 1
        assert queue.claim("o", 60).id == FIRST
        assert "30 requests of foreign clients were refused" in queue.remarks()[-1]


class TestAHashThatWasTakenAway:
    def test_a_claim_from_before_counts_no_more_when_the_id_comes_back(self, queue, client, file):
        file(FIRST)
        old = queue.claim("builder-1", 60)
        client.delete(key(FIRST))
        assert not queue.renew(old)
        file(FIRST, name="other_tool")
        new = queue.claim("builder-2", 60)
        assert new.fence == old.fence
        for act in (
            lambda: queue.renew(old),
            lambda: queue.note(old, "made"),
            lambda: queue.hold(old, ""),
            lambda: queue.give_back(old, ""),
            lambda: queue.fail(old, "no"),
            lambda: queue.finish(old, MADE),
        ):
            assert not act()
        assert queue.finish(new, MADE)

    def test_its_history_and_its_allowance_go_with_it(self, queue, client, file):
        file(FIRST)
        queue.allow(FIRST, Allowance(unproved=True))
        client.delete(key(FIRST))
        assert not file(FIRST).allowance.unproved
        assert [(event.number, event.step) for event in queue.history(FIRST)] == [(1, "filed")]

    def test_its_follower_does_not_follow_another_request_under_its_id(self, queue, client, file):
        for request_id in (FIRST, SECOND):
            file(request_id)
        client.delete(key(FIRST))
        file(FIRST, name="other_tool")
        queue.reconcile()
        assert queue.finish(queue.claim("o", 60, FIRST), MADE)
        assert queue.get(SECOND).status is Status.PENDING
        claim = queue.claim("o", 60)
        assert (claim.id, queue.finish(claim, MADE)) == (SECOND, True)


@pytest.fixture
def losing_before(queue, client, monkeypatch):
    """Have the server lose its data before the commands of these numbers, counted from now."""
    ask = queue._link.ask

    @contextmanager
    def lose(*moments):
        numbers = iter(range(1_000_000))

        def ask_after(*words):
            if next(numbers) in moments:
                client.flushall()
            return ask(*words)

        with monkeypatch.context() as patch:
            patch.setattr(queue._link, "ask", ask_after)
            yield

    return lose


class TestAServerThatLosesItsData:
    """After FLUSHALL every process that has seen an open request files it again, before it does anything else."""

    def test_an_open_request_survives_every_time(self, queue, client, file):
        before = file(FIRST)
        for _ in range(20):
            client.flushall()
            after = queue.get(FIRST)
            assert (after.status, after.text) == (Status.PENDING, before.text)
        assert client.hgetall(key(FIRST))["yaml"] == before.text

    def test_a_builder_loses_its_claim_and_claims_the_request_again(self, queue, client, file):
        file(FIRST)
        claim = queue.claim("o", 60)
        client.flushall()
        assert not queue.renew(claim)
        assert not queue.finish(claim, MADE)
        again = queue.claim("o", 60)
        assert (again.id, again.text) == (FIRST, claim.text)
        assert queue.finish(again, MADE)

    def test_a_builder_restores_what_processes_filed_that_have_ended(self, queue, queue_at, server, client, spelled):
        requester = queue_at(server.url)
        for number, request_id in enumerate((FIRST, SECOND)):
            requester.file(read_request(spelled(id=request_id, name=f"tool_{number}")))
        requester.close()
        queue.reconcile()
        client.flushall()
        assert [queue.claim("o", 60).id, queue.claim("o", 60).id] == [FIRST, SECOND]

    def test_a_builder_restores_what_was_published_since_it_last_reconciled(self, queue, client, eventually, spelled):
        queue.reconcile()
        eventually(lambda: client.pubsub_numsub(REQUESTS)[0][1] == 1)
        client.publish(REQUESTS, spelled(id=FIRST))
        eventually(lambda: FIRST in queue._open._seen)
        client.flushall()
        assert queue.claim("o", 60).id == FIRST

    def test_a_new_request_does_not_take_the_number_of_an_open_one(self, queue, client, spelled):
        first = queue.file(replace(read_request(spelled(name="tool_1")), id=""))
        client.flushall()
        second = queue.file(replace(read_request(spelled(name="tool_2")), id=""))
        assert first.id != second.id
        assert [filed.text for filed in queue.requests()] == [first.text, second.text]

    def test_it_is_restored_at_whichever_moment_the_data_is_lost(self, queue, client, file, losing_before):
        for number, request_id in enumerate((FIRST, SECOND, THIRD)):
            file(request_id, name=f"tool_{number}")
        acts = {
            "a question": lambda: queue.get(SECOND),
            "a list": queue.requests,
            "a claim": lambda: queue.give_back(queue.claim("o", 60), ""),
            "the same request again": lambda: file(SECOND, name="tool_1"),
            "a search for what was missed": queue.reconcile,
        }
        for name, act in acts.items():
            for first in range(6):
                for second in range(first, first + 4):
                    with losing_before(first, second):
                        act()
                    found = [(filed.id, filed.status) for filed in queue.requests()]
                    assert sorted(found) == [(each, Status.PENDING) for each in (FIRST, SECOND, THIRD)], (
                        name,
                        first,
                        second,
                    )

    def test_data_that_is_lost_again_and_again_is_an_error_and_no_request_is_forgotten(
        self, queue, file, losing_before
    ):
        for number, request_id in enumerate((FIRST, SECOND)):
            file(request_id, name=f"tool_{number}")
        with losing_before(*range(10_000)), pytest.raises(ToolError, match="loses its data again and again") as caught:
            queue.get(FIRST)
        assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
        assert [filed.id for filed in queue.requests()] == [FIRST, SECOND]

    def test_several_that_restore_it_make_one_request(self, queue, queue_at, server, client, file):
        other = queue_at(server.url)
        file(FIRST)
        assert other.get(FIRST).status is Status.PENDING
        client.flushall()
        assert queue.get(FIRST).requesters == other.get(FIRST).requesters == 1
        assert other.claim("o", 60).id == FIRST
        assert queue.claim("o", 60) is None

    def test_what_is_over_and_what_the_operator_allowed_does_not_come_back(self, queue, client, file):
        for number, request_id in enumerate((FIRST, SECOND)):
            file(request_id, name=f"tool_{number}")
        queue.cancel(FIRST, "")
        queue.allow(SECOND, Allowance(unproved=True))
        client.flushall()
        assert [(filed.id, filed.allowance) for filed in queue.requests()] == [(SECOND, Allowance())]
        assert queue.get(FIRST) is None

    @pytest.mark.parametrize("end", ["finish", "fail"])
    def test_what_was_built_or_failed_is_not_built_again(self, queue, client, file, end):
        for request_id in (FIRST, SECOND):
            file(request_id)
        claim = queue.claim("o", 60)
        assert queue.finish(claim, MADE) if end == "finish" else queue.fail(claim, "no")
        client.flushall()
        assert queue.requests() == []

    def test_what_another_builder_has_built_is_not_built_again(self, queue, queue_at, server, client, file):
        other = queue_at(server.url)
        file(FIRST)
        file(SECOND, name="other_tool")
        assert other.finish(other.claim("o", 60), MADE)
        queue.reconcile()
        client.flushall()
        assert [filed.id for filed in queue.requests()] == [SECOND]

    def test_one_that_cannot_be_filed_again_does_not_keep_the_others_away(self, queue, client, file, caplog):
        file(FIRST)
        queue._open._seen[FIRST] = replace(queue._open._seen[FIRST], text="tool_request: {}")
        file(SECOND, name="tool_2")
        client.flushall()
        assert [filed.id for filed in queue.requests()] == [SECOND]
        assert f"{FIRST} is lost: " in caplog.text

    def test_a_request_that_is_deleted_by_itself_stays_deleted(self, queue, client, file):
        file(FIRST)
        client.delete(key(FIRST))
        assert queue.get(FIRST) is None
        client.flushall()
        assert queue.get(FIRST) is None
        assert queue.requests() == []


def test_a_clock_that_is_set_back_does_not_keep_the_lease_of_a_silent_builder_alive(queue, client, file):
    file(FIRST)
    silent = queue.claim("builder-1", 60)
    client.zincrby(
        "toolcrib:tool_requests:leases", 86_400_000, FIRST
    )  # as a server sees it whose clock is a day behind
    assert queue.reconcile() == 1
    claim = queue.claim("builder-2", 60)
    client.zincrby("toolcrib:tool_requests:leases", 86_400_000, FIRST)
    assert queue.renew(claim)
    assert queue.claim("builder-3", 60, FIRST) is None
    assert not queue.renew(silent)


class TestWhatOnlyTheOperatorAllows:
    FORGED = '{"capabilities":["net.http"],"hosts":[],"answers":[],"unproved":true}'

    def test_nothing_that_is_written_into_the_hash_allows_anything(self, queue, client, file):
        file(FIRST)
        for field in ("crib_allowance", "allowance"):
            client.hset(key(FIRST), field, self.FORGED)
        assert queue.get(FIRST).allowance == Allowance()
        assert queue.claim("o", 60).allowance == Allowance()

    def test_what_was_allowed_to_one_text_is_not_allowed_to_another(self, queue, client, file, spelled):
        file(FIRST)
        queue.allow(FIRST, Allowance(unproved=True))
        client.hset(key(FIRST), "crib_text", spelled(id=FIRST, name="evil_tool"))
        assert not queue.claim("o", 60).allowance.unproved


def test_a_child_that_is_forked_while_a_thread_holds_a_lock_does_not_wait_for_it(queue, file):
    parts = (queue._watch, queue._open, queue._commands, queue._intake, queue._listener, queue._link)
    locks = [lock for part in parts for lock in vars(part).values() if hasattr(lock, "__enter__")]
    assert len(locks) == 7
    locks.append(queue._listener._closing._cond)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(lock)
            entered.set()
            leave.wait(60)

    holding = threading.Thread(target=hold)
    holding.start()
    assert entered.wait(20)
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            signal.alarm(30)  # ends a child that waits
            file(FIRST)
            found = queue.reconcile(), queue.get(FIRST).id
            queue.close()
            is_right = found == (0, FIRST)
        finally:
            os._exit(not is_right)
    status = os.waitpid(child, 0)[1]
    leave.set()
    holding.join(20)
    assert status == 0


def test_a_forked_child_and_its_parent_do_not_get_each_others_answers(queue, file):
    for number, request_id in enumerate((FIRST, SECOND)):
        file(request_id, name=f"tool_{number}")
    queue.reconcile()
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            is_right = all(queue.get(FIRST).id == FIRST for _ in range(300))
            while queue.wait(0.1):
                """Nothing else happens, so that the next ring is its own."""
            file(THIRD)
            is_right = is_right and queue.wait(10)
        finally:
            os._exit(not is_right)
    assert all(queue.get(SECOND).id == SECOND for _ in range(300))
    assert os.waitpid(child, 0)[1] == 0
    assert queue.get(THIRD).id == THIRD
