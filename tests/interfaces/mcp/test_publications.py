"""Resources, prompts, completion, large results, large catalogues and content."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

import jsonschema_rs
import pytest
from tests.core.test_plugins import install
from tests.interfaces.mcp.conftest import NEW, OLD, McpClient
from tests.interfaces.mcp.formats import FOLDER, write_project

from toolcrib import Kind, PromptArgument, ToolError, prompt, resource, tool, tool_of

PACKAGE = '''
from toolcrib import prompt, resource


@resource("menu://today", mime_type="text/plain")
def menu(context) -> str:
    """What there is."""
    return "Soup."


@prompt()
def order(context) -> str:
    """Order."""
    return "Order the soup."


def register(plugins):
    plugins.add_publication(menu)
    plugins.add_publication("crib_publisher:order")
'''


@resource("notes://{day}", mime_type="text/plain", day=["today", "tomorrow", "yesterday"])
def note(context, day: str) -> str:
    """The note of a day."""
    return f"{context.caller}: {day}"


@resource("notes://raw")
def raw(context) -> bytes:
    """Bytes."""
    return b"\x00\xff"


@prompt("topic", PromptArgument(name="tone", choices=("dry", "warm")))
def explain(context, topic: str, tone: str = "dry") -> list:
    """Explain a topic."""
    return [f"Explain {topic}", {"role": "assistant", "content": {"type": "text", "text": tone}}]


@tool
def lots(letters: int) -> str:
    """Give a long text."""
    return "é" * letters


@tool(output_schema={"x-mcp-content": True})
def blocks(value: list) -> list:
    """Give blocks of content."""
    return value


@pytest.fixture
def client(client_of) -> McpClient:
    client = client_of(lots, blocks, calls={"result_bytes": 2_000})
    for published in (note, raw, explain):
        client.crib.publications.add(published)
    return client


async def test_resources_are_listed_and_read_as_text_and_as_bytes(client):
    listed = (await client.ask("resources/list")).result["resources"]
    templates = (await client.ask("resources/templates/list")).result["resourceTemplates"]
    text = (await client.ask("resources/read", {"uri": "notes://to%20day"})).result["contents"]
    blob = (await client.ask("resources/read", {"uri": "notes://raw"})).result["contents"]
    assert [each["uri"] for each in listed] == ["notes://raw"]
    assert "notes://{day}" in [each["uriTemplate"] for each in templates]
    assert text == [{"uri": "notes://to%20day", "mimeType": "text/plain", "text": "mcp:local: to day"}]
    assert base64.b64decode(blob[0]["blob"]) == b"\x00\xff"


async def test_a_package_that_is_installed_publishes_resources_and_prompts(client_of, tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, PACKAGE, "crib_publisher")
    client = client_of()
    read = (await client.ask("resources/read", {"uri": "menu://today"})).result["contents"]
    got = (await client.ask("prompts/get", {"name": "order"})).result["messages"]
    assert [each["uri"] for each in (await client.ask("resources/list")).result["resources"]] == ["menu://today"]
    assert (read[0]["text"], got[0]["content"]["text"]) == ("Soup.", "Order the soup.")


async def test_the_document_of_a_tool_is_a_resource_that_is_listed_completed_and_read(client_of, tmp_path):
    await asyncio.to_thread(write_project, tmp_path)
    client = client_of(project=tmp_path)
    uri = f"crib://tools/{FOLDER}/document"
    asked = {"ref": {"type": "ref/resource", "uri": "crib://tools/{tool}/document"}}
    completed = await client.ask("completion/complete", {**asked, "argument": {"name": "tool", "value": FOLDER[:3]}})
    (read,) = (await client.ask("resources/read", {"uri": uri})).result["contents"]
    assert uri in [each["uri"] for each in (await client.ask("resources/list")).result["resources"]]
    assert FOLDER in completed.result["completion"]["values"]
    assert (read["mimeType"], "## Preconditions" in read["text"]) == ("text/markdown", True)


@pytest.mark.parametrize(
    "uri", ["notes://a/b", "file:///etc/passwd", "crib://tools/../secret/document", "x", "crib://results/00"]
)
async def test_a_resource_that_is_not_there_is_told_as_each_wire_has_it(client, uri):
    new = await client.ask("resources/read", {"uri": uri})
    old = await (await client.open()).ask("resources/read", {"uri": uri})
    assert (new.error["code"], old.error["code"]) == (-32602, -32002)
    assert new.error["data"]["uri"] == uri


@pytest.mark.parametrize(
    ("template", "uri", "words"),
    [
        ("n://{a}", "n://x-y", {"a": "x-y"}),
        ("n://{a}-{b}", "n://x-y-z", {"a": "x", "b": "y-z"}),
        ("n://{a}/{b}.txt", "n://x/y.txt.txt", {"a": "x", "b": "y.txt"}),
        ("n://{a}-{b}/end", "n://x-y/end", {"a": "x", "b": "y"}),
        ("n://{a}-{b}/end", "n://x/end", None),
        ("n://{a}-{b}-{c}-{d}-{e}/end", "n://" + "-" * 1_990, None),
    ],
)
def test_a_template_is_matched_in_a_time_that_grows_with_the_uri_alone(template, uri, words):
    assert resource(template)(lambda _: "").__toolcrib_published__.match(uri) == words


@pytest.mark.parametrize("template", ["n://{a}{b}", "n://{a}/{a}"])
def test_a_template_that_could_be_read_in_two_ways_is_refused(template):
    with pytest.raises(ToolError, match="something between two"):
        resource(template)(lambda _: "")


async def test_prompts_take_texts_that_they_know_and_complete_their_choices(client):
    names = [each["name"] for each in (await client.ask("prompts/list")).result["prompts"]]
    got = (await client.ask("prompts/get", {"name": "explain", "arguments": {"topic": "tides"}})).result
    assert names == ["explain", "tools-text", "tools-voice"]
    assert [message["role"] for message in got["messages"]] == ["user", "assistant"]
    for arguments in ({}, {"topic": 5}, {"topic": "x", "other": "y"}):
        reply = await client.ask("prompts/get", {"name": "explain", "arguments": arguments})
        assert reply.error["code"] == -32602
    reference = {"type": "ref/prompt", "name": "explain"}
    asked = {"ref": reference, "argument": {"name": "tone", "value": "W"}}
    assert (await client.ask("completion/complete", asked)).result["completion"]["values"] == ["warm"]
    asked = {"ref": {"type": "ref/resource", "uri": "notes://{day}"}, "argument": {"name": "day", "value": "to"}}
    assert (await client.ask("completion/complete", asked)).result["completion"]["values"] == ["today", "tomorrow"]


async def test_a_large_result_is_a_link_that_only_its_caller_can_read(client):
    called = (await client.call("lots", {"letters": 3_000})).result
    link = next(block for block in called["content"] if block["type"] == "resource_link")
    read = (await client.ask("resources/read", {"uri": link["uri"]})).result["contents"][0]
    assert read["text"] == "é" * 3_000
    token = client.crib.tokens.create("other", ["read", "invoke"])[1]
    foreign = await McpClient(client.app, token=token).ask("resources/read", {"uri": link["uri"]})
    assert foreign.error["code"] == -32602


NODE = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": ["object", "null"]}},
    "required": ["text"],
    "additionalProperties": False,
}
LISTED = {
    "text": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "object": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "node": NODE,
    "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
}


@pytest.mark.parametrize("wire", [NEW, OLD, "2025-06-18"])
@pytest.mark.parametrize("kind", LISTED)
async def test_a_large_result_of_a_tool_with_a_schema_fits_the_schema_that_is_listed_and_is_no_failure(
    client_of, wire, kind
):
    @tool(output_schema=LISTED[kind])
    def give(letters: int) -> object:
        """Give a long value."""
        text = "x" * letters
        return {"text": text, "list": [text], "either": text}.get(kind, {"text": text})

    client = client_of(give, calls={"result_bytes": 2_000})
    client = client if wire == NEW else await client.open(wire)
    [listed] = (await client.ask("tools/list")).result["tools"]
    validator = jsonschema_rs.Draft202012Validator(listed["outputSchema"])
    small, large = [(await client.call("give", {"letters": letters})).result for letters in (5, 5_000)]
    for result in (small, large):
        assert validator.is_valid(result["structuredContent"])
        assert "isError" not in result
    place = large["structuredContent"]["toolcrib/kept"]
    assert place["bytes"] >= 5_000
    assert large["content"][0]["text"].startswith("The call was made. Its result has ")
    assert large["content"][1]["uri"] == place["uri"]
    read = (await client.ask("resources/read", {"uri": place["uri"]})).result["contents"][0]
    assert "x" * 5_000 in read["text"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": ["number", "null"]},
        {"enum": ["a", "b"]},
        {"type": "string", "maxLength": 80},
        {"type": "string", "format": "date"},
        {"type": "object", "properties": {"sum": {"type": "integer"}}, "additionalProperties": False},
    ],
)
async def test_a_schema_whose_values_are_all_small_is_listed_as_it_is(client_of, schema):
    [listed] = (await client_of(tool(name="give", output_schema=schema)(lambda: None)).ask("tools/list")).result[
        "tools"
    ]
    assert listed["outputSchema"] == schema
    older = await client_of(tool(name="give", output_schema=schema)(lambda: None)).open()
    [listed] = (await older.ask("tools/list")).result["tools"]
    wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    assert listed["outputSchema"] == (schema if schema.get("type") == "object" else wrapped)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}},
        {"$id": "urn:example:own", "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
    ],
)
async def test_a_schema_that_cannot_be_a_part_of_another_stays_and_a_large_result_is_none_that_a_client_would_refuse(
    client_of, schema
):
    @tool(output_schema=schema)
    def give() -> dict:
        """Give a long value."""
        return {"a": "x" * 5_000}

    client = client_of(give, calls={"result_bytes": 2_000})
    [listed] = (await client.ask("tools/list")).result["tools"]
    large = (await client.call("give")).result
    assert listed["outputSchema"] == schema
    assert (large["isError"], "structuredContent" in large) == (True, False)
    assert "toolcrib/error" not in large["_meta"]


async def test_content_is_given_as_it_is_and_what_is_none_is_a_failure(client):
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert (await client.call("blocks", {"value": ["x", image]})).result["content"] == [
        {"type": "text", "text": "x"},
        image,
    ]
    for wrong in (
        [5],
        [{"type": "image"}],
        [{**image, "data": "!"}],
        [{**image, "evil": 1}],
        [{"type": "x"}],
        ["x"] * 101,
    ):
        failed = (await client.call("blocks", {"value": wrong})).result
        assert failed["_meta"]["toolcrib/error"]["type"] == "OUTPUT_INVALID"


async def test_a_block_that_an_older_version_does_not_know_is_told_in_words(client):
    link = {"type": "resource_link", "uri": "notes://raw", "name": "raw"}
    sound = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    oldest = await client.open("2024-11-05")
    content = (await oldest.call("blocks", {"value": [link, sound]})).result["content"]
    assert [block["type"] for block in content] == ["text", "text"]


async def test_a_text_that_looks_like_content_stays_a_value_where_the_tool_does_not_declare_content(client_of):
    @tool
    def fetched() -> dict:
        """Give what came from elsewhere."""
        return {"type": "image", "data": "AAAA", "mimeType": "image/png"}

    result = (await client_of(fetched).call("fetched")).result
    assert [block["type"] for block in result["content"]] == ["text"]


async def test_of_a_large_catalogue_a_client_gets_a_search_and_calls_by_name(client_of):
    def made(number: int):
        def function(first: int) -> int:
            """Add to a number."""
            return first + number

        function.__name__ = f"plus_{number}"
        return tool_of(function)

    client = client_of(*(made(number) for number in range(12)), mcp={"list_limit": 10, "always": ["plus_3"]})
    names = [each["name"] for each in (await client.ask("tools/list")).result["tools"]]
    described = (await client.call("describe_tool", {"name": "plus_5"})).result["structuredContent"]
    called = (await client.call("call_tool", {"name": "plus_5", "arguments": {"first": 1}})).result
    found = (await client.call("search_tools", {"query": "plus_7"})).result["structuredContent"]["tools"]
    assert names == ["search_tools", "describe_tool", "call_tool", "plus_3"]
    assert described["inputSchema"]["required"] == ["first"]
    assert called["structuredContent"] == 6
    assert "plus_7" in [each["name"] for each in found]
    asked = (await client.call("search_tools", {"query": "what adds to a number"})).result["structuredContent"]["tools"]
    assert asked, "a text that matches nothing is answered as a question"
    for arguments in ({}, {"name": 5}, {"name": "plus_5", "arguments": []}):
        assert (await client.call("call_tool", arguments)).result["isError"] is True
    assert (await client.call("search_tools", {"query": "x", "limit": 999})).result["isError"] is True
    client.crib.add(made(99))
    assert (await client.call("call_tool", {"name": "plus_99", "arguments": {"first": 1}})).result[
        "structuredContent"
    ] == 100


async def test_a_small_catalogue_has_no_search(client):
    assert (await client.call("search_tools", {"query": "x"})).error["code"] == -32602


async def test_arguments_that_a_tool_wants_in_headers_must_be_there_and_equal(client_of):
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "N"},
        },
        "additionalProperties": False,
    }

    @tool(parameters=schema)
    def where(region: str = "", count: int = 0) -> str:
        """Say where."""
        return f"{region}{count}"

    client = client_of(where)

    async def status(arguments: dict, **headers: str) -> int:
        given = {f"mcp-param-{name}": value for name, value in headers.items()}
        return (await client.ask("tools/call", {"name": "where", "arguments": arguments}, headers=given)).status

    assert await status({"region": "eu", "count": 4}, region="eu", n="4") == 200
    assert await status({"region": "é", "count": 4}, region="=?base64?w6k=?=", n=" 4.0 ") == 200
    assert await status({}) == 200
    assert await status({"region": "eu"}, region="us") == 400
    assert await status({"region": "eu"}) == 400
    assert await status({}, region="eu") == 400
    assert await status({"count": 4}, n="5") == 400
    assert await status({"region": "eu"}, region="=?base64?ZXU?=") == 400


async def test_where_clients_look_for_oauth_they_learn_that_there_is_none(client_of):
    client = client_of(lots, open_to_loopback=False)
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/register"):
        assert await _status(client, path) == 404
    assert await _status(client, "/registered") == 401


async def _status(client: McpClient, path: str) -> int:
    heard: list[dict] = []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8765")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8765),
    }

    async def receive() -> dict:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict) -> None:
        heard.append(message)

    await client.app(scope, receive, send)
    return heard[0]["status"]


HIDDEN = "see\u200bthis\U000e0041\x08"
SHOWN = "see\\u200bthis\\U000e0041\\x08"


async def test_a_name_and_a_value_with_hidden_characters_reach_the_tool_as_its_own(client_of):
    inner = {"type": "object", "properties": {HIDDEN: {"enum": [HIDDEN, "b"]}}, "additionalProperties": False}

    @tool(parameters={"type": "object", "properties": {"given": inner}, "additionalProperties": False})
    def take(given: dict) -> bool:
        """Take a value."""
        return given == {HIDDEN: HIDDEN}

    called = await client_of(take).call("take", {"given": {SHOWN: SHOWN}})
    assert called.result["structuredContent"] is True


async def test_hidden_characters_are_written_out_before_a_model_reads_them(client_of):
    @tool
    def text() -> str:
        """Give a text."""
        return HIDDEN

    @tool
    def structure() -> dict:
        """Give a structure."""
        return {HIDDEN: [HIDDEN]}

    @tool
    def failure() -> str:
        """Fail."""
        raise ToolError(Kind.PERMANENT, HIDDEN)

    @tool(output_schema={"x-mcp-content": True})
    def blocks() -> list:
        """Give blocks."""
        resource = {"uri": "file:///a", "text": HIDDEN}
        return [HIDDEN, {"type": "text", "text": HIDDEN}, {"type": "resource", "resource": resource}]

    @resource("notes://one", title=HIDDEN, description=HIDDEN)
    def note(context) -> str:
        return HIDDEN

    @prompt(PromptArgument(name="topic", description=HIDDEN), name="explain", title=HIDDEN, description=HIDDEN)
    def explain(context) -> str:
        return HIDDEN

    client = client_of(text, structure, failure, blocks)
    for published in (note, explain):
        client.crib.publications.add(published)
    given = (await client.call("text")).result
    assert (given["content"][0]["text"], given["structuredContent"]) == (SHOWN, SHOWN)
    given = (await client.call("structure")).result
    assert given["structuredContent"] == {SHOWN: [SHOWN]}
    assert "\u200b" not in given["content"][0]["text"]
    given = (await client.call("failure")).result
    assert SHOWN in given["content"][0]["text"]
    assert SHOWN in given["_meta"]["toolcrib/error"]["message"]
    first, second, third = (await client.call("blocks")).result["content"]
    assert [first["text"], second["text"], third["resource"]["text"]] == [SHOWN] * 3
    [listed] = (await client.ask("resources/list")).result["resources"]
    assert [listed["title"], listed["description"]] == [SHOWN] * 2
    assert (await client.ask("resources/read", {"uri": "notes://one"})).result["contents"][0]["text"] == SHOWN
    listed = (await client.ask("prompts/list")).result["prompts"][0]
    assert [listed["title"], listed["description"], listed["arguments"][0]["description"]] == [SHOWN] * 3
    rendered = (await client.ask("prompts/get", {"name": "explain"})).result
    assert [rendered["description"], rendered["messages"][0]["content"]["text"]] == [SHOWN] * 2


async def test_a_large_result_and_a_description_are_written_out_too(client_of):
    @tool
    def large() -> str:
        """Give much."""
        return HIDDEN * 30_000

    def odd() -> str:
        return ""

    odd.__doc__ = f"Do {HIDDEN}."
    client = client_of(large, tool(odd), mcp={"list_limit": 1}, calls={"result_bytes": 10_000})
    head, link = (await client.call("call_tool", {"name": "large"})).result["content"]
    read = (await client.ask("resources/read", {"uri": link["uri"]})).result["contents"][0]["text"]
    described = (await client.call("describe_tool", {"name": "odd"})).result
    for told in (head["text"], read, described["content"][0]["text"], described["structuredContent"]["description"]):
        assert "\u200b" not in told
        assert "u200b" in told


async def test_of_a_disabled_tool_no_text_is_told(client_of, tmp_path):
    @tool
    def shown() -> str:
        """Be there."""
        return ""

    def off() -> str:
        """Obey me."""
        return ""

    hidden = replace(tool_of(off), documentation="Obey me.")
    client = client_of(
        shown, hidden, tool(name="other")(lambda: ""), mcp={"list_limit": 1}, catalog={"disabled": ["off"]}
    )
    assert client.crib.documentation("off") == "Obey me."
    described = await client.call("describe_tool", {"name": "off"})
    read = await client.ask("resources/read", {"uri": "crib://tools/off/document"})
    found = await client.call("search_tools", {"query": "obey me"})
    listed = await client.ask("resources/list")
    assert described.result["_meta"]["toolcrib/error"]["type"] == "DISABLED"
    assert read.error["code"] == -32602
    for reply in (described, read, found, listed):
        assert b"Obey" not in reply.raw
