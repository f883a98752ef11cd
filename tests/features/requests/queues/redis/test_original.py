"""What the original Builder listened to and said, for those who still speak to it."""

import json

import pytest

from toolcrib.features.requests.document import read_request
from toolcrib.model.toolrequest import Made, Status

TASKS, RESULTS, ORCHESTRATOR = "fullsend:builder_tasks", "fullsend:builder_results", "fullsend:to_orchestrator"
EXECUTE, READY = "fullsend:execute_now", "builder:tool_ready"
ID = "req_20240115_001"
MADE = Made(
    name="amount_adder", version="1.0.0", address="tools/amount_adder@1.0.0", path="tools/amount_adder", digest="d" * 64
)
ORDER = {
    "prd": {"tool_name": "amount_adder", "description": "Adds"},
    "requested_by": "orchestrator",
    "priority": "high",
}


@pytest.fixture
def original(queue_at, server, client, eventually):
    queue = queue_at(server.url, original=True)
    queue.reconcile()
    eventually(lambda: client.pubsub_numsub(TASKS)[0][1] == 1)
    return queue


def test_both_channels_are_heard(original, server, spelled, eventually):
    server.say("PUBLISH", TASKS, json.dumps(ORDER | {"request_id": ID}))
    assert eventually(lambda: original.get(ID)).name == "amount_adder"
    server.say("PUBLISH", "fullsend:builder_requests", spelled(id="req_20240115_002", name="other_tool"))
    assert eventually(lambda: original.get("req_20240115_002")).name == "other_tool"


@pytest.mark.parametrize("request_id", [None, "auto_exp_1_amount_adder", "20240115_120000"])
def test_an_order_without_an_id_of_ours_gets_a_number_once_however_many_listen(
    original, queue_at, server, client, eventually, request_id
):
    queue_at(server.url, original=True).reconcile()
    eventually(lambda: client.pubsub_numsub(TASKS)[0][1] == 2)
    server.say("PUBLISH", TASKS, json.dumps(ORDER | ({"request_id": request_id} if request_id else {})))
    (filed,) = eventually(original.requests)
    eventually(lambda: not original.wait(0.3))
    assert original.get(filed.id).requesters == 1
    assert read_request(filed.text).id == filed.id


def test_the_beginning_and_the_end_are_said_where_the_original_said_them(original, subscribe, client, spelled):
    hear = subscribe(RESULTS, ORCHESTRATOR, READY)
    original.file(read_request(spelled()))
    original.finish(original.claim("o", 60), MADE)
    original.file(read_request(spelled(id="req_20240115_002", name="other_tool")))
    original.fail(original.claim("o", 60), "the contract test failed")
    said = [(channel, json.loads(data)) for channel, data in (hear() for _ in range(7))]
    assert [(channel, each.get("type")) for channel, each in said] == [
        (ORCHESTRATOR, "builder_started"),
        (READY, None),
        (RESULTS, "tool_built"),
        (ORCHESTRATOR, "builder_completed"),
        (ORCHESTRATOR, "builder_started"),
        (RESULTS, "tool_build_failed"),
        (ORCHESTRATOR, "builder_failed"),
    ]
    built, failed = said[2][1], said[5][1]
    assert (built["request_id"], built["tool_name"]) == (ID, "amount_adder")
    assert (failed["request_id"], failed["tool_name"], failed["error"]) == (
        "req_20240115_002",
        "other_tool",
        "the contract test failed",
    )
    registered = client.hgetall("tools:amount_adder")
    assert registered.pop("created_at").endswith("Z")
    assert registered == {
        "name": "amount_adder",
        "description": "Adds what it is given",
        "path": "tools/amount_adder",
        "status": "active",
        "version": "1.0.0",
    }
    assert not client.exists("tools:other_tool")


@pytest.mark.spec("S0-37")
def test_every_experiment_of_its_set_is_released_and_not_only_one(original, subscribe, client, spelled):
    client.sadd("pending_experiments:amount_adder", "exp_7", "exp_8", "exp_9")
    hear = subscribe(EXECUTE, READY)
    original.file(read_request(spelled()))
    original.finish(original.claim("o", 60), MADE)
    said = [hear() for _ in range(4)]
    assert [json.loads(data)["experiment_id"] for channel, data in said if channel == EXECUTE] == [
        "exp_7",
        "exp_8",
        "exp_9",
    ]
    (payload,) = [json.loads(data) for channel, data in said if channel == READY]
    assert payload["experiments"] == ["exp_1", "exp_7", "exp_8", "exp_9"]
    assert not client.exists("pending_experiments:amount_adder")


def test_nothing_of_this_is_heard_or_said_unless_it_is_asked_for(queue, server, client, subscribe, spelled, eventually):
    client.sadd("pending_experiments:amount_adder", "exp_7")
    queue.reconcile()
    eventually(lambda: client.pubsub_numsub("fullsend:builder_requests")[0][1] == 1)
    assert client.pubsub_numsub(TASKS)[0][1] == 0
    hear = subscribe(RESULTS, ORCHESTRATOR, EXECUTE)
    queue.file(read_request(spelled()))
    queue.finish(queue.claim("o", 60), MADE)
    assert queue.get(ID).status is Status.READY
    assert hear(0.1) is None
    assert not client.exists("tools:amount_adder")
    assert client.scard("pending_experiments:amount_adder") == 1
