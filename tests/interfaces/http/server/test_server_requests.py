"""What is a request and what is not, byte for byte."""

from __future__ import annotations

import asyncio
import random
import re
from itertools import pairwise

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soaks import examples

SECONDS = 20
HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

MALFORMED = {
    "a length and a coding": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "a coding and a length": b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: +3\r\n\r\nabc",
    "a negative length": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: -3\r\n\r\nabc",
    "an empty length": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: \r\n\r\nabc",
    "a hexadecimal length": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 0x3\r\n\r\nabc",
    "an endless length": b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    "another coding": b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\nabc",
    "two codings": b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding in small and large": b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding in 1.0": b"POST /echo HTTP/1.0\r\n" + HOST + CHUNKED + b"\r\n0\r\n\r\n",
    "a bad chunk": b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nzz\r\na\r\n0\r\n\r\n",
    "an endless chunk": b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nffffffffffffffffffff\r\na\r\n",
    "a space before the colon": b"GET /echo HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "a folded header": b"GET /echo HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a NUL in a header": b"GET /echo HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    "lines without a return": b"GET /echo HTTP/1.1\nHost: localhost\n\n",
    "a return inside a header": b"GET /echo HTTP/1.1\r\n" + HOST + b"X: a\rY: b\r\n\r\n",
    "no version": b"GET /echo\r\n\r\n",
    "a later version": b"GET /echo HTTP/2.0\r\n" + HOST + b"\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a foreign host in the path": b"GET http://other.example/echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tunnel": b"CONNECT other.example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path without a slash": b"GET echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "a fragment": b"GET /echo#part HTTP/1.1\r\n" + HOST + b"\r\n",
    "letters beyond ASCII": b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space in the path": b"GET /echo there HTTP/1.1\r\n" + HOST + b"\r\n",
    "an unknown method": b"FOO /echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method in small letters": b"get /echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method of caches": b"PURGE /echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "a trace": b"TRACE /echo HTTP/1.1\r\n" + HOST + b"\r\n",
    "another protocol with a body": b"POST /echo HTTP/1.1\r\n"
    + HOST
    + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc",
    "words": b"hello, is anybody there?\r\n\r\n",
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
async def test_what_is_no_request_gets_one_400_and_the_connection_ends(serving, raw):
    served = await serving()
    heard = await served.exchange(raw + b"GET /echo HTTP/1.1\r\n" + HOST + b"\r\n")
    head, _, body = heard.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nconnection: close" in head
    problem = orjson.loads(body)
    assert (problem["status"], problem["kind"]) == (400, "VALIDATION")
    assert 'toolcrib_http_malformed_total{status="400"} 1' in served.service.metrics_text()


async def test_a_path_that_is_too_long_gets_414(serving):
    served = await serving()
    heard = await served.exchange(b"GET /" + b"a" * 8_192 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert heard.startswith(b"HTTP/1.1 414 URI Too Long\r\n")
    assert served.app.seen == []


@pytest.mark.parametrize(
    "headers",
    [
        [b"X: " + b"a" * 65_536 + b"\r\n"],
        [b"X-%d: a\r\n" % number for number in range(129)],
        [b"X: " + b"a" * 1_000 + b"\r\n"] * 100,
    ],
    ids=["one large", "too many", "much together"],
)
async def test_headers_that_are_too_large_get_431(serving, headers):
    served = await serving()
    heard = await served.exchange(b"GET /echo HTTP/1.1\r\n" + HOST + b"".join(headers) + b"\r\n")
    assert heard.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert served.app.seen == []


async def test_a_header_that_never_ends_is_refused_while_it_comes(serving):
    served = await serving()
    heard = await served.exchange(b"GET /echo HTTP/1.1\r\nX: ", *[b"a" * 10_000] * 200)
    assert heard.startswith(b"HTTP/1.1 431 ") or heard == b""
    assert served.app.seen == []
    assert 'toolcrib_http_malformed_total{status="431"} 1' in served.service.metrics_text()


async def test_trailers_that_never_end_are_refused_and_small_ones_are_dropped(serving):
    served = await serving()
    start = b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n2\r\nok\r\n0\r\n"
    client = await served.connect()
    await client.send(start + b"Authorization: late\r\n\r\n")
    assert (await client.answer())[::2] == (200, b"ok")
    assert b"authorization" not in dict(served.app.seen[0]["headers"])
    heard = await served.exchange(start + b"X: ", *[b"a" * 10_000] * 200)
    assert heard.startswith(b"HTTP/1.1 431 ") or heard == b""


async def test_a_body_in_tiny_chunks_is_no_head(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n", b"1\r\na\r\n" * 30_000, b"0\r\n\r\n")
    assert (await client.answer())[::2] == (200, b"a" * 30_000)


async def test_http_1_0_is_answered_and_closed(serving):
    served = await serving()
    heard = await served.exchange(b"POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert heard.endswith(b"connection: close\r\n\r\nhi")


async def test_what_has_no_length_is_chunked_for_1_1_and_ended_by_the_end_for_1_0(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /pieces HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert b"\r\ntransfer-encoding: chunked\r\nconnection: close" in head
    assert body == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    head, _, body = (await served.exchange(b"GET /pieces HTTP/1.0\r\n\r\n")).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"onetwo"


async def test_an_answer_to_head_has_no_body_and_its_length(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"HEAD /early HTTP/1.1\r\n" + HOST + b"\r\n")
    head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 25)
    assert b"\r\ncontent-length: 2\r\n" in head
    assert (await client.ask("POST", "/echo", b"next"))[2] == b"next"


@pytest.mark.parametrize("path", ["/split", "/long", "/short"])
async def test_an_application_cannot_break_the_framing_of_its_answer(serving, path):
    served = await serving()
    heard = await served.exchange(f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
    assert heard.startswith(b"HTTP/1.1 500 ")
    assert b"injected" not in heard


async def test_a_connection_is_used_again_and_requests_may_be_sent_ahead(serving):
    served = await serving()
    client = await served.connect()
    for number in range(3):
        assert (await client.ask("POST", "/echo", b"%d" % number))[::2] == (200, b"%d" % number)
    request = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\n\r\n%d"
    await client.send(b"".join(request % number for number in range(8)))
    assert [(await client.answer())[2] for _ in range(8)] == [b"%d" % number for number in range(8)]


async def test_a_flood_of_requests_sent_ahead_ends_after_those_that_were_taken(serving):
    served = await serving()
    heard = await served.exchange((b"GET /echo HTTP/1.1\r\n" + HOST + b"\r\n") * 500)
    assert 0 < heard.count(b"HTTP/1.1 200 OK") == len(served.app.seen) < 50
    assert heard.count(b"HTTP/1.1") == heard.count(b"HTTP/1.1 200 OK")


async def test_rubbish_behind_a_request_does_not_cut_its_answer(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n" + b"rubbish\r\n\r\n")
    await served.app.arrived.get()
    served.app.go_on.set()
    assert (await client.answer())[::2] == (200, b"done")
    assert await client.rest() == b""


async def test_an_offer_to_change_the_protocol_is_answered_as_the_request_it_is(serving):
    served = await serving()
    offer = b"GET /echo HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    heard = await served.exchange(offer + b"\x81\x00")
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in heard


async def test_a_client_that_asks_whether_to_go_on_is_told_so(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert (await client.answer())[0] == 100
    await client.send(b"ok")
    assert (await client.answer())[::2] == (200, b"ok")


async def test_a_response_that_has_begun_is_not_interrupted_by_the_permission_to_send_a_body(serving):
    served = await serving()
    asked = b"GET /listen HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
    heard = await served.exchange(asked)
    assert heard.partition(b"\r\n\r\n")[2] == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_a_client_of_http_1_0_gets_no_interim_response(serving):
    served = await serving()
    asked = b"POST /echo HTTP/1.0\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    assert (await served.exchange(asked, b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_client_that_leaves_ends_the_request_in_progress_with_others_sent_ahead_of_its_answer(serving):
    served = await serving()
    client = await served.connect()
    ahead = b"GET /stay HTTP/1.1\r\n" + HOST + b"\r\n"
    await client.send(ahead * 3)
    assert await asyncio.wait_for(served.app.arrived.get(), SECONDS) == "/stay"
    await client.close()
    assert await asyncio.wait_for(served.app.ended.get(), SECONDS) == "/stay"
    await served.until(lambda: not served.service.exchanges and not served.service.connections.total)
    # The others are not begun for a client that is gone.
    assert served.app.arrived.empty()


@pytest.mark.parametrize("body", [b"", b"x" * 100_000], ids=["small", "large"])
async def test_a_client_that_leaves_ends_the_request_in_progress_when_another_came_later(serving, body):
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /stay HTTP/1.1\r\n" + HOST + b"\r\n")
    assert await asyncio.wait_for(served.app.arrived.get(), SECONDS) == "/stay"
    # The first request waits for nothing but its client, and no more is read for the second one.
    client.writer.write(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body[1:])
    client.writer.write_eof()
    assert await asyncio.wait_for(served.app.ended.get(), SECONDS) == "/stay"
    await served.until(lambda: not served.service.exchanges and not served.service.connections.total)
    assert served.app.arrived.empty()


@pytest.mark.parametrize("between", [b"", b"GET /pieces HTTP/1.1\r\n" + HOST + b"\r\n"], ids=["one", "two"])
async def test_a_malformed_body_leaves_the_requests_before_it_their_answers(serving, between):
    served = await serving()
    client = await served.connect()
    malformed = b"POST /early HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nZZ\r\n"
    await client.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n" + between + malformed)
    assert await asyncio.wait_for(served.app.arrived.get(), SECONDS) == "/wait"
    served.app.go_on.set()
    assert (await client.answer())[::2] == (200, b"done")
    assert (await client.rest()).count(b"HTTP/1.1 200 OK") == bool(between)
    assert "/early" not in [scope["path"] for scope in served.app.seen]
    assert 'toolcrib_http_malformed_total{status="400"} 1\n' in served.service.metrics_text()


@pytest.mark.parametrize("malformed", [b"BREW", b"POST /early HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nZZ\r\n"])
@pytest.mark.parametrize("seconds", [1_000.0, 0.1])
async def test_an_answer_before_a_malformed_request_is_not_lost_to_a_reset(serving, monkeypatch, malformed, seconds):
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.LINGER_SECONDS", seconds)
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n" + malformed + b"\r\n")
    assert await asyncio.wait_for(served.app.arrived.get(), SECONDS) == "/wait"
    served.app.go_on.set()
    assert (await client.answer())[::2] == (200, b"done")
    assert await client.rest() == b""
    if seconds > SECONDS:
        # Only the side of the server is closed: what the client still sends is not answered with a reset.
        await client.send(b"x" * 1_000)
        assert served.service.connections.total == 1
        await client.close()
    await served.until(lambda: served.service.connections.total == 0)


async def test_a_client_that_leaves_after_a_malformed_body_ends_the_request_before_it(serving):
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /stay HTTP/1.1\r\n" + HOST + b"\r\n")
    assert await asyncio.wait_for(served.app.arrived.get(), SECONDS) == "/stay"
    await client.send(b"POST /early HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nZZ\r\n")
    await client.close()
    assert await asyncio.wait_for(served.app.ended.get(), SECONDS) == "/stay"


async def test_a_malformed_body_of_a_client_that_asks_whether_to_go_on_is_refused_and_nothing_fails(serving, caplog):
    served = await serving()
    asked = b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"Expect: 100-continue\r\n\r\nZZ\r\n"
    assert (await served.exchange(asked)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    await asyncio.wait_for(served.app.ended.get(), SECONDS)
    await served.until(lambda: not served.service.exchanges)
    assert caplog.messages == []


async def test_an_answer_before_the_body_is_read_leaves_the_connection_in_order(serving):
    served = await serving()
    client = await served.connect()
    head = b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 300000\r\n\r\n"
    await client.send(head)
    assert (await client.answer())[::2] == (401, b"no")
    await client.send(b"x" * 300_000)
    assert (await client.ask("POST", "/echo", b"next"))[::2] == (200, b"next")


async def test_a_failing_application_is_a_500_and_the_server_goes_on(serving, caplog):
    served = await serving()
    client = await served.connect()
    await client.send(b"GET /broken HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (await client.rest()).startswith(b"HTTP/1.1 500 ")
    again = await served.connect()
    assert (await again.ask("POST", "/echo", b"on"))[::2] == (200, b"on")
    assert "on purpose" in caplog.text


CHUNKS = b"2;a=b\r\nab\r\n1\r\nc\r\n0\r\nX-Trailer: a\r\nHost: evil\r\n\r\n"
LAST = b"GET /echo HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
KEPT = [
    b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc",
    b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + CHUNKS,
    b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"Expect: 100-continue\r\n\r\n" + CHUNKS,
    b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 30\r\n\r\n" + LAST[:30],
    b"POST /early HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + CHUNKS,
    b"GET /pieces HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /listen HTTP/1.1\r\n" + HOST + b"\r\n",
    b"HEAD /echo HTTP/1.1\r\n" + HOST + b"\r\n",
]
CLOSED = [
    b"POST /echo HTTP/1.0\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc",
    b"POST /early HTTP/1.1\r\n" + HOST + b"Connection: close\r\nContent-Length: 30\r\n\r\n" + LAST[:30],
    b"GET /pieces HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
]
REFUSED = [
    b"POST /echo HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n2\r\nabXX\r\n",
    b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
]


async def test_requests_are_answered_alike_alone_and_ahead_of_each_other_in_any_pieces(serving):
    served = await serving()
    chance = random.Random(7)

    async def hear(raw: bytes, cuts: int) -> bytes:
        """All answers, without what may differ: the time, and where the connection ends."""
        ends = sorted({chance.randrange(len(raw)) for _ in range(cuts)})
        heard = await served.exchange(*(raw[start:end] for start, end in pairwise([0, *ends, len(raw)])))
        return re.sub(rb"(date|connection): [^\r]*\r\n|HTTP/1.1 100 Continue\r\n\r\n", b"", heard)

    last = await hear(LAST, 0)
    alone = {each: (await hear(each + LAST, 0)).removesuffix(last) for each in KEPT}
    alone |= {each: await hear(each, 0) for each in (*CLOSED, *REFUSED)}
    for _ in range(examples(1_500)):
        asked = chance.choices(KEPT, k=chance.randint(1, 4)) + chance.choices([LAST, *CLOSED, *REFUSED])
        heard = await hear(b"".join(asked), chance.choice([0, 3, 40]))
        answers = [alone.get(each, last) for each in asked]
        # A malformed request behind others that are not answered yet ends the connection without a refusal of its own.
        expected = [b"".join(answers), *([b"".join(answers[:-1])] if asked[-1] in REFUSED else [])]
        assert heard in expected, asked


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [b"GET ", b"POST ", b"/echo", b" HTTP/1.1", b"\r\n", b"Host: a", b"\r\n\r\n", b":", b"Content-Length: 3"]
        )
        | st.just(b"Transfer-Encoding: chunked")
        | st.binary(max_size=12),
        max_size=24,
    )
)
def test_no_bytes_whatsoever_are_answered_with_a_server_error(pieces):
    asyncio.run(_throw(pieces))


async def _throw(pieces: list[bytes]) -> None:
    from uvicorn import Config
    from uvicorn.server import ServerState

    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.interfaces.http.settings import ServerSettings
    from toolcrib.interfaces.http.uvicorn_server import GuardedProtocol, Timeouts

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    state = ServerState()
    config = Config(app, ws="none", log_config=None, access_log=False)
    config.load()
    chosen = ServerSettings()
    loop = asyncio.get_running_loop()
    service = Service(chosen)

    def made() -> GuardedProtocol:
        return GuardedProtocol(service, Timeouts.of(chosen), config=config, server_state=state, app_state={})

    server = await loop.create_server(made, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for piece in pieces:
            writer.write(piece)
        writer.write_eof()
        heard = await asyncio.wait_for(reader.read(), 25)
        writer.close()
    assert not heard or heard.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4"))
    assert b"HTTP/1.1 5" not in heard
