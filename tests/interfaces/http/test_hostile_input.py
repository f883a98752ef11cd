"""Bodies, paths, tokens and headers of people who mean no good: a reason, a status below 500, and nothing changed."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import tool

DEEP = b'{"a":' * 200 + b"1" + b"}" * 200
VERY_DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "a number": b"1",
    "two values": b"{}{}",
    "a key twice": b'{"isEnabled": true, "isEnabled": false}',
    "NaN": b'{"isEnabled": NaN}',
    "infinity": b'{"isEnabled": -Infinity}',
    "a huge number": b'{"isEnabled": 1e999}',
    "many digits": b'{"isEnabled": ' + b"9" * 5_000 + b"}",
    "deep": DEEP,
    "very deep": VERY_DEEP,
    "no UTF-8": b'{"isEnabled": "\xff"}',
    "UTF-16": '{"isEnabled": true}'.encode("utf-16"),
    "half a character": b'{"isEnabled": "\\ud800"}',
    "a comment": b'{"isEnabled": true} // on',
    "a trailing comma": b'{"isEnabled": true,}',
    "single quotes": b"{'isEnabled': true}",
    "a NUL": b'{"isEnabled": true}\x00',
}
DOORS = ["bundle", "tool", "invoke", "call", "explain", "session"]


def door(world, name: str) -> tuple[str, str]:
    return {
        "bundle": ("PATCH", world.bundle_path()),
        "tool": ("PUT", world.tool_path(version="v2")),
        "invoke": ("POST", f"{world.tool_path()}/invoke"),
        "call": ("POST", "/call/echo"),
        "explain": ("POST", "/crib/explain"),
        "session": ("POST", "/crib/sessions"),
    }[name]


@pytest.fixture
async def filled(world):
    await world.with_bundle()
    await world.with_tool()
    return world


@pytest.mark.parametrize("name", DOORS)
async def test_no_hostile_body_gets_through_any_door(filled, name):
    before = filled.files()
    method, path = door(filled, name)
    for what, raw in BODIES.items():
        if name in {"invoke", "call"} and not raw:  # says that there are no arguments
            continue
        reply = await filled.client.ask(method, path, raw=raw, headers={"content-type": "application/json"})
        assert reply.status == 400, (what, reply.raw[:200])
        assert reply.json["kind"] == "VALIDATION", what
        assert reply.json["detail"], what
    assert filled.files() == before
    assert filled.calls == []


@pytest.mark.parametrize("name", DOORS)
async def test_a_body_beyond_the_limit_is_refused_however_it_comes(make_world, name):
    world = make_world(server={"body_bytes": 2_000})
    await world.with_bundle()
    await world.with_tool()
    method, path = door(world, name)
    large = json.dumps({"args": {"city": "x" * 3_000}}).encode()

    async def nobody_reads():
        raise AssertionError("the body was read")

    announced = {"content-length": str(len(large))}
    told = await world.client.ask(method, path, raw=large, headers=announced, receive=nobody_reads)
    assert (told.status, told.json["kind"]) == (413, "LIMIT_EXCEEDED")
    pieces = iter([large[at : at + 100] for at in range(0, len(large), 100)])
    taken = []

    async def receive():
        taken.append(piece := next(pieces))
        return {"type": "http.request", "body": piece, "more_body": True}

    untold = await world.client.ask(method, path, {}, receive=receive)
    assert untold.status == 413
    assert sum(map(len, taken)) <= 2_100


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
async def test_arguments_that_are_nested_too_deep_are_refused_however_open_the_schema(filled, opening):
    await filled.with_tool("open", argSchema={"type": "object"})
    closing = "]" if opening == "[" else "}"
    for depth, status in ((60, 200), (70, 400), (900, 400), (1_020, 400)):
        raw = f'{{"args": {{"x": {opening * depth}1{closing * depth}}}}}'.encode()
        reply = await filled.client.post(filled.tool_path("open"), raw=raw)
        assert reply.status == status, depth
    assert "nested deeper than 64 levels" in reply.json["detail"]


async def test_equal_keys_are_refused_at_any_depth_and_marks_in_texts_are_not_taken_for_keys(filled):
    await filled.with_tool("open", argSchema={"type": "object"})
    for raw in (
        b'{"args": {"x": {"a": 1, "a": 1}}}',
        b'{"args": {"x": [{"a": "b", "a": "c"}]}}',
        b'{"args": {"a": 1, "\\u0061": 2}}',
        b'{"args": {}, "args": {}}',
        b'{"args": {"x": "\\"", "x": 1}}',
    ):
        reply = await filled.client.post(filled.tool_path("open"), raw=raw)
        assert (reply.status, "stands twice" in reply.json["detail"]) == (400, True), raw
    text = {"x": 'a "b": \\ \n', "y": ['"', '""', "\u2028"]}
    assert (await filled.client.post(filled.tool_path("open"), {"args": text})).json["value"] == text


async def test_a_length_that_no_number_holds_is_refused(filled):
    reply = await filled.client.post(filled.tool_path(), {}, headers={"content-length": "9" * 5_000})
    assert reply.status == 413


async def test_a_body_that_comes_in_pieces_is_whole(filled):
    raw = json.dumps({"args": {"city": "Oslo"}}).encode()
    pieces = [raw[:5], b"", raw[5:]]

    async def receive():
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    reply = await filled.client.post(filled.tool_path(), {}, receive=receive)
    assert reply.json["value"] == {"city": "Oslo"}


@pytest.mark.parametrize(
    "arguments",
    [{"city": 2**64}, {"city": -(2**63) - 1}, {"a": {"b": {"c": [[[2**70]]]}}}],
    ids=["large", "small", "deep"],
)
async def test_an_integer_that_would_not_arrive_unchanged_is_refused(filled, arguments):
    reply = await filled.client.post(filled.tool_path(), {"args": arguments})
    assert reply.status == 400
    assert "64 bit" in reply.json["detail"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://evil.example/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#"},
        {"pattern": "(?<=a)b"},
        {"properties": {"x": {"pattern": "("}}},
        {"allOf": [{"anyOf": [{"type": "object"}] * 50}] * 50},
        {"type": "array"},
        {"enum": 1},
    ],
)
async def test_a_schema_that_could_harm_is_refused_when_it_is_written(filled, schema):
    before = filled.files()
    reply = await filled.client.put(filled.tool_path(version="v2"), filled.go_body(argSchema=schema))
    assert reply.status == 400, reply.raw
    assert filled.files() == before


@pytest.mark.parametrize("field", ["displayName", "description"])
async def test_a_text_with_control_characters_comes_back_as_it_was_or_not_at_all(filled, field):
    text = "a\x00b\x1b[31m\u202e<script>alert(1)</script>"
    reply = await filled.client.put(filled.tool_path(version="v2"), filled.go_body(**{field: text}))
    if reply.status == 201:
        read = await filled.client.get(filled.tool_path(version="v2"))
        assert read.json[field] == text
        assert read.headers["content-type"] == "application/json"
    else:
        assert reply.status == 400


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(token=st.text(st.characters(max_codepoint=0x2FF, exclude_categories=["Cs"]), min_size=1, max_size=200))
async def test_no_made_up_token_is_taken_for_a_page(world, token):
    from urllib.parse import quote

    for path in ("/tools/bundles?", "/tools?", "/tools/search?q=x&"):
        assert (await world.client.get(path, query=path.split("?")[1] + "pageToken=" + quote(token))).status == 400


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.binary(max_size=60),
    method=st.sampled_from(["GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS"]),
    query=st.text(max_size=20),
)
async def test_no_path_of_any_bytes_reaches_the_last_border(world, raw, method, query):
    path = "/tools/bundles/" + "".join(
        f"%{byte:02x}" if byte > 64 else chr(byte) for byte in raw if byte > 32 and byte != 63
    )
    reply = await world.client.ask(
        method, path + "%41", {"isEnabled": True}, query=query.encode("ascii", "ignore").decode()
    )
    assert reply.status < 500


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
        max_leaves=12,
    ),
    name=st.sampled_from(DOORS),
)
async def test_no_json_of_any_shape_reaches_the_last_border(world, body, name):
    method, path = door(world, name)
    assert (await world.client.ask(method, path, body)).status < 500


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    headers=st.dictionaries(
        st.sampled_from(
            [
                "host",
                "origin",
                "authorization",
                "content-type",
                "if-match",
                "if-none-match",
                "x-request-id",
                "content-length",
                "accept",
                "range",
                "expect",
            ]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30),
    )
)
async def test_no_header_reaches_the_last_border(world, headers):
    assert (await world.client.get("/tools/bundles", headers=headers)).status < 500
    assert (await world.client.patch(world.bundle_path(), {"isEnabled": True}, headers=headers)).status < 500


async def test_a_body_of_more_keys_than_guards_can_look_at_is_refused_as_it_is_read(make_world):
    @tool
    def count(values: dict) -> int:
        """Count them."""
        return len(values)

    world = make_world(count)
    for number, status in ((2_000, 200), (50_000, 413)):
        values = {f"k{key}": 1 for key in range(number)}
        reply = await world.client.post("/call/count", {"values": values})
        assert reply.status == status
    assert reply.json["detail"] == "body: its objects have more than 10000 keys; send fewer, or a list"
    texts = await world.client.post("/call/count", {"values": {"a": [":"] * 50_000}})
    assert "keys" not in str(texts.json)
