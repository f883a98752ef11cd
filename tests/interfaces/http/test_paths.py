"""A path is read as it was sent: an encoded slash separates nothing, and two spellings are judged alike."""

from __future__ import annotations

import dataclasses
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.features.bundles.endpoints import endpoints
from toolcrib.interfaces.http.app import make_app
from toolcrib.interfaces.http.routes import _spell
from toolcrib.toolkit.http import Request
from toolcrib.toolkit.http.problems import Refusal


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=5))
def test_every_spelling_of_the_same_words_becomes_one(words):
    plain = "/" + "/".join(quote(word, safe="") for word in words)
    every = "/" + "/".join("".join(f"%{byte:02x}" for byte in word.encode()) for word in words)
    assert _spell(plain.encode()) == _spell(every.encode())
    assert _spell(plain.encode()).count("/") == len(words)


@pytest.mark.parametrize("raw", [b"/tools/%zz", b"/tools/%", b"/tools/%ff", "/tools/\xe4".encode("latin-1")])
def test_a_path_that_is_no_text_is_refused(raw):
    with pytest.raises(Refusal) as raised:
        _spell(raw)
    assert raised.value.status == 400


async def test_the_end_of_a_line_is_part_of_a_word_and_not_the_end_of_the_path(world):
    assert (await world.client.get("/healthz%0A")).status == 404
    assert (await world.client.ask("POST", "/crib/explain%0A", {"name": "x"})).status == 404


async def test_an_encoded_slash_stays_within_its_word(world):
    await world.with_bundle()
    reply = await world.client.get(f"{world.bundle_path()}/tools/a%2Fb/version/v1")
    assert (reply.status, "toolSlug 'a/b'" in reply.json["detail"]) == (400, True)
    called = await world.client.ask("POST", f"{world.bundle_path()}/tools/a%2Fb/version/v1/invoke", {})
    assert (called.status, called.json["ok"]) == (400, False)
    assert (await world.client.get("/requests/a%2Fhistory")).status == 404


async def test_a_call_is_answered_alike_by_both_of_its_paths_and_by_every_spelling(world):
    await world.with_bundle()
    await world.with_tool()
    place = world.tool_path()
    for path in (place, f"{place}/invoke", f"{place}/%69nvoke", place.replace("tools", "%74ools", 1)):
        reply = await world.client.ask("POST", path, {"args": {"city": "Oslo"}})
        assert (reply.status, reply.json["value"]) == (200, {"city": "Oslo"})


def test_two_endpoints_of_one_method_and_path_are_refused(world):
    table = endpoints[0]
    twice = dataclasses.replace(table, endpoints=table.endpoints[:1])
    with pytest.raises(ValueError, match="GET /tools/bundles has two endpoints; listBundles is the second"):
        make_app(world.crib, open_to_loopback=True, tables=(table, twice))


@pytest.mark.parametrize("read", ["body", "json"])
async def test_the_ways_of_starlette_to_read_a_body_are_bounded_too(read):
    async def receive():
        return {"type": "http.request", "body": b"[1, 2]", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    assert await getattr(Request(scope, receive, 6), read)() in (b"[1, 2]", [1, 2])
    with pytest.raises(Refusal) as raised:
        await getattr(Request(scope, receive, 5), read)()
    assert raised.value.status == 413
