"""Requests of clients that know nothing but the document's two commands, and of clients that mean harm."""

import hashlib
import json
import logging

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues import redis_connection, redis_intake
from toolcrib.model.toolrequest import Made, Status

REQUESTS = "fullsend:builder_requests"
ID = "req_20240115_001"
KEY = f"tool_requests:{ID}"
MADE = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)


@pytest.fixture
def listening(queue, client, eventually, monkeypatch):
    """The queue of a Builder that has started and hears; it looks again after a shorter while than usual."""
    monkeypatch.setattr("toolcrib.features.requests.queues.redis.QUIET_SECONDS", 0.05)
    queue.reconcile()
    eventually(lambda: client.pubsub_numsub(REQUESTS)[0][1] == 1)
    return queue


def publish(server, text):
    assert server.say("PUBLISH", REQUESTS, text).startswith(":")


def store(server, text, request_id=ID):
    assert server.say("HSET", f"tool_requests:{request_id}", "status", "pending", "yaml", text).startswith(":")


def by_shell(text):
    """What `"$(cat file)"` makes of a file."""
    return text.rstrip("\n")


ORDERS = {
    "published, then stored": (publish, store),
    "stored, then published": (store, publish),
    "only published": (publish,),
}


class TestTheTwoCommands:
    @pytest.mark.spec("S0-31", "S0-32", "S0-34")
    @pytest.mark.parametrize("order", ORDERS)
    def test_whichever_comes_first_it_is_one_request_that_is_built_once(
        self, listening, server, client, subscribe, spelled, eventually, order
    ):
        hear, text = subscribe(REQUESTS), by_shell(spelled())
        for command in ORDERS[order]:
            command(server, text)
        claim = eventually(lambda: listening.claim("o", 60))
        assert (claim.id, claim.text, claim.attempts) == (ID, text, 1)
        # A client that writes the hash late is put right a moment later.
        eventually(lambda: client.hget(KEY, "status") == "building")
        assert listening.claim("o", 60) is None
        assert listening.finish(claim, MADE)
        assert client.hmget(KEY, "status", "yaml") == ["ready", text]
        assert [filed.id for filed in listening.requests()] == [ID]
        assert hear()
        assert hear(0.1) is None  # what others published is not published again

    @pytest.mark.spec("S0-33")
    def test_what_was_only_stored_while_no_builder_ran_is_built_when_one_starts(self, queue_at, server, spelled):
        store(server, by_shell(spelled()))
        publish(server, by_shell(spelled()))
        builder = queue_at(server.url)
        assert builder.reconcile() == 1
        assert builder.claim("o", 60).text == by_shell(spelled())
        assert builder.reconcile() == 0

    @pytest.mark.spec("S0-33")
    def test_many_that_were_stored_are_all_found(self, queue, client, spelled):
        texts = {f"req_20240115_{n:03}": spelled(id=f"req_20240115_{n:03}", name=f"tool_{n}") for n in range(1, 131)}
        for request_id, text in texts.items():
            client.hset(f"tool_requests:{request_id}", mapping={"status": "pending", "yaml": text})
        assert queue.reconcile() == 130
        assert {filed.id: filed.text for filed in queue.requests()} == texts

    def test_long_texts_are_looked_at_a_few_at_a_time(self, queue, client, spelled):
        for number in range(1, 26):
            request_id, comment = f"req_20240115_{number:03}", f"# {'x' * 200}\n" * 1_200
            text = spelled(id=request_id, name=f"tool_{number}") + comment
            client.hset(f"tool_requests:{request_id}", mapping={"status": "pending", "yaml": text})
        ids = [f"req_20240115_{number:03}" for number in range(1, 26)]
        assert len(queue._commands.read("survey", ids=ids, space=1_000_000).rows) == 5
        assert queue.reconcile() == 25
        assert len(queue.requests()) == 25

    def test_one_pass_takes_so_many_and_the_next_goes_on(self, queue, client, spelled, monkeypatch):
        monkeypatch.setattr(redis_intake, "MOST_IN_ONE_PASS", 20)
        monkeypatch.setattr(redis_intake, "PORTION", 10)
        for number in range(1, 81):
            request_id = f"req_20240115_{number:03}"
            text = spelled(id=request_id, name=f"tool_{number}")
            client.hset(f"tool_requests:{request_id}", mapping={"status": "pending", "yaml": text})
        taken = [queue.reconcile() for _ in range(8)]
        assert sum(taken) == 80
        assert max(taken) <= 20 + 2 * redis_intake.PORTION

    def test_a_message_that_comes_while_the_server_falls_is_taken_in_later(
        self, queue_at, start_server, spelled, monkeypatch
    ):
        monkeypatch.setattr(redis_connection, "PAUSES", ())
        server = start_server()
        queue = queue_at(server.url)
        server.kill()
        for number in (1, 2):
            with pytest.raises(ToolError, match="cannot be reached"):
                queue._intake.hear(spelled(id=f"req_20240115_{number:03}", name=f"tool_{number}").encode())
        with pytest.raises(ToolError, match="cannot be reached"):
            queue._intake.look_again()
        server.start()
        queue._intake.look_again()
        assert len(queue.requests()) == 2
        assert "foreign" not in "".join(queue.remarks())

    def test_a_hash_whose_text_is_still_to_come_is_left_alone_until_then(self, queue, client, spelled):
        client.hset(KEY, "status", "pending")
        assert queue.reconcile() == 0
        client.hset(KEY, "yaml", spelled())
        assert queue.reconcile() == 1
        assert queue.get(ID).status is Status.PENDING

    def test_a_request_that_is_only_stored_is_there_for_a_caller_that_asks_for_its_id(self, queue, server, spelled):
        store(server, by_shell(spelled()))
        assert queue.get(ID).status is Status.PENDING
        assert queue.cancel(ID, "no").status is Status.CANCELLED

    def test_all_who_listen_take_a_message_in_once(self, listening, queue_at, server, client, spelled, eventually):
        for _ in range(2):
            queue_at(server.url).reconcile()
        eventually(lambda: client.pubsub_numsub(REQUESTS)[0][1] == 3)
        for _ in range(3):
            publish(server, by_shell(spelled()))
        eventually(lambda: listening.get(ID))
        eventually(lambda: not listening.wait(0.3))
        assert [event.step for event in listening.history(ID)] == ["filed"]
        assert listening.get(ID).requesters == 1

    def test_a_message_wakes_a_waiting_caller(self, listening, server, spelled, eventually):
        eventually(lambda: not listening.wait(0.1))
        publish(server, by_shell(spelled()))
        assert listening.wait(20)
        assert listening.get(ID) is not None


class TestWritingOver:
    @pytest.mark.parametrize("status", ["building", "ready", "failed", "cancelled"])
    def test_a_status_that_was_written_over_is_put_right(self, queue, server, client, spelled, status):
        queue.file(read_request(spelled()))
        claim = queue.claim("o", 60)
        ends = {
            "building": lambda: None,
            "ready": lambda: queue.finish(claim, MADE),
            "failed": lambda: queue.fail(claim, "no"),
            "cancelled": lambda: queue.cancel(ID, "no"),
        }
        ends[status]()
        before = queue.get(ID)
        store(server, by_shell(spelled()))
        assert client.hget(KEY, "status") == "pending"
        assert queue.get(ID) == before
        assert queue.claim("p", 60) is None
        assert queue.reconcile() == 1
        assert client.hmget(KEY, "status", "yaml") == [status, spelled()]
        assert queue.reconcile() == 0
        assert "refused" not in [event.step for event in queue.history(ID)]

    def test_a_builder_that_holds_on_to_it_puts_its_status_right(self, queue, server, client, spelled):
        queue.file(read_request(spelled()))
        claim = queue.claim("o", 60)
        store(server, by_shell(spelled()))
        assert queue.renew(claim)
        assert client.hget(KEY, "status") == "building"

    @pytest.mark.spec("S0-04")
    def test_another_text_under_the_id_is_refused_and_the_first_restored(self, queue, server, client, spelled):
        queue.file(read_request(spelled()))
        for _ in range(3):
            store(server, spelled(name="other_tool"))
            assert queue.get(ID).text == spelled()
            assert queue.reconcile() == 1
            assert client.hget(KEY, "yaml") == spelled()
        events = queue.history(ID)
        # However often it is sent, it does not push the rest of the history out.
        assert [event.step for event in events] == ["filed", "refused"]
        assert events[-1].text.startswith("another text came under this id")

    @pytest.mark.spec("S0-04")
    def test_another_text_that_is_published_under_the_id_is_refused(
        self, listening, server, client, spelled, eventually
    ):
        listening.file(read_request(spelled()))
        for _ in range(3):
            publish(server, spelled(name="other_tool"))
        eventually(lambda: len(listening.history(ID)) == 2)
        assert listening.history(ID)[-1].step == "refused"
        assert listening.get(ID).text == client.hget(KEY, "yaml") == spelled()
        assert listening.find_open("other_tool") is None

    def test_a_text_of_monstrous_length_is_replaced_without_being_read(self, queue, client, spelled):
        queue.file(read_request(spelled()))
        client.hset(KEY, "yaml", "x" * 8_000_000)
        assert queue.reconcile() == 1
        assert client.hget(KEY, "yaml") == spelled()
        # All that is remembered of it is its length.
        assert client.hget(KEY, "crib_refused") == hashlib.sha1(b"of 8000000 bytes").hexdigest()

    @pytest.mark.parametrize("claimed", [False, True])
    def test_what_was_lost_from_sight_comes_back(self, queue, client, spelled, claimed):
        ids = [f"req_20240115_{number:03}" for number in (1, 2, 3)]
        queue.file(read_request(spelled(id=ids[2], name="other_tool")))
        queue.cancel(ids[2], "no")
        for request_id in ids[:2]:
            queue.file(read_request(spelled(id=request_id)))
        if claimed:
            queue.claim("o", 60)
        for key in client.scan_iter("toolcrib:*"):
            client.delete(key)
        assert queue.requests() == []
        assert queue.reconcile() == 3
        assert queue.reconcile() == (1 if claimed else 0)  # how long its lease was is unknown
        assert sorted(filed.id for filed in queue.requests()) == ids
        claim = queue.claim("p", 60)
        assert claim.id == ids[0]
        assert queue.claim("p", 60) is None
        assert queue.finish(claim, MADE)
        assert [queue.get(each).status for each in ids] == [Status.READY, Status.READY, Status.CANCELLED]
        assert [each.ready for each in queue.experiments()] == [True]

    def test_one_that_followed_and_was_taken_away_holds_nothing_up(self, queue, client, spelled):
        for number in (1, 2, 3):
            queue.file(read_request(spelled(id=f"req_20240115_{number:03}", priority="low")))
        client.delete("tool_requests:req_20240115_002")
        queue.file(read_request(spelled(id="req_20240115_004", priority="high")))
        assert {str(filed.priority) for filed in queue.requests()} == {"high"}
        assert queue.finish(queue.claim("o", 60), MADE)
        assert not client.exists("tool_requests:req_20240115_002")
        assert {filed.status for filed in queue.requests()} == {Status.READY}
        assert [each.waits_for for each in queue.experiments()] == [()]

    def test_a_hash_that_was_taken_away_holds_nothing_up(self, queue, client, spelled):
        for number, name in enumerate(("gone_tool", "gone_tool", "gone_tool", "last_tool"), 1):
            queue.file(read_request(spelled(id=f"req_20240115_{number:03}", name=name)))
        client.delete(KEY, "tool_requests:req_20240115_003")
        assert [filed.id for filed in queue.requests()] == ["req_20240115_002", "req_20240115_004"]
        assert queue.claim("o", 60).id == "req_20240115_004"
        assert queue.reconcile() == 1  # the one that followed is built itself
        claim = queue.claim("o", 60)
        assert claim.id == "req_20240115_002"
        assert queue.finish(claim, MADE)
        assert queue.file(read_request(spelled(id="req_20240115_005", name="gone_tool"))).merged_into == ""


class TestTheOtherLayout:
    def test_state_and_spec_are_read_and_status_and_yaml_are_written(self, queue, client, spelled):
        client.hset(KEY, mapping={"state": "pending", "spec": spelled(), "created_at": "2024-01-15T10:00:00Z"})
        assert queue.reconcile() == 1
        stored = client.hgetall(KEY)
        assert (stored["status"], stored["yaml"], stored["spec"]) == ("pending", spelled(), spelled())
        assert queue.get(ID).created_at == "2024-01-15T10:00:00Z"
        assert queue.finish(queue.claim("o", 60), MADE)
        assert client.hget(KEY, "status") == "ready"

    @pytest.mark.parametrize("state", ["in_progress", "ready", "failed", ""])
    def test_what_others_are_at_or_done_with_is_left_alone(self, queue, client, spelled, state):
        before = {"state": state, "spec": spelled()}
        client.hset(KEY, mapping=before)
        assert queue.reconcile() == 0
        assert queue.get(ID) is None
        assert client.hgetall(KEY) == before

    @pytest.mark.parametrize("with_key", [True, False])
    @pytest.mark.parametrize("stored_first", [True, False])
    def test_a_note_that_says_where_the_request_lies_is_followed(
        self, listening, server, client, spelled, eventually, monkeypatch, stored_first, with_key
    ):
        monkeypatch.setattr("toolcrib.features.requests.queues.redis.QUIET_SECONDS", 0.3)
        note = {"type": "tool_requested", "request_id": ID, "tool_name": "amount_adder", "source": "fullsend"}
        note |= {"spec_key": KEY} if with_key else {}
        fields = {"state": "pending", "spec": spelled()}
        if stored_first:
            client.hset(KEY, mapping=fields)
        publish(server, json.dumps(note))
        if not stored_first:
            eventually(lambda: ID in listening._intake._looks)
            assert listening.get(ID) is None
            client.hset(KEY, mapping=fields)
        # The next pass over all hashes would be half a minute away.
        eventually(lambda: client.hget(KEY, "crib_status") == "pending", 10)

    def test_an_order_of_the_original_builder_is_a_request_like_any_other(self, listening, server, eventually):
        order = {
            "prd": {"prd": {"tool_name": "amount_adder", "description": "Adds"}},
            "requested_by": "orchestrator",
            "priority": "high",
            "request_id": ID,
        }
        publish(server, json.dumps(order))
        filed = eventually(lambda: listening.get(ID))
        assert (filed.name, filed.status, str(filed.priority)) == ("amount_adder", Status.PENDING, "high")


BROKEN = {
    "no priority": ("tool_request:\n  id: {id}\n  name: amount_adder\n", "priority"),
    "torn": ('tool_request:\n  id: {id}\n  name: "amount_adder\n', ""),
    "an unknown type": (
        "tool_request:\n  id: {id}\n  inputs:\n    - {{name: a, type: date, description: d}}\n",
        "date",
    ),
    "JSON that stops": ('{{"tool_request": {{"id": "{id}"', ""),
    "a note that points elsewhere": (
        '{{"type": "tool_requested", "request_id": "{id}", "spec_key": "secrets"}}',
        "secrets",
    ),
}

HOSTILE = [
    b"",
    b"\n\n",
    b"\xff\xfe\x00",
    b"hello",
    b"[]",
    b"null",
    b"tool_request:",
    b"tool_request: []",
    b"{" * 5_000,
    b"[" * 100_000,
    b"a: &a [*a, *a]",
    b"a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n",
    b"!!python/object/apply:os.system ['true']",
    b'{"prd": {}}',
    b'{"prd": {"prd": {"prd": {"prd": {}}}}}',
    b'{"prd": [1]}',
    b'{"type": "tool_requested"}',
    b'{"type": "tool_requested", "request_id": 7, "spec_key": ["a"]}',
    b'{"type": "tool_requested", "spec_key": "toolcrib:tool_requests:requests"}',
    b"tool_request:\n  id: ../../etc/passwd\n  name: a_b\n",
    b"tool_request:\n  id: req_20240115_001 ; FLUSHALL\n",
    b"tool_request:\n  id: REQ_20240115_001\n  name: a_b\n",
    b"\0" * 1_000,
    b"x" * 3_000_000,
]


class TestWhatCannotBeRead:
    @pytest.mark.spec("S0-35")
    @pytest.mark.parametrize("broken", BROKEN)
    @pytest.mark.parametrize("way", ["published", "stored"])
    def test_with_a_readable_id_it_fails_with_the_reason(
        self, listening, server, client, spelled, eventually, broken, way
    ):
        text, reason = BROKEN[broken]
        text = text.format(id=ID)
        if way == "published":
            publish(server, text)
            eventually(lambda: client.hget(KEY, "status") == "failed")
        else:
            store(server, text)
            assert listening.reconcile() == 1
        filed = listening.get(ID)
        assert filed.status is Status.FAILED
        assert filed.error
        assert way == "stored" or reason in filed.error
        assert client.hmget(KEY, "status", "yaml") == ["failed", text]
        assert listening.claim("o", 60) is None
        assert ID in listening.remarks()[-1]
        assert listening.reconcile() == 0
        # The Builder goes on.
        publish(server, spelled(id="req_20240115_002"))
        assert eventually(lambda: listening.claim("o", 60)).id == "req_20240115_002"

    def test_it_cannot_be_built_again_under_its_id(self, queue, server):
        store(server, "tool_request: {}")
        queue.reconcile()
        with pytest.raises(ToolError, match="could not be read and cannot be built; file it again under another id"):
            queue.retry(ID)

    @pytest.mark.spec("S0-35")
    def test_without_one_it_is_logged_and_counted_and_everything_goes_on(
        self, listening, server, client, spelled, eventually, caplog
    ):
        with caplog.at_level(logging.WARNING, "toolcrib.queues"):
            for number, message in enumerate(HOSTILE, 1):
                publish(server, message)
                eventually(
                    lambda number=number: f"{number} requests of foreign clients" in "".join(listening.remarks())
                )
        assert len([line for line in caplog.messages if "was refused" in line]) == len(HOSTILE)
        assert list(client.scan_iter("tool_requests:*")) == []
        publish(server, spelled(id="req_20240115_002"))
        assert eventually(lambda: listening.claim("o", 60)).id == "req_20240115_002"

    @pytest.mark.parametrize("way", [publish, store])
    def test_a_text_that_is_not_utf_8_is_refused_and_not_guessed_at(self, listening, server, spelled, eventually, way):
        way(server, spelled().encode().replace(b"Adds", b"\xc4dds"))
        filed = eventually(lambda: listening.get(ID))
        assert filed.status is Status.FAILED
        assert "the text is not UTF-8 from byte 74 on" in filed.error

    def test_a_text_that_is_too_long_is_refused_with_its_size(self, queue, client):
        client.hset(KEY, mapping={"status": "pending", "yaml": "x" * 9_000_000})
        assert queue.reconcile() == 1
        assert "9,000,000 bytes" in queue.get(ID).error
        assert queue.reconcile() == 0

    def test_a_hash_whose_text_has_another_id_fails(self, queue, server, spelled):
        store(server, spelled(id="req_20240115_002"))
        assert queue.reconcile() == 1
        assert "write the same id in both" in queue.get(ID).error
        assert queue.get("req_20240115_002") is None

    @pytest.mark.parametrize("name", ["archive:old", "x y", "../../a", "天", "req_" + "9" * 99])
    def test_a_hash_whose_name_is_no_id_is_counted_once_and_left_alone(self, queue, client, spelled, name):
        before = {"status": "pending", "yaml": spelled()}
        client.hset(f"tool_requests:{name}", mapping=before)
        client.set("tool_requests:req_20240115_009", "not a hash")
        for _ in range(3):
            assert queue.reconcile() == 0
        assert client.hgetall(f"tool_requests:{name}") == before
        assert "1 requests of foreign clients were refused" in queue.remarks()[-1]


class TestAServerThatRefusesForAMoment:
    """After a failover it is a replica, or its user may not do anything yet: that says nothing about a request."""

    def test_what_is_announced_meanwhile_is_accepted_afterwards(self, queue, client, spelled, monkeypatch):
        ask = queue._link.ask

        def refuse(*_words):
            monkeypatch.setattr(queue._link, "ask", ask)
            raise ToolError(Kind.PERMANENT, "it is a read-only replica")

        for message in (json.dumps({"spec_key": KEY}), spelled(id=ID)):
            client.flushall()
            queue.requests()
            monkeypatch.setattr(queue._link, "ask", refuse)
            with pytest.raises(ToolError, match="replica"):
                queue._hear(REQUESTS, message.encode())
            if "spec_key" in message:
                client.hset(KEY, mapping={"status": "pending", "yaml": spelled(id=ID)})
            queue._intake.look_again()
            found = queue.get(ID)
            assert found is not None, message
            assert (found.status, found.text) == (Status.PENDING, spelled(id=ID)), message
            queue.cancel(ID, "")
        assert queue._intake.unreadable == 0
