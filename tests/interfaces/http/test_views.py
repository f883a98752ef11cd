"""A caller that is limited to some tools learns nothing of the others, by any request.

Two worlds answer the same requests with the same limits: in one of them there are tools that the caller may not see, in the
other they do not exist. Every endpoint and every method of MCP is asked, from their own tables, so that a new one is too.
"""

import asyncio
import json
import re
from dataclasses import replace
from urllib.parse import quote

import pytest

from app_lifespan import local_app
from toolcrib import Call, PromptArgument, ToolError, prompt, resource, tool, tool_of
from toolcrib.core.sources import seen_through
from toolcrib.features.access.view import ToolView, both, make_view, read_view
from toolcrib.interfaces.http.routes import registered_tables
from toolcrib.interfaces.mcp.versions import SESSION_METHODS, STATELESS_METHODS
from toolcrib.model.call import Consent, Scope

OPEN, SECRET = "018faf50-b7b6-7a01-9a05-a22a6e0af101", "018faf50-b7b6-7a01-9a05-a22a6e0af102"
HIDDEN = "classified"
NAMES = ("classified", "classified-echo", "hushhush/classified-echo@v1", "classified_file", "open_file", "near")
META = "io.modelcontextprotocol/"
SCOPES = ("read", "invoke", "approve")
LIMITS = {
    "bundles": {"bundles": ["public"]},
    "tools": {"tools": ["public/echo", "public/both", "near", "asks", "open_file", "open-note", "host/open_prompt"]},
    "tags": {"tags": ["shown"]},
}


@tool(tags=["shown"])
def near(text: str = "") -> str:
    """A tool of the host program that everybody may see."""
    return text


@tool(tags=["shown"], confirm=True)
def asks(text: str = "") -> str:
    """It needs a person."""
    return text


@tool(confirm=True)
def classified(text: str = "") -> str:
    """What only few may know of: classified."""
    return text


@resource("open://{what}", name="open_note", tags=["shown"], what=["everything"])
def open_note(context, what: str) -> str:
    """What everybody may read."""
    return what


@prompt(PromptArgument(name="tone", choices=("dry", "warm")), name="open_prompt", tags=["shown"])
def open_prompt(context, tone: str = "dry") -> str:
    """What everybody may ask."""
    return tone


@resource("hush://classified")
def classified_note(context) -> str:
    """A classified note."""
    return "classified"


@resource("hush://{what}/note", name="classified_notes", what=["classified"])
def classified_notes(context, what: str) -> str:
    """Many classified notes."""
    return "classified"


@prompt(PromptArgument(name="tone", choices=("classified",)), name="hush")
def hush(context, tone: str = "") -> str:
    """A classified prompt."""
    return "classified"


FILE = '''"""{0} file."""


def {1}(text: str = "") -> str:
    """{0} work on a file."""
    return text
'''


def fill_in(path: str) -> list[str]:
    """The path with every parameter replaced by what belongs to a tool that is not shown, and by one that is."""
    words = {
        "bundleID": (OPEN, SECRET),
        "toolSlug": ("echo", "classified-echo", "both"),
        "version": ("v1",),
        "approvalID": ("APPROVAL", "0" * 32),
        "requestID": ("REQUEST", "nothing"),
        "sessionID": ("nothing",),
        "handle": ("abcdef",),
        "name": (*(quote(name, safe="") for name in NAMES), "host%2Fclassified", "nothing"),
    }
    found = [path]
    for name in re.findall(r"{(\w+)}", path):
        found = [each.replace(f"{{{name}}}", word) for each in found for word in words.get(name, ("nothing", HIDDEN))]
    return found


def wanted(name: str) -> dict:
    return {
        "name": name,
        "description": "Count the words of a text",
        "priority": "medium",
        "requested_by": "fullsend",
        "inputs": [{"name": "text", "type": "string", "description": "What to count in", "required": True}],
        "outputs": [{"name": "words", "type": "integer"}],
        "examples": [{"input": {"text": "one two"}, "output": {"words": 2}}],
    }


BODIES = {
    "invokeTool": [{"args": {"city": "Oslo"}}],
    "callTool": [{"name": name} for name in NAMES],
    "explainCall": [{"name": name} for name in NAMES],
    "openSession": [{"mode": "text"}],
    "nextTurn": [{}],
    "decideApproval": [{"decision": "approve"}],
    "fileRequest": [{"request": wanted(name)} for name in ("classified", "other")],
}


class TwoWorlds:
    """The same project twice, once with tools that the limited caller may not see."""

    def __init__(self, full, bare) -> None:
        self.worlds = {"full": full, "bare": bare}
        self.tokens: dict[str, str] = {}
        self.secrets: dict[str, dict[str, str]] = {}

    async def stock(self) -> None:
        for name, world in self.worlds.items():
            await world.with_bundle(OPEN, slug="public")
            await world.with_tool("echo", tags=["shown"])
            await world.with_tool("both", tags=["shown"])
            for published in (open_note, open_prompt):
                world.crib.publications.add(published)
            asked = await world.crib.call(Call(name="asks", caller="somebody", consent=Consent.PERSON))
            self.secrets[name] = {
                "APPROVAL": "f" * 32,
                "REQUEST": "req_none_such",
                "SHOWN": asked.error.details["approval"],
            }
        await self._hide(self.worlds["full"])

    async def _hide(self, world) -> None:
        await world.with_bundle(SECRET, slug="hushhush", description="All that is classified.")
        await world.with_tool("classified-echo", bundle_id=SECRET, description="A classified echo.")
        await world.with_tool("both", bundle_id=SECRET, description="A classified twin.")
        for published in (classified_note, classified_notes, hush):
            world.crib.publications.add(published)
        asked = await world.crib.call(Call(name="classified", caller="somebody", consent=Consent.PERSON))
        filed = world.crib.requests.new(wanted("classified_request"))
        self.secrets["full"] |= {"APPROVAL": asked.error.details["approval"], "REQUEST": filed.filed.id}
        called = await world.client.post("/call/classified_file", {})
        assert called.status == 200, called.raw

    def limit(self, **limits) -> None:
        for name, world in self.worlds.items():
            self.tokens[name] = world.crib.tokens.create("agent", SCOPES, view=make_view(**limits))[1]

    async def ask(self, name, method, path, body=None, **headers):
        secrets = self.secrets[name]
        path = path.replace("APPROVAL", secrets["APPROVAL"]).replace("REQUEST", secrets["REQUEST"])
        given = {"authorization": f"Bearer {self.tokens[name]}", "x-request-id": "same", **headers}
        client = self.worlds[name].client
        if path.endswith("/events"):
            reply = await self._begin(client, method, path, given)
        else:
            reply = await client.ask(method, path, body, headers=given)
        text = reply.raw.decode().replace(secrets["APPROVAL"], "APPROVAL").replace(secrets["REQUEST"], "REQUEST")
        return reply.status, text.replace(secrets["SHOWN"], "SHOWN")

    async def _begin(self, client, method, path, headers):
        """The first pieces of a stream, which goes on until the client leaves."""
        heard: list[bytes] = []
        gone = asyncio.Event()

        async def receive():
            if not heard:
                heard.append(b"")
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        asyncio.get_running_loop().call_later(0.6, gone.set)
        return await client.ask(method, path, headers=headers, receive=receive)

    async def compare(self, method, path, body=None, **headers) -> str:
        full = await self.ask("full", method, path, body, **headers)
        bare = await self.ask("bare", method, path, body, **headers)
        assert (full[0], plain(full[1])) == (bare[0], plain(bare[1])), f"{method} {path} {body}"
        if HIDDEN not in json.dumps([path, body]):
            assert HIDDEN not in full[1].lower(), f"{method} {path} {body}"
        return full[1]


def plain(text: str) -> str:
    """A text without what differs between any two answers: times, ids, scores, digests, and the folder of the project."""
    if text.startswith("# HELP"):
        kept = [line for line in text.splitlines() if line.startswith("toolcrib_calls_total")]
        return "\n".join(kept)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(
        r'"(id|digest|nextPageToken|etag|mcp-session-id|contentHash|requestState)":"[^"]*"', r'"\1":"ID"', text
    )
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)
    # Before the ids: a duration may have as many digits as one.
    text = re.sub(r'(durationMs|score|order|ttlMs)":[\d.e-]+', r'\1":0', text)
    return re.sub(r"\b[0-9a-f]{12,}(-\d+)?\b", "ID", text)


@pytest.fixture
async def two(make_world, tmp_path):
    """Both worlds, stocked."""
    for name in ("full", "bare"):
        # Before anything lists them: on a slow machine the next listing of all files may be seconds away.
        folder = tmp_path / name / "tools"
        folder.mkdir(parents=True)
        (folder / "open_file.py").write_text(FILE.format("Open", "open_file"))
        (tmp_path / name / "toolcrib.toml").write_text("[requests]\nmissing = true\n")
    (tmp_path / "full" / "tools" / "classified_file.py").write_text(FILE.format("Classified", "classified_file"))
    (tmp_path / "full" / "tools" / "broken_classified.py").write_text("def classified_broken(")
    worlds = TwoWorlds(
        make_world(near, asks, classified, root=tmp_path / "full"), make_world(near, asks, root=tmp_path / "bare")
    )
    await worlds.stock()
    return worlds


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
async def test_every_endpoint_answers_as_if_other_tools_did_not_exist(two, limits):
    two.limit(**limits)
    asked = 0
    for table in registered_tables(two.worlds["full"].crib.plugins):
        for endpoint in table.endpoints:
            if endpoint.scope is Scope.MANAGE or table.tag == "mcp":
                continue
            queries = [""]
            for parameter in endpoint.query:
                words = (*NAMES, OPEN, SECRET, "true", "1", "all")
                queries += [f"?{parameter.name}={word.replace('@', '%40')}" for word in words]
            if endpoint.name == "readMetrics":
                await two.compare("POST", "/call/near", {})
            for path in (each for name in endpoint.names for each in fill_in(name)):
                first, *others = BODIES.get(endpoint.name, [None if endpoint.body is None else endpoint.body.example])
                # Not each query with each body: an endpoint reads the tool from its path and query, or from its body.
                for query, body in [*((query, first) for query in queries), *(("", body) for body in others)]:
                    await two.compare(endpoint.method, path + query, body)
                    asked += 1
    assert asked > 100


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
async def test_a_limited_caller_manages_nothing(two, limits):
    two.limit(**limits)
    with pytest.raises(ToolError, match="a token that is limited to tools may not manage them"):
        two.worlds["full"].crib.tokens.create("agent", (*SCOPES, "manage"), view=make_view(**limits))
    for table in registered_tables(two.worlds["full"].crib.plugins):
        for endpoint in (each for each in table.endpoints if each.scope is Scope.MANAGE):
            for path in fill_in(endpoint.path):
                status, _ = await two.ask("full", endpoint.method, path, {})
                assert status == 403, (endpoint.method, path)


def mcp_params() -> dict[str, list[dict]]:
    return {
        "server/discover": [{}],
        "ping": [{}],
        "tools/list": [{}],
        "tools/call": [
            *({"name": name, "arguments": {}} for name in NAMES),
            *({"name": "call_tool", "arguments": {"name": name}} for name in NAMES),
            *({"name": "describe_tool", "arguments": {"name": name}} for name in NAMES),
            {"name": "search_tools", "arguments": {"query": "work on a file"}},
            {"name": "search_tools", "arguments": {"query": "classified"}},
            {"name": "request_tool", "arguments": {"request": "tool_name: classified"}},
            {"name": "watch_request", "arguments": {"id": "missing", "seconds": 0}},
        ],
        "resources/list": [{}],
        "resources/templates/list": [{}],
        "resources/read": [
            *({"uri": f"crib://tools/{name}/document"} for name in NAMES),
            *({"uri": uri} for uri in ("hush://classified", "hush://x/note", "open://everything")),
        ],
        "resources/subscribe": [{"uri": "crib://tools/classified/document"}],
        "resources/unsubscribe": [{"uri": "crib://tools/classified/document"}],
        "prompts/list": [{}],
        "prompts/get": [{"name": name} for name in ("tools-text", "tools-voice", "hush", "open_prompt")],
        "completion/complete": [
            {"ref": reference, "argument": {"name": name, "value": value}}
            for reference, name in (
                ({"type": "ref/resource", "uri": "crib://tools/{tool}/document"}, "tool"),
                ({"type": "ref/resource", "uri": "hush://{what}/note"}, "what"),
                ({"type": "ref/resource", "uri": "open://{what}"}, "what"),
                ({"type": "ref/prompt", "name": "hush"}, "tone"),
                ({"type": "ref/prompt", "name": "open_prompt"}, "tone"),
            )
            for value in ("", "c")
        ],
        "logging/setLevel": [{"level": "info"}],
        "subscriptions/listen": [],
    }


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("list_limit", [100, 1])
async def test_every_method_of_mcp_answers_as_if_other_tools_did_not_exist(two, limits, list_limit, monkeypatch):
    for world in two.worlds.values():
        monkeypatch.setitem(world.crib.settings["mcp"].__dict__, "list_limit", list_limit)
        monkeypatch.setitem(world.crib.settings["approvals"].__dict__, "wait_seconds", 0)
        world.client.app = local_app(world.crib)
    two.limit(**limits)
    said = mcp_params()
    assert set(said) == STATELESS_METHODS | SESSION_METHODS, "say in this test what the new method takes"
    meta = {"_meta": {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}}
    for method in sorted(STATELESS_METHODS):
        for params in said[method]:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **meta}}
            name = params.get("name") or params.get("uri")
            headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            headers |= {"mcp-name": name} if name else {}
            await two.compare("POST", "/mcp", body, accept="application/json, text/event-stream", **headers)
    for method in sorted(SESSION_METHODS):
        for params in said[method]:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            for name in two.worlds:
                two.secrets[name]["session"] = await open_session(two, name)
            full, bare = [
                await two.ask(
                    name,
                    "POST",
                    "/mcp",
                    body,
                    accept="application/json, text/event-stream",
                    **{"mcp-session-id": two.secrets[name]["session"], "mcp-protocol-version": "2025-11-25"},
                )
                for name in ("full", "bare")
            ]
            assert plain(full[1]) == plain(bare[1]), (method, params)
            assert HIDDEN in json.dumps(params) or HIDDEN not in full[1].lower(), (method, params)


async def open_session(two, name) -> str:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"authorization": f"Bearer {two.tokens[name]}"}
    reply = await two.worlds[name].client.post("/mcp", body, headers=headers)
    return reply.headers["mcp-session-id"]


async def test_a_tool_that_is_shown_can_be_called_in_every_way(two):
    two.limit(bundles=["public"])
    answer = json.loads(await two.compare("POST", "/call/both", {"city": "Oslo"}))
    assert (answer["ok"], answer["value"]) == (True, {"city": "Oslo"})
    place = f"/tools/bundles/{OPEN}/tools/both/version/v1/invoke"
    assert json.loads(await two.compare("POST", place, {"args": {"city": "Oslo"}}))["ok"] is True
    listed = json.loads(await two.compare("GET", "/tools"))["tools"]
    assert sorted(each["slug"] for each in listed) == ["both", "echo"]


async def test_an_approval_is_decided_by_a_limited_caller_only_for_a_tool_it_sees(two):
    two.limit(tags=["shown"])
    shown = two.secrets["full"]["SHOWN"]
    status, _ = await two.ask("full", "POST", f"/approvals/{shown}", {"decision": "approve"})
    assert status == 200
    status, text = await two.ask("full", "POST", "/approvals/APPROVAL", {"decision": "approve"})
    assert (status, "there is no approval" in text) == (404, True)


async def test_a_tool_calls_others_only_within_the_view_of_its_caller(make_world):
    async def outer(context, name: str) -> str:
        """Call another tool."""
        result = await context.call(name)
        return str(result.value) if result.ok else str(result.error)

    from toolcrib import Context

    outer.__annotations__["context"] = Context
    world = make_world(tool(outer), near, classified)
    _, token = world.crib.tokens.create("agent", ("invoke",), view=make_view(tools=["outer", "near"]))
    headers = {"authorization": f"Bearer {token}"}
    reached = await world.client.post("/call/outer", {"name": "near"}, headers=headers)
    refused = await world.client.post("/call/outer", {"name": "classified"}, headers=headers)
    assert reached.json["value"] == ""
    assert "Tool 'classified' not found" in refused.json["value"]


async def test_a_file_in_the_sandbox_calls_others_only_within_the_view_of_its_caller(make_world, tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "outer.py").write_text(
        '__requires__ = ["rye.execute"]\nimport rye\n\n\n'
        'def outer(name: str) -> str:\n    """Call another tool."""\n    return str(rye.execute(name))\n'
    )
    world = make_world(near, classified, root=tmp_path, grants={"outer": ["rye.execute"]})
    _, token = world.crib.tokens.create("agent", ("invoke",), view=make_view(tools=["outer", "near"]))
    headers = {"authorization": f"Bearer {token}"}
    assert (await world.client.post("/call/outer", {"name": "near"}, headers=headers)).json["ok"] is True
    for name in ("classified", "host/classified", "host/classified@1.0.0"):
        refused = await world.client.post("/call/outer", {"name": name}, headers=headers)
        assert refused.json["error"]["type"] == "NOT_FOUND", name
        assert f"Tool '{name}' not found" in refused.json["error"]["message"]


async def test_the_loopback_caller_is_limited_by_the_settings_of_the_server(make_world):
    world = make_world(near, classified, server={"tools": ["near"]})
    assert (await world.client.post("/call/near", {})).json["ok"] is True
    refused = await world.client.post("/call/classified", {})
    assert (refused.status, "classified" in (await world.client.get("/crib/tools")).raw.decode()) == (404, False)
    assert (await world.client.put(world.bundle_path(), world.bundle_body())).status == 403


async def test_mcp_clients_without_a_token_are_limited_by_both_tables(make_world):
    world = make_world(
        near, asks, classified, server={"tools": ["near", "asks"]}, mcp={"tools": ["near", "classified"]}
    )
    meta = {"_meta": {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": meta}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    listed = (await world.client.post("/mcp", body, headers=headers)).json["result"]["tools"]
    assert [each["name"] for each in listed] == ["near"]


async def test_an_empty_limit_shows_nothing(make_world):
    world = make_world(near, server={"tools": []})
    assert (await world.client.get("/crib/tools")).json["tools"] == []


async def test_calls_of_a_caller_with_a_mode_are_made_in_it(make_world):
    @tool(modes={"voice"})
    def speak() -> str:
        """Speak."""
        return "spoken"

    @tool(modes={"text"})
    def write() -> str:
        """Write."""
        return "written"

    world = make_world(speak, write)
    _, token = world.crib.tokens.create("phone", ("invoke", "read"), view=make_view(mode="voice"))
    headers = {"authorization": f"Bearer {token}"}
    assert (await world.client.post("/call/speak", {}, headers=headers)).json["value"] == "spoken"
    assert (await world.client.post("/call/write", {}, headers=headers)).status == 404
    other = await world.client.post("/call/speak", headers={**headers, "Toolcrib-Mode": "text"})
    assert "makes its calls in voice mode" in other.json["detail"]


async def test_a_public_endpoint_sees_no_tool(make_world):
    seen = []
    world = make_world(near)

    class Probe:
        async def __call__(self, scope, receive, send) -> None:
            seen.append(world.crib.tools)

    app = local_app(world.crib)
    app._layers = Probe()
    with pytest.raises(ValueError, match="unpack"):
        await type(world.client)(app).get("/healthz")
    assert seen == [()]


async def test_one_caller_does_not_leave_its_limits_to_the_next(make_world, monkeypatch):
    # A busy machine may need longer than a client waits.
    monkeypatch.setattr("toolcrib.interfaces.http.server_state.FIRST_FINDING_SECONDS", 25.0)
    world = make_world(near, classified)
    _, token = world.crib.tokens.create("agent", ("read",), view=make_view(tools=["near"]))
    (world.root / "tools").mkdir()
    (world.root / "tools" / "broken.py").write_text("def classified_broken(")
    limited = await world.client.get("/crib/health", headers={"authorization": f"Bearer {token}"})
    whole = await world.client.get("/crib/health")
    assert limited.json["problems"] == []
    assert "broken.py" in "".join(whole.json["problems"])
    assert {each["name"] for each in (await world.client.get("/crib/tools")).json["tools"]} >= {"near", "classified"}


async def test_both_views_must_show_a_tool(make_world):
    crib = make_world(near, classified).crib
    view = both(make_view(tools=["near", "classified"]), make_view(tags=["shown"]))
    assert [view.shows(crib.find(name).tool) for name in ("near", "classified")] == [True, False]


@pytest.mark.parametrize("document", [{}, [], {"tools": "x"}, {"tools": ["x"], "more": 1}, {"mode": 3}, {"tools": [3]}])
def test_stored_limits_that_cannot_be_read_open_nothing(document):
    with pytest.raises((ValueError, ToolError)):
        read_view(document)


def test_limits_are_stored_as_they_were_given():
    view = make_view(tools=["near", "a/*"], bundles=["b_c"], tags=["T"], mode="text")
    assert view == ToolView(
        tools=frozenset({"near", "a/*"}), bundles=frozenset({"b_c"}), tags=frozenset({"t"}), mode="text"
    )
    assert read_view(view.to_json()) == view


async def test_resources_and_prompts_are_limited_like_tools(make_world):
    spoken = prompt(name="spoken", modes={"voice"})(lambda _: "spoken")
    filed = resource("files://all", name="files", bundle="archive")(lambda _: "files")
    crib = make_world(near).crib
    for published in (open_note, open_prompt, classified_note, hush, spoken, filed):
        crib.publications.add(published)

    def seen(**limits) -> list[str]:
        with seen_through(make_view(**limits)):
            found = [*crib.publications.resources(), *crib.publications.prompts()]
            return sorted(each.name for each in found)

    everything = ["classified_note", "files", "hush", "open_note", "open_prompt", "spoken"]
    assert seen() == everything
    assert seen(tags=["shown"]) == ["open_note", "open_prompt"]
    assert seen(tools=["near"]) == []
    assert seen(tools=["open-note", "archive/*"]) == ["files", "open_note"]
    assert seen(bundles=["archive"]) == ["files"]
    assert seen(mode="text") == [name for name in everything if name != "spoken"]
    assert seen(bundles=["host"], tags=["shown"], mode="voice") == ["open_note", "open_prompt"]


def test_a_mode_that_there_is_not_is_refused():
    with pytest.raises(ToolError, match="the modes are text and voice"):
        prompt(name="x", modes={"loud"})(lambda _: "")


async def test_a_caller_with_a_mode_is_offered_the_prompt_of_that_mode(make_world):
    world = make_world(near, mcp={"mode": "voice"})
    meta = {"_meta": {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": meta}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "prompts/list"}
    listed = (await world.client.post("/mcp", body, headers=headers)).json["result"]["prompts"]
    assert [each["name"] for each in listed] == ["tools-voice"]


def test_a_limit_to_a_bundle_shows_none_that_is_called_nearly_so():
    tools = [replace(tool_of(near), bundle=bundle) for bundle in ("my_tools", "my-tools")]
    for limits in ({"bundles": ["my_tools"]}, {"tools": ["my_tools/*"]}, {"tools": ["my_tools/near"]}):
        view = read_view(make_view(**limits).to_json())
        assert [view.shows(each) for each in tools] == [True, False], limits
        published = [view.shows_published("near", each.bundle, (), None) for each in tools]
        assert published == [True, False], limits
    assert make_view(tools=["my_tools/open_file"]) == make_view(tools=["my_tools/open-file"])
