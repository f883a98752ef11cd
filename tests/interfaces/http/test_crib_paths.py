"""The paths of our own: calls by name, explanations, sessions, kept results, facts, health."""

from __future__ import annotations

from toolcrib import AuthRule, tool
from toolcrib.interfaces.http.server_state import SESSION_SECONDS, SessionStore


@tool
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


@tool(confirm=True)
def wipe() -> str:
    """Wipe something out."""
    return "wiped"


@tool
def large(letters: int) -> str:
    """Return a long text."""
    return "x" * letters


async def test_a_tool_is_called_by_name_address_or_bundle(make_world):
    world = make_world(add)
    await world.with_bundle()
    await world.with_tool()
    assert (await world.client.post("/call/add", {"first": 2})).json["value"] == 3
    assert (await world.client.post("/call/weather%2Fecho@v1", {})).json["value"] == {}
    path = "/call/echo?bundle=weather&version="
    assert (await world.client.post(f"{path}v1", {"city": "Oslo"})).json["value"] == {"city": "Oslo"}
    assert (await world.client.post(f"{path}v9", {"city": "Oslo"})).status == 404
    assert (await world.client.post("/call/echo")).json["value"] == {}, "no body means no arguments"
    assert (await world.client.post("/call/nobody", {})).status == 404


async def test_a_call_that_names_no_tool_is_refused(world):
    for body in [
        {},
        {"name": ""},
        {"name": 1},
        {"name": "x" * 1001},
        {"name": "add", "bundle": 1},
        {"name": "add", "x": 1},
    ]:
        assert (await world.client.post("/crib/explain", body)).status == 400, body
    for path in ("/call/", f"/call/{'x' * 1001}", "/call/add?bundle=a&bundle=b", "/call/add?x=1"):
        assert (await world.client.post(path, {})).status == 400, path
    assert (await world.client.post("/call/add", [])).status == 400, "arguments are an object"


async def test_a_header_of_a_call_that_is_repeated_is_refused(make_world):
    world = make_world(add)
    for name in (b"toolcrib-session", b"toolcrib-mode", b"toolcrib-confirmation"):
        reply = await world.client.post("/call/add", {"first": 1}, extra=((name, b"a"), (name, b"b")))
        assert (reply.status, reply.json["detail"]) == (400, f"the header {name.decode()} is repeated; send it once")


async def test_an_explanation_says_what_every_gate_would_and_runs_nothing(make_world):
    world = make_world(wipe)
    reply = await world.client.post("/crib/explain", {"name": "wipe"})
    assert reply.status == 200
    assert reply.json["allowed"] is False
    [asks] = [found for found in reply.json["findings"] if found["decision"] == "confirm"]
    assert (asks["gate"], asks["kind"]) == ("confirmation", "CONFIRMATION_REQUIRED")
    unknown = (await world.client.post("/crib/explain", {"name": "nobody"})).json
    assert [found["kind"] for found in unknown["findings"] if found["decision"] == "deny"] == ["NOT_FOUND"]


async def test_a_session_counts_the_calls_of_its_caller(make_world):
    world = make_world(add)
    opened = await world.client.post("/crib/sessions", {"maxCalls": 2})
    session = opened.json["id"]
    assert opened.status == 201
    assert opened.headers["location"] == f"/crib/sessions/{session}"
    headers = {"Toolcrib-Session": session}
    replies = [await world.client.post("/call/add", {"first": number}, headers=headers) for number in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[-1].json["kind"] == "BUDGET_EXCEEDED"
    assert (await world.client.get(f"/crib/sessions/{session}")).json["calls"] == 2
    assert (await world.client.delete(f"/crib/sessions/{session}")).status == 204
    gone = await world.client.post("/call/add", {"first": 1}, headers=headers)
    assert (gone.status, gone.json["kind"]) == (409, "SESSION_INACTIVE")
    assert (await world.client.get(f"/crib/sessions/{session}")).status == 404


async def test_a_turn_begins_anew_when_the_user_has_spoken(make_world):
    world = make_world(add)
    session = (await world.client.post("/crib/sessions", {"maxTurnCalls": 1})).json["id"]
    headers = {"Toolcrib-Session": session}
    assert (await world.client.post("/call/add", {"first": 1}, headers=headers)).status == 200
    assert (await world.client.post("/call/add", {"first": 1}, headers=headers)).status == 429
    assert (await world.client.post(f"/crib/sessions/{session}/turn", {})).status == 200
    assert (await world.client.post("/call/add", {"first": 1}, headers=headers)).status == 200


async def test_a_session_belongs_to_the_caller_that_opened_it(make_world):
    world = make_world(add)
    session = (await world.client.post("/crib/sessions", {})).json["id"]
    stranger = {"Authorization": f"Bearer {world.crib.tokens.create('other', ['invoke'])[1]}"}
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/turn")):
        reply = await world.client.ask(method, f"/crib/sessions/{session}{path}", {}, headers=stranger)
        assert reply.status == 404
    headers = {"Toolcrib-Session": session}
    assert (await world.client.post("/call/add", {"first": 1}, headers={**stranger, **headers})).status == 409
    assert (await world.client.post("/call/add", {"first": 1}, headers=headers)).status == 200


async def test_a_session_that_asks_for_too_much_is_refused(world):
    for body in [
        {"mode": "song"},
        {"mode": 1},
        {"maxCalls": 0},
        {"maxCalls": 10**9},
        {"maxCalls": True},
        {"maxRepeats": 1.5},
        {"state": {}},
    ]:
        assert (await world.client.post("/crib/sessions", body)).status == 400


async def test_a_session_is_forgotten_after_an_hour_and_there_are_only_so_many(make_world, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.server_state.MAX_SESSIONS_OF_CALLER", 2)
    now = [1_000_000.0]
    real = SessionStore.__init__
    monkeypatch.setattr(SessionStore, "__init__", lambda self: real(self, lambda: now[0]))
    world = make_world(add)
    session = (await world.client.post("/crib/sessions", {})).json["id"]
    assert (await world.client.post("/crib/sessions", {})).status == 201
    full = await world.client.post("/crib/sessions", {})
    assert (full.status, full.json["kind"]) == (429, "OVERLOADED")
    now[0] += SESSION_SECONDS - 1
    assert (await world.client.get(f"/crib/sessions/{session}")).status == 200
    now[0] += 2
    assert (await world.client.get(f"/crib/sessions/{session}")).status == 404
    assert (await world.client.post("/crib/sessions", {})).status == 201


async def test_a_large_value_is_read_in_pieces_by_its_caller_alone(make_world):
    world = make_world(large, calls={"result_bytes": 1_000})
    kept = (await world.client.post("/call/large", {"letters": 5_000})).json["meta"]["kept"]
    piece = (await world.client.get(f"/crib/results/{kept['handle']}?offset=4000&length=600")).json
    assert piece == {"text": "x" * 600, "offset": 4000, "total": 5000, "next": 4600}
    assert (await world.client.get(f"/crib/results/{kept['handle']}")).json["next"] is None
    stranger = {"Authorization": f"Bearer {world.crib.tokens.create('other', ['invoke'])[1]}"}
    assert (await world.client.get(f"/crib/results/{kept['handle']}", headers=stranger)).status == 404


async def test_a_handle_that_was_never_given_out_is_not_found(world):
    for path in ["x", "%2e%2e", "..%2f..%2fetc%2fpasswd", "0" * 48, "%00"]:
        assert (await world.client.get(f"/crib/results/{path}")).status == 404


async def test_a_piece_out_of_bounds_is_refused(world):
    for query in ["offset=-1", "length=0", "length=x", "offset=1&offset=2", "length=99999999"]:
        assert (await world.client.get(f"/crib/results/{'0' * 48}", query=query)).status == 400


async def test_the_facts_of_every_tool_are_listed_by_address_in_pages(make_world):
    world = make_world(add, wipe, large)
    seen, token = [], ""
    while True:
        page = (await world.client.get(f"/crib/tools?pageSize=2&pageToken={token}")).json
        seen += [found["address"] for found in page["tools"]]
        if (token := page["nextPageToken"]) is None:
            break
    assert seen == sorted(entry.tool.address for entry in world.crib.entries)
    assert len(seen) == len(set(seen))


async def test_one_tool_is_shown_with_its_definition_by_any_of_its_names(make_world):
    world = make_world(add)
    [shown] = (await world.client.get("/crib/tools?name=add")).json["tools"]
    assert (shown["name"], shown["enabled"], shown["kind"]) == ("add", True, "function")
    assert shown["definition"]["function"]["name"] == "add"
    unknown = await world.client.get("/crib/tools?name=ad")
    assert unknown.status == 404
    assert "add" in unknown.json["detail"]


async def test_health_says_what_is_spoken_and_what_is_broken_and_no_secret(make_world, monkeypatch):
    monkeypatch.setenv("WEATHER_API_KEY", "canary-4711")
    world = make_world(secrets={"environment": ["WEATHER_API_KEY"]})
    reply = await world.client.get("/crib/health")
    assert reply.json["ready"] is True
    assert reply.json["schemaVersion"] == "toolcrib-1"
    assert reply.json["problems"] == []
    assert b"canary" not in reply.raw
    assert (await world.client.get("/healthz")).json == {"alive": True}
    assert (await world.client.get("/readyz")).json == {"ready": True}


async def test_figures_are_read_as_text(make_world):
    world = make_world(add, rules=[AuthRule(["add", "made-up-by-a-caller"])])
    await world.client.post("/call/add", {"first": 1})
    await world.client.post("/call/made-up-by-a-caller", {})
    assert (await world.client.post("/call/made-up-and-denied", {})).status == 403
    reply = await world.client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    assert 'toolcrib_calls_total{tool="add",outcome="ok"} 1' in reply.raw.decode()
    assert 'toolcrib_calls_total{tool="(unknown)",outcome="NOT_FOUND"} 1' in reply.raw.decode()
    assert 'toolcrib_calls_total{tool="(unknown)",outcome="BLOCKED"} 1' in reply.raw.decode()
    assert "made-up" not in reply.raw.decode()
