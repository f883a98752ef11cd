"""HTTP tools whose upstream streams: events and lines are chunks while they come, and together the value."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.streams.conftest import SECONDS, streamed

from sample_tools import http_call, http_run
from toolcrib import Chunk, Kind, Tool
from toolcrib.features.http_tools.streamed_response import ItemReader
from toolcrib.model.tool import Encoding

KEY = "sk-9a8b7c6d5e4f"
OPEN = {"type": "object", "properties": {}}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.fixture
def crib_over(crib_of, bench):
    """A crib with one HTTP tool that may reach the sites of the test."""

    def make(*calls, output_schema=None, **settings):
        tool = Tool(
            name="tokens",
            description="Stream tokens.",
            parameters=OPEN,
            output_schema=output_schema,
            run=http_run(*calls),
            requires=frozenset({"net.http"}),
        )
        endpoints = [site.endpoint for site in bench.sites]
        return crib_of(
            tool,
            http_tools={"hosts": endpoints, **settings},
            egress={"private": endpoints},
            secrets={"environment": ["API_KEY"]},
            environment={"API_KEY": KEY},
        )

    return make


def saying(*pieces: bytes, going: asyncio.Event | None = None):
    """A site that sends these pieces, each behind the other, and waits behind the first if told so."""

    async def talk(reader, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if going is not None:
                await going.wait()

    return lambda _: talk


def event(document: object, name: str = "") -> bytes:
    data = document if isinstance(document, str) else json.dumps(document)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def delta(text: str) -> bytes:
    return event({"choices": [{"delta": {"content": text}}]})


@pytest.mark.spec("S1-92")
async def test_events_of_the_upstream_are_chunks_and_their_texts_the_value(crib_over, serve):
    body = [HEAD, delta("Hel"), event({"choices": [{"delta": {}}]}), delta("lo"), event("[DONE]")]
    site = await serve(saying(*body))
    call = http_call(url=site.url(), encoding="events", extract="$.choices[0].delta.content")
    crib = crib_over(call, output_schema={"type": "string"})
    chunks, result = await streamed(crib, "tokens")
    assert (chunks, result.value) == (["Hel", "lo"], "Hello")
    assert (await crib.call("tokens")).value == "Hello"


async def test_lines_of_the_upstream_are_chunks_and_their_list_the_value(crib_over, serve):
    site = await serve(saying(HEAD, b'{"row": 1}\n{"ro', b'w": 2}\n\nno JSON'))
    crib = crib_over(http_call(url=site.url(), encoding="lines"), output_schema={"type": "array"})
    chunks, result = await streamed(crib, "tokens")
    assert chunks == result.value == (await crib.call("tokens")).value == [{"row": 1}, {"row": 2}, "no JSON"]


@pytest.mark.spec("S1-92")
async def test_a_chunk_comes_before_the_upstream_has_ended_and_a_reader_that_leaves_ends_the_request(crib_over, serve):
    going = asyncio.Event()
    site = await serve(saying(HEAD + event({"row": 1}), event({"row": 2}), going=going))
    crib = crib_over(http_call(url=site.url(), encoding="events"))
    async with asyncio.timeout(SECONDS), aclosing(crib.stream("tokens")) as events:
        assert await anext(events) == Chunk(number=1, value={"row": 1})
    going.set()
    async with asyncio.timeout(SECONDS):
        await site.gone.wait()


@pytest.mark.spec("S1-92")
async def test_a_secret_that_the_upstream_repeats_in_pieces_does_not_come_out(crib_over, serve):
    site = await serve(saying(HEAD, *(delta(letter) for letter in f"the key is {KEY}.")))
    call = http_call(
        url=site.url(),
        headers={"Authorization": "Bearer ${API_KEY}"},
        encoding="events",
        extract="$.choices[0].delta.content",
    )
    crib = crib_over(call)
    chunks, result = await streamed(crib, "tokens")
    assert "".join(map(str, chunks)) == "the key is ***."
    assert "".join(result.value) == "the key is ***."
    whole = crib_over(call, output_schema={"type": "string"})
    assert (await whole.call("tokens")).value == "the key is ***."


async def test_a_stream_that_dies_in_the_middle_fails_behind_its_chunks_and_is_not_begun_again(crib_over, serve):
    head = HEAD.replace(b"Connection: close", b"Content-Length: 1000")
    site = await serve(saying(head, delta("Hel")))
    crib = crib_over(http_call(url=site.url(), encoding="events"))
    chunks, result = await streamed(crib, "tokens")
    assert len(chunks) == 1
    assert result.error.kind is Kind.TRANSIENT
    assert len(site.requests) == 1


async def test_a_stream_that_never_ends_meets_the_limit_of_bytes_and_of_time(crib_over, serve):
    async def endless(reader, writer):
        writer.write(HEAD)
        while True:
            writer.write(delta("x" * 1_000))
            await writer.drain()

    async def silent(reader, writer):
        writer.write(HEAD + delta("x"))
        await asyncio.Event().wait()

    crib = crib_over(
        http_call(url=(await serve(lambda _: endless)).url(), encoding="events"), max_response_bytes=10_000
    )
    chunks, result = await streamed(crib, "tokens")
    assert 0 < len(chunks) < 20
    assert result.error.kind is Kind.LIMIT_EXCEEDED
    late = crib_over(http_call(url=(await serve(lambda _: silent)).url(), encoding="events", timeout_ms=200))
    chunks, result = await streamed(late, "tokens")
    assert (len(chunks), result.error.kind) == (1, Kind.TIMEOUT)


async def test_an_error_of_the_upstream_is_no_chunk(crib_over, serve, answer):
    site = await serve(answer({"message": "no such model"}, status="404 Not Found"))
    crib = crib_over(http_call(url=site.url(), encoding="events"))
    chunks, result = await streamed(crib, "tokens")
    assert (chunks, result.error.kind) == ([], Kind.PERMANENT)
    assert "no such model" in result.error.message


async def test_only_the_last_of_several_requests_streams(crib_over, serve):
    first, last = await serve(saying(HEAD, event("one"))), await serve(saying(HEAD, event("two")))
    calls = [http_call(url=site.url(), name=name, encoding="events") for site, name in ((first, "a"), (last, "b"))]
    chunks, result = await streamed(crib_over(*calls), "tokens")
    assert (chunks, result.value) == (["two"], ["two"])


async def test_items_of_pages_come_page_by_page(crib_over, serve, answer):
    site = await serve([answer([{"id": 1}, {"id": 2}]), answer([{"id": 3}])])
    pagination = {"type": "page", "parameter": "page", "size": 2}
    chunks, result = await streamed(crib_over(http_call(url=site.url(), pagination=pagination)), "tokens")
    assert chunks == result.value == [{"id": 1}, {"id": 2}, {"id": 3}]


@pytest.mark.parametrize("extract", ["sk-9", "(....)", "([a-z0-9]{4})"])
async def test_an_expression_does_not_cut_a_secret_of_a_stream_into_pieces(crib_over, serve, extract):
    site = await serve(saying(HEAD, f"{KEY}\n{KEY[:6]}\n{KEY[6:]}\n".encode()))
    call = http_call(url=site.url(), headers={"Authorization": "Bearer ${API_KEY}"}, encoding="lines", extract=extract)
    chunks, result = await streamed(crib_over(call), "tokens")
    assert "9a8b" not in str(chunks)
    assert "sk-9" not in str(chunks)
    assert "9a8b" not in str(result.value)


async def test_a_kept_answer_is_streamed_as_it_was_when_it_came(crib_over, serve):
    body = b"".join((delta("Hel"), delta(f"lo {KEY[:6]}"), delta(KEY[6:]), event("[DONE]")))

    def site_says(request):
        if b'if-none-match: "1"' in request.lower():
            return b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
        age = 0 if request.startswith(b"GET /old") else 60
        head = f'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nETag: "1"\r\nCache-Control: max-age={age}\r\n'
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    site = await serve(site_says)
    for path, how in (("/new", "hit"), ("/old", "revalidated")):
        call = http_call(
            url=site.url(path),
            headers={"Authorization": "Bearer ${API_KEY}"},
            encoding="events",
            extract="$.choices[0].delta.content",
            cache={"seconds": 60},
        )
        crib = crib_over(call, output_schema={"type": "string"})
        came, first = await streamed(crib, "tokens")
        kept, second = await streamed(crib, "tokens")
        assert (first.meta.get("cache"), second.meta["cache"]) == (None, how)
        assert "".join(came) == "".join(kept) == first.value == second.value == "Hello ***"
        assert (await crib.call("tokens")).value == "Hello ***"


@pytest.mark.parametrize("encoding", ["events", "lines"])
def test_a_line_that_comes_byte_by_byte_costs_no_more_for_each_the_longer_it_is(encoding):
    def cost(length: int) -> float:
        reader = ItemReader(Encoding(encoding), None, 10_000_000, "")
        began = time.process_time()
        for _ in range(length):
            assert reader.feed(b"x") == []
        return time.process_time() - began

    cost(1_000)
    # Eight times as many bytes: with each byte that looked at those before it, sixty-four times the work.
    assert cost(80_000) < 30 * max(cost(10_000) for _ in range(3))


@given(places=st.lists(st.integers(0, 40), max_size=10).map(sorted), data=st.binary(max_size=40))
def test_lines_are_the_same_wherever_the_bytes_are_cut(places, data):
    whole, pieces = (ItemReader(Encoding.LINES, None, 10_000, "") for _ in range(2))
    ends = [0, *places, len(data)]
    found = [
        item
        for number, last in enumerate(ends[1:])
        for item in pieces.feed(data[ends[number] : max(last, ends[number])])
    ]
    assert [*found, *pieces.finish()] == [*whole.feed(data), *whole.finish()]


async def test_a_signature_that_the_upstream_repeats_in_pieces_does_not_come_out(crib_over, serve):
    sent = []

    def site_says(request):
        sent.append(re.search(rb"(?i)x-signature: (\S+)", request)[1].decode())
        return saying(HEAD, *(delta(letter) for letter in f"<{sent[-1]}>"))(request)

    site = await serve(site_says)
    call = http_call(
        url=site.url(),
        auth={
            "type": "hmac",
            "key": "${secret:API_KEY}",
            "string": "${method}${path}${timestamp}",
            "headers": {"X-Signature": "${signature}", "X-Timestamp": "${timestamp}"},
        },
        encoding="events",
        extract="$.choices[0].delta.content",
    )
    crib = crib_over(call, output_schema={"type": "string"})
    chunks, result = await streamed(crib, "tokens")
    assert len(sent[0]) > 30
    assert "".join(chunks) == result.value == "<***>"
    assert (await crib.call("tokens")).value == "<***>"
    listed = (await crib_over(call).call("tokens")).value
    assert "".join(listed) == "<***>"


async def test_a_reader_is_led_on_by_a_redirect_as_any_other_caller_is(crib_over, serve):
    def site_says(request):
        if request.startswith(b"GET /old"):
            return b"HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 5\r\n\r\nmoved"
        if request.startswith(b"GET /circle"):
            return b"HTTP/1.1 307 Again\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n"
        if request.startswith(b"GET /away"):
            return b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\nContent-Length: 0\r\n\r\n"
        return saying(HEAD, event({"row": 1}), event({"row": 2}))(request)

    site = await serve(site_says)
    # Scripts take every status below 400 for a success, and a redirect is still none.
    success = frozenset(range(200, 400))
    crib = crib_over(http_call(url=site.url("/old"), encoding="events", success=success))
    chunks, result = await streamed(crib, "tokens")
    assert chunks == result.value == (await crib.call("tokens")).value == [{"row": 1}, {"row": 2}]
    for path, kind, words in (
        ("/circle", Kind.PERMANENT, "more than 5 redirects"),
        ("/away", Kind.HOST_NOT_ALLOWED, "evil.example"),
    ):
        crib = crib_over(http_call(url=site.url(path), encoding="events"))
        chunks, result = await streamed(crib, "tokens")
        plain = await crib.call("tokens")
        assert (chunks, result.error.kind, result.error.message) == ([], kind, plain.error.message)
        assert words in result.error.message


async def test_credentials_do_not_follow_a_stream_to_another_origin(crib_over, serve):
    other = await serve(saying(HEAD, event({"row": 1})))
    site = await serve(f"HTTP/1.1 307 Go\r\nLocation: {other.url('/')}\r\nContent-Length: 0\r\n\r\n".encode())
    call = http_call(url=site.url(), headers={"X-Key": "${API_KEY}"}, encoding="events")
    chunks, _ = await streamed(crib_over(call), "tokens")
    assert chunks == [{"row": 1}]
    assert (site.header("x-key"), other.header("x-key")) == (KEY, None)
