"""Requests for missing tools over HTTP: filed, listed, followed, delivered, cancelled; and what hostile clients try."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading

import pytest

from app_lifespan import end, local_app
from tool_requests import queue_of, request_text
from toolcrib.features.requests import endpoint_handlers
from toolcrib.features.requests.delivery import written_package
from toolcrib.features.requests.tracker import MAX_TEXT_BYTES
from toolcrib.interfaces.http.routes import registered_tables
from toolcrib.interfaces.http.server import serve
from toolcrib.model.call import Scope
from toolcrib.toolkit.http import event_stream
from toolcrib.toolkit.http.concurrency import Threads

ID = "req_20240115_001"
SECONDS = 60
YAML = {"content-type": "application/yaml"}
STREAM = "text/event-stream"
PLACE = re.compile(r"\{(\w+)\}")
CODE = "def word_counter(text: str) -> dict:\n    return {'words': len(text.split())}\n"
LIES = "def word_counter(text: str) -> dict:\n    return {'letters': 1}\n"
HANGS = "import time\ntime.sleep(1000)\n" + CODE
ANSWER = {"url": "https://api.example.com/users", "status": 200, "body": {"users": []}}


def fields(name="word_counter", **more):
    return {
        "name": name,
        "description": "Count the words of a text",
        "priority": "medium",
        "requested_by": "fullsend",
        "inputs": [{"name": "text", "type": "string", "description": "What to count in", "required": True}],
        "outputs": [{"name": "words", "type": "integer"}],
        "examples": [
            {"input": {"text": "one two"}, "output": {"words": 2}},
            {"input": {"text": "one"}, "output": {"words": 1}},
        ],
        **more,
    }


def text_of(request_id="", **more):
    return request_text(fields(**more), request_id)


@pytest.fixture
def queue(world):
    """The queue of the project, as another process has it."""
    (world.root / ".toolcrib").mkdir(exist_ok=True)
    queue = queue_of(world.root)
    yield queue
    queue.close()


@pytest.fixture
def file(world):
    """File a request; its document."""

    async def post(**more):
        reply = await world.client.post("/requests", {"request": fields(**more)})
        assert reply.status == 201, reply.raw
        return reply.json

    return post


@pytest.fixture
async def held(world, file, queue):
    """A request that is left to a person."""
    filed = await file(experiment_blocked="exp_words")
    assert queue.hold(queue.claim("somebody", 60.0, filed["id"]), "left to a person")
    return filed["id"]


async def post_yaml(world, text, **more):
    raw = text if isinstance(text, bytes) else text.encode()
    return await world.client.post("/requests", raw=raw, headers={**YAML, **more.pop("headers", {})}, **more)


@pytest.mark.spec("S0-01")
async def test_a_missing_tool_is_asked_for_once_and_found_where_the_answer_says(world):
    reply = await post_yaml(world, text_of(ID))
    assert (reply.status, reply.headers["location"]) == (201, f"/requests/{ID}")
    assert (reply.json["status"], reply.json["merged"], reply.json["warnings"]) == ("pending", False, [])
    shown = (await world.client.get(reply.headers["location"])).json
    assert (shown["id"], shown["yaml"]) == (ID, text_of(ID))
    assert [event["step"] for event in shown["history"]] == ["filed"]
    assert [one["id"] for one in (await world.client.get("/requests")).json["requests"]] == [ID]


@pytest.mark.spec("S0-01")
async def test_a_tool_that_is_registered_is_not_asked_for(world):
    (world.root / "tools").mkdir()
    (world.root / "tools" / "word_counter.py").write_text(CODE)
    reply = await post_yaml(world, text_of(ID))
    assert (reply.status, reply.json["kind"]) == (409, "CONFLICT")
    assert reply.json["details"] == {"tool": "tools/word-counter@1.0.0"}
    assert (await world.client.get("/requests")).json == {"requests": []}


@pytest.mark.spec("S0-04")
async def test_the_same_text_again_answers_200_and_another_text_409(world):
    first = await post_yaml(world, text_of(ID))
    again = await post_yaml(world, text_of(ID) + "\n\n")
    assert (again.status, again.json) == (200, first.json)
    assert "location" not in again.headers
    other = await post_yaml(world, text_of(ID, description="Something else"))
    assert (other.status, other.json["kind"]) == (409, "CONFLICT")
    assert (await world.client.get(f"/requests/{ID}")).json["yaml"] == text_of(ID)


async def test_the_same_request_becomes_part_of_the_open_one_with_200(world):
    first = await world.client.post("/requests", {"request": fields()})
    second = await world.client.post("/requests", {"yaml": text_of()})
    third = await post_yaml(world, text_of(ID))
    assert [first.status, second.status, third.status] == [201, 200, 200]
    assert [reply.json["merged"] for reply in (first, second, third)] == [False, True, True]
    assert second.json["id"] == first.json["id"]
    assert third.json["mergedInto"] == first.json["id"]


async def test_warnings_come_with_the_answer_and_strict_refuses_them(world):
    odd = text_of().replace("priority: medium", "priority: HIGH")
    strict = await post_yaml(world, odd, query="strict=true")
    assert strict.status == 400
    assert "HIGH" in strict.json["detail"]
    lenient = await post_yaml(world, odd, query="strict=false")
    assert lenient.status == 201
    assert any("HIGH" in warning for warning in lenient.json["warnings"])


async def test_no_client_is_less_strict_than_the_operator(make_world):
    world = make_world(requests={"strict": True})
    odd = text_of().replace("priority: medium", "priority: HIGH")
    for query in ("", "strict=false"):
        assert (await post_yaml(world, odd, query=query)).status == 400


@pytest.mark.spec("S0-02")
async def test_everything_that_is_wrong_is_told_at_once_with_its_line(world):
    text = text_of().replace("type: string", "type: date").replace("  requested_by: fullsend\n", "")
    for reply in (await post_yaml(world, text), await world.client.post("/requests", {"yaml": text})):
        assert reply.status == 400
        assert len(reply.json["problems"]) == 2
        assert reply.json["details"]["line"] >= 1
        assert reply.json["details"]["column"] == 1
    broken = await post_yaml(world, "tool_request:\n  name: [\n")
    assert broken.json["details"]["line"] == 3
    assert (await world.client.get("/requests")).json == {"requests": []}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"tool_request: 1",
        b"a: *b",
        b"\x00",
        b"- " * 5_000,
        b"{" * 5_000,
        b"tool_request: !!x {}",
    ],
)
async def test_what_is_no_request_is_refused_and_nothing_is_stored(world, raw):
    reply = await post_yaml(world, raw)
    assert (reply.status, reply.json["kind"]) == (400, "VALIDATION")
    assert reply.json["details"]["line"] >= 1
    assert (await world.client.get("/requests")).json == {"requests": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"yaml": None},
        {"request": None},
        {"yaml": 1},
        {"request": []},
        {"yaml": "a", "request": {}},
        {"yaml": "\ud800"},
        {"request": {"name": "\ud800"}},
        {"request": {"id": ["x"]}},
        {"request": fields(), "strict": True},
        {"request": {"name": {"a": [[[[[]]]]]}}},
    ],
)
async def test_a_body_that_says_something_else_is_refused(world, body):
    reply = await world.client.post("/requests", body)
    assert (reply.status, reply.json["kind"]) == (400, "VALIDATION")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/x-yaml"}, 201),
        ({"content-type": "Application/YAML; charset=UTF-8"}, 201),
        ({"content-type": "application/yaml; charset=latin-1"}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "text/yaml2"}, 415),
        ({"content-type": None}, 415),
        ({"content-encoding": "gzip"}, 415),
    ],
)
async def test_only_yaml_and_json_are_taken(world, headers, status):
    assert (await post_yaml(world, text_of(), headers=headers)).status == status


async def test_what_is_too_large_is_refused_before_it_is_read(make_world, tmp_path):
    world = make_world()
    reply = await post_yaml(world, text_of() + "#" * MAX_TEXT_BYTES)
    assert (reply.status, reply.json["kind"]) == (413, "LIMIT_EXCEEDED")
    small = make_world(root=tmp_path, server={"body_bytes": 100})
    assert (await post_yaml(small, text_of())).status == 413
    assert (await world.client.get("/requests")).json == {"requests": []}


@pytest.mark.parametrize(
    "request_id", ["req_20240115_009", "..%2F..%2Fetc%2Fpasswd", "x" * 10_000, "%00", "*", "%ED%9F%BF", "a%0d%0ab: c"]
)
async def test_an_unknown_id_is_404_for_every_operation(world, request_id):
    place = f"/requests/{request_id}"
    replies = [await world.client.get(place + act) for act in ("", "/history", "/events")]
    replies += [await world.client.post(place + act, {}) for act in ("/cancel", "/retry")]
    replies.append(await world.client.put(place + "/allowance", {}))
    replies.append(await world.client.post(place + "/deliver", {"files": {"word_counter.py": CODE}}))
    for reply in replies:
        assert (reply.status, reply.json["kind"]) == (404, "NOT_FOUND")
        assert len(reply.raw) < 2_000


@pytest.mark.parametrize(
    ("method", "path", "body", "needed"),
    [
        ("GET", "/requests", None, "read"),
        ("POST", "/requests", {"request": fields()}, "invoke"),
        ("GET", f"/requests/{ID}", None, "read"),
        ("GET", f"/requests/{ID}/history", None, "read"),
        ("GET", f"/requests/{ID}/events", None, "read"),
        ("POST", f"/requests/{ID}/deliver", {"files": {"a.py": ""}}, "manage"),
        ("POST", f"/requests/{ID}/cancel", {}, "manage"),
        ("POST", f"/requests/{ID}/retry", {}, "manage"),
        ("PUT", f"/requests/{ID}/allowance", {}, "manage"),
        ("GET", "/experiments", None, "read"),
    ],
)
async def test_every_path_asks_for_its_scope(make_world, method, path, body, needed):
    world = make_world(open_to_loopback=False)
    assert (await world.client.ask(method, path, body)).status == 401
    allowed = {}
    for scope in ("read", "invoke", "manage"):
        bearer = {"authorization": f"Bearer {world.crib.tokens.create(scope, [scope])[1]}"}
        allowed[scope] = (await world.client.ask(method, path, body, headers=bearer)).status != 403
    assert allowed == {scope: scope == needed for scope in allowed}


async def test_a_server_without_a_project_says_that_it_keeps_no_requests(crib_of, client_for):
    app = local_app(crib_of())
    client = client_for(app)
    for reply in (
        await client.get("/requests"),
        await client.post("/requests", {"request": fields()}),
        await client.get(f"/requests/{ID}"),
        await client.get("/experiments"),
    ):
        assert reply.status == 400
        assert "there is no project" in reply.json["detail"]
        assert "there is no project to keep anything in; ask the operator" in reply.json["detail"]
    await end(app)


async def test_the_newest_are_listed_and_those_of_one_status(world, file, queue):
    for number in range(3):
        await file(name=f"tool_{number}")
    queue.claim("somebody", 60.0)

    async def names(query):
        return [one["name"] for one in (await world.client.get(f"/requests?{query}")).json["requests"]]

    assert await names("limit=2") == ["tool_1", "tool_2"]
    assert await names("status=building") == ["tool_0"]
    assert await names("status=failed") == []
    for query in ("status=odd", "status=", "limit=0", "limit=1001", "limit=x", "odd=1"):
        assert (await world.client.get(f"/requests?{query}")).status == 400


async def test_of_long_requests_as_many_are_listed_as_one_answer_holds(world, file, monkeypatch):
    for number in range(3):
        await file(name=f"tool_{number}", description=str(number) * 4_000)

    async def names():
        return [one["name"] for one in (await world.client.get("/requests")).json["requests"]]

    assert await names() == ["tool_0", "tool_1", "tool_2"]
    monkeypatch.setattr(endpoint_handlers, "MAX_LISTED_BYTES", 10_000)
    assert await names() == ["tool_1", "tool_2"]
    monkeypatch.setattr(endpoint_handlers, "MAX_LISTED_BYTES", 1)
    assert await names() == ["tool_2"]


async def test_a_body_of_another_type_is_told_the_types_that_are_read(world):
    reply = await world.client.post("/requests", raw=b"a: 1", headers={"content-type": "text/plain"})
    assert (reply.status, reply.headers["accept-post"]) == (415, "application/json, application/yaml")
    assert "send one of application/json, application/yaml" in reply.json["detail"]


async def test_long_requests_are_asked_for_little_by_little(world, file, monkeypatch):
    for number in range(9):
        await file(name=f"tool_{number}")
    asked, ask = [], world.crib.requests.list
    monkeypatch.setattr(
        world.crib.requests, "list", lambda status, limit: asked.append(limit) or ask(status, limit=limit)
    )
    monkeypatch.setattr(endpoint_handlers, "FIRST_ASKED", 2)

    async def numbers(limit=""):
        asked.clear()
        listed = (await world.client.get(f"/requests{limit}")).json["requests"]
        return [int(one["name"][-1]) for one in listed], list(asked)

    assert await numbers() == (list(range(9)), [2, 4, 8, 16])
    assert await numbers("?limit=3") == ([6, 7, 8], [2, 3])
    assert await numbers("?limit=4") == ([5, 6, 7, 8], [2, 4])
    size = len((await file(name="tool_9"))["yaml"])
    monkeypatch.setattr(endpoint_handlers, "MAX_LISTED_BYTES", 3 * size)
    assert await numbers() == ([7, 8, 9], [2, 4])


async def test_the_history_is_told_from_any_event_on(world, file, queue):
    place = f"/requests/{(await file())['id']}/history"
    claim = queue.claim("somebody", 60.0)
    queue.note(claim, "making", "attempt 1")
    told = (await world.client.get(place)).json
    assert (told["status"], [event["step"] for event in told["history"]]) == (
        "building",
        ["filed", "building", "making"],
    )
    behind = (await world.client.get(f"{place}?after=2")).json["history"]
    assert [event["number"] for event in behind] == [3]
    assert (await world.client.get(f"{place}?after=2147483647")).json["history"] == []
    for query in ("after=-1", "after=99999999999", "wait=31", "wait=x"):
        assert (await world.client.get(f"{place}?{query}")).status == 400


async def test_a_waiting_caller_is_told_as_soon_as_something_happens(world, file, queue):
    place = f"/requests/{(await file())['id']}/history?after=1&wait=30"
    waiting = asyncio.create_task(world.client.get(place))
    await asyncio.to_thread(queue.wait, 0.2)
    assert not waiting.done()
    claim = queue.claim("somebody", 60.0)
    assert [event["step"] for event in (await waiting).json["history"]] == ["building"]
    waiting = asyncio.create_task(world.client.get(place.replace("after=1", "after=2")))
    queue.fail(claim, "it cannot be built")
    told = (await waiting).json
    assert (told["status"], [event["step"] for event in told["history"]]) == ("failed", ["failed"])
    over = await world.client.get(place.replace("after=1", "after=3"))
    assert over.json == {"status": "failed", "history": []}


async def test_a_caller_that_waits_in_vain_is_told_nothing_after_a_while(world, file):
    place = f"/requests/{(await file())['id']}/history?after=1&wait=1"
    assert (await world.client.get(place)).json == {"status": "pending", "history": []}


async def test_a_caller_that_waits_when_too_many_do_comes_again(world, file, monkeypatch):
    monkeypatch.setattr(event_stream, "MAX_LISTENERS", 1)
    place = f"/requests/{(await file())['id']}"
    waiting = asyncio.create_task(world.client.get(f"{place}/history?after=1&wait=30"))
    while (await world.client.ask("HEAD", f"{place}/events")).status != 429:
        assert not waiting.done()
    refused = await world.client.get(f"{place}/history?after=1&wait=1")
    assert (refused.status, refused.json["kind"], refused.headers["retry-after"]) == (429, "OVERLOADED", "5")
    assert (await world.client.get(f"{place}/events")).status == 429
    assert (await world.client.get(f"{place}/history?after=1")).status == 200
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await world.client.get(f"{place}/history?after=1&wait=1")).status == 200


@pytest.mark.spec("S0-35", "S0-37")
async def test_what_is_delivered_is_proved_published_and_can_be_called(world, held):
    data = base64.b64encode(b"\xff\x00").decode()
    body = {"files": {"word_counter.py": CODE, "more/helper.py": "X = 1\n"}, "binary": {"more/data.bin": data}}
    delivered = await world.client.post(f"/requests/{held}/deliver", body)
    assert delivered.status == 200, delivered.raw
    assert (delivered.json["status"], delivered.json["tool"]) == ("ready", "tools/word-counter@1.0.0")
    called = await world.client.post("/call/word_counter", {"text": "a b c"})
    assert called.json["value"] == {"words": 3}
    found = (await world.client.get("/crib/tools?name=word_counter")).json["tools"][0]
    path = f"/tools/bundles/{found['bundleID']}/tools/word-counter/version/1.0.0/invoke"
    assert (await world.client.post(path, {"args": {"text": "a"}})).json["value"] == {"words": 1}
    assert (world.root / "tools" / "word_counter" / "more" / "data.bin").read_bytes() == b"\xff\x00"
    history = (await world.client.get(f"/requests/{held}/history")).json["history"]
    assert ("delivered", "package") in [(event["step"], event["text"]) for event in history]
    [experiment] = (await world.client.get("/experiments")).json["experiments"]
    assert (experiment["id"], experiment["status"], experiment["waitsFor"]) == ("exp_words", "ready", [])


@pytest.mark.spec("S0-36")
async def test_what_the_gate_refuses_is_told_with_its_complaints_and_the_request_waits_on(world, held):
    for files, word in (({"word_counter.py": LIES}, "words"), ({"other.py": CODE}, "there is no word_counter.py")):
        reply = await world.client.post(f"/requests/{held}/deliver", {"files": files})
        assert (reply.status, reply.json["kind"]) == (400, "VALIDATION")
        assert any(word in complaint for complaint in reply.json["details"]["complaints"])
        assert "toolcrib-delivery" not in reply.raw.decode()
    shown = (await world.client.get(f"/requests/{held}")).json
    assert (shown["status"], shown["held"]) == ("building", True)
    [experiment] = (await world.client.get("/experiments")).json["experiments"]
    assert (experiment["status"], experiment["waitsFor"]) == ("blocked", ["word_counter"])
    assert not (world.root / "tools" / "word_counter").exists()


HOSTILE = [
    *("", "/", "/etc/passwd", "../a.py", "a/../b.py", "a//b.py", "./a.py", "a/.", "a/", "..", "."),
    *("a\\b.py", "a\0.py", "a\n.py", "\ud800.py", "\u202ea.py", ".env", "a/.git/config", "__pycache__/a.pyc"),
    *("node_modules/x.js", "x" * 300 + ".py", "é" * 200, "/".join("a" * 20), "C:\\a.py"),
]


@pytest.mark.parametrize("key", ["files", "binary"])
async def test_a_path_that_leads_elsewhere_is_refused(world, held, key):
    before = sorted(world.root.rglob("*"))
    for path in HOSTILE:
        body = {"files": {"word_counter.py": CODE}}
        body.setdefault(key, {})[path] = ""
        reply = await world.client.post(f"/requests/{held}/deliver", body)
        assert (reply.status, reply.json["kind"]) == (400, "VALIDATION"), path
        assert "complaints" not in reply.json.get("details", {}), path
        assert "toolcrib-delivery" not in reply.raw.decode(), path
    assert sorted(world.root.rglob("*")) == before


NO_PACKAGES = [
    {},
    {"files": {}},
    {"files": None},
    {"files": []},
    {"files": {"word_counter.py": None}},
    {"files": {"word_counter.py": 1}},
    {"files": {"word_counter.py": "\ud800"}},
    {"binary": {"word_counter.py": "no base64!"}},
    {"binary": {"word_counter.py": "é"}},
    {"files": {"word_counter.py": CODE}, "binary": {"word_counter.py": ""}},
    {"files": {"word_counter.py": CODE, "Word_Counter.py": CODE}},
    {"files": {"word_counter.py": CODE, "data": "", "data/x": ""}},
    {"files": {"word_counter.py": CODE, "DATA/x": "", "data": ""}},
    {"files": {"word_counter.py": CODE}, "path": "/etc"},
    {"files": {f"f{number}.py": "" for number in range(1_000)}},
    {"files": {f"f{number}.py": "" for number in range(150)}, "binary": {f"b{n}": "" for n in range(51)}},
]


async def test_a_package_that_is_none_is_refused_before_anything_is_written(world, held):
    for body in NO_PACKAGES:
        reply = await world.client.post(f"/requests/{held}/deliver", body)
        assert (reply.status, reply.json["kind"]) == (400, "VALIDATION"), body
        assert "complaints" not in reply.json.get("details", {}), body
    history = (await world.client.get(f"/requests/{held}/history")).json["history"]
    assert "delivered" not in [event["step"] for event in history]


class Leaving:
    """A client that has sent its body and goes away when it is told to."""

    def __init__(self, body):
        self.pending = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
        self.leaves = asyncio.Event()

    async def __call__(self):
        if self.pending:
            return self.pending.pop()
        await self.leaves.wait()
        return {"type": "http.disconnect"}


async def until_delivered(world, request_id):
    """Wait until the gate has begun with a delivery."""
    after, steps = 0, []
    while "progress" not in steps:
        told = (await world.client.get(f"/requests/{request_id}/history?after={after}&wait=30")).json["history"]
        steps = [event["step"] for event in told]
        after = told[-1]["number"] if told else after


async def test_a_client_that_goes_away_stops_its_delivery_and_the_request_is_as_before(world, held):
    await world.crib.sandbox_report()
    client = Leaving({"files": {"word_counter.py": HANGS}})
    async with asyncio.timeout(SECONDS):
        work = asyncio.create_task(
            world.client.ask(
                "POST", f"/requests/{held}/deliver", headers={"content-type": "application/json"}, receive=client
            )
        )
        await until_delivered(world, held)
        client.leaves.set()
        reply = await work
    assert (reply.status, reply.json["kind"]) == (503, "CANCELLED")
    shown = (await world.client.get(f"/requests/{held}")).json
    assert (shown["status"], shown["held"]) == ("building", True)


async def test_a_delivery_that_takes_longer_than_an_answer_may_is_stopped_and_the_request_is_as_before(
    make_world, queue, held
):
    crib = make_world(server={"total_seconds": 1}).crib
    await crib.sandbox_report()
    url = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=url.set_result))
    async with asyncio.timeout(SECONDS):
        port = int((await url).rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"files": {"word_counter.py": HANGS}})
        head = f"POST /requests/{held}/deliver HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 504 ")
        writer.close()
    assert queue.get(held).held
    assert "delivered" in [event.step for event in queue.history(held)]
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(serving, SECONDS)


async def test_so_many_deliveries_are_proved_at_once_and_the_next_one_comes_again(world, held, monkeypatch):
    monkeypatch.setattr(endpoint_handlers, "MAX_DELIVERIES", 1)
    client = Leaving({"files": {"word_counter.py": HANGS}})
    place = f"/requests/{held}/deliver"
    async with asyncio.timeout(SECONDS):
        work = asyncio.create_task(
            world.client.ask("POST", place, headers={"content-type": "application/json"}, receive=client)
        )
        await until_delivered(world, held)
        refused = await world.client.post(place, {"files": {"word_counter.py": CODE}})
        assert (refused.status, refused.json["kind"], refused.headers["retry-after"]) == (429, "OVERLOADED", "10")
        client.leaves.set()
        await work
        assert (await world.client.post(place, {"files": {"word_counter.py": CODE}})).status == 200


async def test_a_delivery_for_what_is_being_built_or_what_is_over_says_so(world, file, queue):
    place = f"/requests/{(await file())['id']}"
    claim = queue.claim("somebody", 60.0)
    body = {"files": {"word_counter.py": CODE}}
    reply = await world.client.post(f"{place}/deliver", body)
    assert (reply.status, "somebody builds" in reply.json["detail"]) == (409, True)
    queue.fail(claim, "it cannot be built")
    assert (await world.client.post(f"{place}/deliver", body)).status == 409
    assert not list((world.root / "tools").glob("*"))


async def test_a_server_without_room_for_a_delivery_says_so_and_not_where(world, held, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    reply = await world.client.post(f"/requests/{held}/deliver", {"files": {"word_counter.py": CODE}})
    assert (reply.status, "cannot store what was delivered" in reply.json["detail"]) == (500, True)
    assert str(tmp_path) not in reply.raw.decode()
    assert (await world.client.get(f"/requests/{held}")).json["held"]


class Slow(dict):
    """Files that are handed out when they are released."""

    def __init__(self, *given):
        super().__init__(*given)
        self.begun, self.free, self.done = threading.Event(), threading.Event(), threading.Event()

    def items(self):
        for item in super().items():
            yield item
            self.begun.set()
            self.free.wait(SECONDS)
        self.done.set()


async def test_nothing_of_a_delivery_stays_behind_when_the_client_leaves_while_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads, files = Threads(), Slow({"a.py": b"", "more/b.py": b""})

    async def deliver():
        async with written_package(files, threads):
            raise AssertionError

    work = asyncio.create_task(deliver())
    await asyncio.to_thread(files.begun.wait, SECONDS)
    work.cancel()
    asyncio.get_running_loop().call_later(0.05, files.free.set)
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.to_thread(files.done.wait, SECONDS)
    threads.close()
    assert list(tmp_path.iterdir()) == []


async def test_what_is_cancelled_can_be_had_again(world, file):
    place = f"/requests/{(await file())['id']}"
    cancelled = await world.client.post(f"{place}/cancel", {"reason": "found another way"})
    assert (cancelled.status, cancelled.json["status"], cancelled.json["error"]) == (
        200,
        "cancelled",
        "found another way",
    )
    assert (await world.client.post(f"{place}/cancel")).status == 409
    assert (await world.client.post(f"{place}/retry")).json["status"] == "pending"
    assert (await world.client.post(f"{place}/retry", {})).status == 409
    assert (await world.client.post(f"{place}/cancel", {"reason": None})).status == 200
    for act, body in (("cancel", {"reason": 1}), ("cancel", {"why": ""}), ("retry", {"reason": ""}), ("retry", [])):
        assert (await world.client.post(f"{place}/{act}", body)).status == 400
    odd = await world.client.post(f"{place}/retry", raw=b"{}", headers={"content-type": "text/plain"})
    assert odd.status == 415


async def test_what_the_operator_allows_reaches_the_builder(world, file, queue):
    place = f"/requests/{(await file())['id']}/allowance"
    body = {"capabilities": ["net.http"], "hosts": ["*.example.com"], "answers": [ANSWER], "unproved": True}
    assert (await world.client.put(place, body)).status == 200
    allowance = queue.claim("somebody", 60.0).allowance
    assert (allowance.capabilities, allowance.hosts, allowance.unproved) == ({"net.http"}, ("*.example.com",), True)
    [answer] = allowance.answers
    assert (answer.url, answer.body, answer.headers) == (
        "https://api.example.com/users",
        '{"users": []}',
        {"Content-Type": "application/json"},
    )


async def test_everything_that_cannot_be_allowed_is_told_at_once(world, file, queue):
    place = f"/requests/{(await file())['id']}/allowance"
    body = {
        "capabilities": ["everything at all", 1],
        "hosts": ["http://x", "*.1.2.3.4"],
        "answers": [{"url": "ftp://x"}, {"boddy": ""}, []],
        "unproved": "yes",
        "host": ["a.example"],
    }
    reply = await world.client.put(place, body)
    assert reply.status == 400
    for word in ("capabilities[0]", "capabilities[1]", "hosts[0]", "hosts[1]", "answers[0].url", "answers[1].url"):
        assert any(word in problem for problem in reply.json["problems"]), word
    for word in ("answers[1].boddy", "answers[2]", "unproved", "body:1: host: "):
        assert any(word in problem for problem in reply.json["problems"]), word
    assert queue.claim("somebody", 60.0).allowance.hosts == ()
    many = await world.client.put(place, {"hosts": ["a.example"] * 65})
    assert many.status == 400


@pytest.mark.parametrize("word", ["q", "question"])
@pytest.mark.parametrize("path", ["/tools/search", "/crib/tools"])
async def test_a_search_that_finds_nothing_files_no_request(make_world, path, word):
    world = make_world(requests={"missing": True})
    found = (await world.client.get(f"{path}?{word}=translate+poems")).json
    assert found == {"tools": [], "nextPageToken": None}
    assert (await world.client.get("/requests")).json == {"requests": []}


async def test_no_get_files_a_request_whatever_it_asks_for(make_world):
    world = make_world(requests={"missing": True})
    await world.with_bundle()
    places = {"bundleID": world.bundle, "version": "v1", "requestID": ID}
    tables = registered_tables(world.crib.plugins)
    # Nothing but a token approves, and its endpoints would otherwise refuse before they look for anything.
    person = {"authorization": f"Bearer {world.crib.tokens.create('person', list(Scope))[1]}"}
    asked, refused = set(), set()
    for endpoint in (each for table in tables for each in table.endpoints if each.method == "GET"):
        is_stream = any(reply.media_type == STREAM for reply in endpoint.replies.values())
        for path in endpoint.names:
            place = PLACE.sub(lambda found: places.get(found[1], "translate-poems"), path)
            values = ("translate_poems", "translate+poems")
            for query in ("", *(f"{parameter.name}={value}" for parameter in endpoint.query for value in values)):
                for headers in ({}, person):
                    receive = leave_at_once() if is_stream else None
                    reply = await world.client.get(place, query=query, headers=headers, receive=receive)
                refused.update({path} if reply.status in {401, 403} else ())
            asked.add(path)
    assert {"/tools/search", "/crib/tools", "/ui/tools", "/ui/obstacles", "/requests/{requestID}"} <= asked
    assert {"/approvals", "/approvals/events", "/approvals/{approvalID}"} <= asked
    assert not refused
    # The one request that is filed shows that the setting is on; requests are filed one after the other.
    assert (await world.client.post("/call/draw_maps", {})).status == 404
    listed = (await world.client.get("/requests")).json["requests"]
    assert [one["name"] for one in listed] == ["draw_maps"]


def leave_at_once():
    """What the server hears from a client that asks and then goes away, so that a stream of events ends."""
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    return receive


async def test_a_call_of_an_unknown_tool_names_the_request_that_it_became(make_world):
    world = make_world(requests={"missing": True})
    await world.with_bundle()
    by_name = await world.client.post("/call/translate_poems", {"text": "private"})
    by_place = await world.client.post(world.tool_path("draw-maps"), {})
    listed = (await world.client.get("/requests")).json["requests"]
    assert [one["name"] for one in listed] == ["translate_poems", "draw_maps"]
    for reply, filed in zip((by_name, by_place), listed, strict=True):
        assert (reply.status, reply.json["kind"]) == (404, "NOT_FOUND")
        assert reply.json["details"]["requestId"] == filed["id"]
        assert reply.json["error"]["details"]["requestId"] == filed["id"]
    assert "private" not in listed[0]["yaml"]
