"""What the document's own commands see of a request, from its filing to the tool."""

import json
from datetime import datetime

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.model.toolrequest import Made, Status

REQUESTS, READY = "fullsend:builder_requests", "builder:tool_ready"
ID = "req_20240115_001"
KEY = f"tool_requests:{ID}"
MADE = Made(
    name="amount_adder",
    version="1.0.0",
    address="tools/amount_adder@1.0.0",
    path="tools/amount_adder",
    digest="d" * 64,
)


@pytest.mark.spec("S0-31", "S0-32")
def test_a_request_is_published_and_stored_exactly_as_it_is_written(queue, client, subscribe, spelled):
    hear = subscribe(REQUESTS)
    text = spelled() + "  # Grüße, 天 — and a last line without a break"
    filed = queue.file(read_request(text))
    assert hear() == (REQUESTS, text)
    stored = client.hgetall(KEY)
    assert (stored["status"], stored["yaml"], stored["error"], stored["tool"]) == ("pending", text, "", "")
    assert stored["created_at"] == stored["updated_at"] == filed.created_at
    assert datetime.fromisoformat(stored["created_at"]).tzinfo is not None
    assert hear(0.1) is None


@pytest.mark.spec("S0-31", "S0-06")
def test_what_is_published_carries_the_number_that_the_request_got(queue, client, subscribe, spelled):
    hear = subscribe(REQUESTS)
    wanted = spelled().replace("  id: req_20240115_001\n", "")
    filed = queue.file(read_request(wanted, numbered=False))
    assert hear() == (REQUESTS, filed.text)
    assert filed.text.replace(f"  id: {filed.id}\n", "") == wanted
    assert client.hget(f"tool_requests:{filed.id}", "yaml") == filed.text
    assert read_request(filed.text, strict=True).id == filed.id


def test_the_same_again_and_a_request_that_is_open_are_not_published_a_second_time(queue, subscribe, spelled):
    hear = subscribe(REQUESTS)
    for _ in range(2):
        queue.file(read_request(spelled()))
    queue.file(read_request(spelled().replace("  id: req_20240115_001\n", ""), numbered=False))
    assert hear()
    assert hear(0.1) is None


@pytest.mark.spec("S0-04")
def test_a_number_that_a_foreign_hash_took_is_skipped_and_its_text_counts(queue, client, spelled):
    client.hset(KEY, mapping={"status": "pending", "yaml": spelled(name="other_tool")})
    with pytest.raises(ToolError, match="another request has the id") as caught:
        queue.file(read_request(spelled()))
    assert caught.value.kind is Kind.CONFLICT
    assert client.hget(KEY, "yaml") == spelled(name="other_tool")
    assert queue.file(read_request(spelled(name="other_tool"))).status is Status.PENDING


@pytest.mark.spec("S0-36")
def test_what_is_finished_is_announced_once_and_kept(queue, client, subscribe, spelled):
    hear = subscribe(READY)
    queue.file(read_request(spelled()))
    claim = queue.claim("o", 60)
    assert hear(0.1) is None
    assert queue.finish(claim, MADE)
    channel, payload = hear()
    assert channel == READY
    assert json.loads(payload) == {
        "request_id": ID,
        "name": "amount_adder",
        "path": "tools/amount_adder",
        "version": "1.0.0",
        "tool": "tools/amount_adder@1.0.0",
        "experiment": "exp_1",
        "experiments": ["exp_1"],
    }
    stored = client.hgetall(KEY)
    assert (stored["status"], stored["tool"], stored["crib_ready"]) == ("ready", MADE.address, payload)
    assert not queue.finish(claim, MADE)
    assert hear(0.1) is None


@pytest.mark.spec("S0-36")
def test_what_fails_is_not_announced_and_says_why(queue, client, subscribe, spelled):
    hear = subscribe(READY)
    queue.file(read_request(spelled()))
    assert queue.fail(queue.claim("o", 60), "the contract test failed")
    assert hear(0.1) is None
    assert client.hmget(KEY, "status", "error") == ["failed", "the contract test failed"]


@pytest.mark.spec("S0-37")
def test_every_request_for_the_tool_is_announced_and_every_experiment_released_by_one_of_them(
    queue, subscribe, spelled
):
    hear = subscribe(READY)
    for number, experiment in enumerate(("exp_1", "exp_2", "exp_3"), 1):
        queue.file(read_request(spelled(id=f"req_20240115_{number:03}", experiment=experiment)))
    queue.file(read_request(spelled(id="req_20240115_004", name="other_tool", experiment="exp_2")))
    assert queue.finish(queue.claim("o", 60, ID), MADE)
    said = [json.loads(hear()[1]) for _ in range(3)]
    assert [each["request_id"] for each in said] == [f"req_20240115_{number:03}" for number in (1, 2, 3)]
    assert [each["experiment"] for each in said] == ["exp_1", "exp_2", "exp_3"]
    # The second one waits for another tool besides.
    assert [each["experiments"] for each in said] == [["exp_1", "exp_3"], [], []]


@pytest.mark.spec("S0-34", "S0-38")
def test_the_whole_life_of_a_request_can_be_followed_on_the_wire(queue, client, subscribe, spelled):
    hear = subscribe(REQUESTS, READY)
    queue.file(read_request(spelled()))
    trace = [hear()[0], client.hget(KEY, "status")]
    claim = queue.claim("o", 60)
    trace.append(client.hget(KEY, "status"))
    assert [each.ready for each in queue.experiments()] == [False]
    queue.finish(claim, MADE)
    trace += [client.hget(KEY, "status"), hear()[0]]
    assert trace == [REQUESTS, "pending", "building", "ready", READY]
    assert [event.step for event in queue.history(ID)] == ["filed", "building", "ready", "released"]
    assert [each.ready for each in queue.experiments()] == [True]


def test_names_can_be_chosen_and_two_queues_of_one_server_keep_apart(
    queue, queue_at, client, server, subscribe, spelled
):
    other = queue_at(server.url, requests="my:requests", ready="my:tools", hash_prefix="requests[*]")
    hear = subscribe("my:requests", "my:tools")
    other.file(read_request(spelled()))
    assert other.finish(other.claim("o", 60), MADE)
    assert [hear()[0], hear()[0]] == ["my:requests", "my:tools"]
    assert client.hget(f"requests[*]:{ID}", "status") == "ready"
    client.hset("requests[*]:req_20240115_002", mapping={"status": "pending", "yaml": spelled(id="req_20240115_002")})
    assert other.reconcile() == 1
    assert queue.requests() == []
    assert queue.reconcile() == 0


def test_all_keys_but_those_of_requests_are_recognisably_ours(queue, client, spelled):
    queue.file(read_request(spelled()))
    queue.fail(queue.claim("o", 60), "no")
    assert {key.partition(":")[0] for key in client.scan_iter()} == {"toolcrib", "tool_requests"}
    foreign = {"status", "yaml", "created_at", "updated_at", "error", "tool"}
    assert {field for field in client.hkeys(KEY) if not field.startswith("crib_")} == foreign


def test_a_claim_from_before_a_request_was_cancelled_counts_no_more_when_it_comes_back_and_follows(queue, spelled):
    ids = [f"req_20240115_{number:03}" for number in (1, 2)]
    queue.file(read_request(spelled(id=ids[0])))
    old = queue.claim("o", 60)
    queue.cancel(ids[0], "no")
    queue.file(read_request(spelled(id=ids[1])))
    assert queue.retry(ids[0]).merged_into == ids[1]
    claim = queue.claim("o", 60)
    assert queue.get(ids[0]).status is Status.BUILDING
    assert not queue.renew(old)
    assert not queue.finish(old, MADE)
    assert queue.finish(claim, MADE)
