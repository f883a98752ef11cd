"""What the proxy refuses, cuts short, or ends without a trace."""

import asyncio
import re
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import ToolError
from toolcrib.infra.egress.http1 import HOP_BY_HOP, MAX_HEAD_BYTES, MAX_HEADERS, parse_request, parse_response
from toolcrib.infra.egress.proxy import Visit
from toolcrib.lib.http_syntax import parse_hosts

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def silent(reader, writer):
    await reader.read()


def what_is_open():
    """The descriptors and tasks of this moment."""
    return sorted(Path("/proc/self/fd").iterdir()), asyncio.all_tasks()


@pytest.mark.parametrize(
    "authority",
    [
        "2130706433:80",
        "0x7f000001:80",
        "0177.0.0.1:80",
        "127.1:80",
        "127.0.0.1.:80",
        "127.000.000.001:80",
        "[127.0.0.1]:80",
        "[::1%25lo]:80",
        "::1:80",
        "user@example.com:80",
        "user:secret@example.com:80",
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:080",
        "example.com:+80",
        "example.com:80:80",
        "example.com:80/path",
        "example.com/:80",
        "example.com?x:80",
        "example.com#x:80",
        "example.com\\.evil:80",
        "exam%70le.com:80",
        "example.com%00.good.example:80",
        "http://example.com:80",
        ".example.com:80",
        ":80",
    ],
)
async def test_a_tunnel_to_an_odd_spelling_is_bad_syntax(open_egress, open_proxy, authority):
    async def resolve(host, port):
        raise AssertionError(f"{host} was looked up")

    async with open_proxy(open_egress(resolve=resolve)) as door:
        status, text = await door.ask(f"CONNECT {authority} HTTP/1.1\r\nHost: example.com\r\n\r\n")
    assert status == 400
    assert "refused: " in text
    assert "secret" not in text
    assert [visit.allowed for visit in door.log.visits] == [False]


@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"])
@pytest.mark.parametrize("form", ["CONNECT {}:80", "GET http://{}/"])
async def test_an_address_of_this_machine_is_refused_without_the_operators_word(open_egress, open_proxy, host, form):
    async with open_proxy(open_egress()) as door:
        status, text = await door.ask(f"{form.format(host)} HTTP/1.1\r\n\r\n")
    assert status == 403
    assert "an operator who trusts it writes egress.private = " in text


async def test_an_operators_word_holds_for_the_very_port(serve, open_egress, open_proxy):
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        assert (await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n"))[0] == 200
        assert (await door.ask("GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n"))[0] == 403


@pytest.mark.parametrize(
    "answers", [["93.184.216.34", "10.0.0.7"], ["10.0.0.7"], ["2606:2800::1", "fd00::1"], ["::ffff:10.0.0.7"]]
)
@pytest.mark.parametrize("form", ["CONNECT mixed.example:443", "GET http://mixed.example/"])
async def test_a_name_that_leads_to_one_private_address_is_refused(open_egress, open_proxy, names, answers, form):
    async with open_proxy(open_egress(resolve=names(mixed_example=[answers]))) as door:
        status, text = await door.ask(f"{form} HTTP/1.1\r\n\r\n")
    assert status == 403
    assert "mixed.example: " in text
    assert "(private)" in text


async def test_localhost_is_looked_up_like_any_name_and_refused(open_egress, open_proxy):
    async with open_proxy(open_egress()) as door:
        status, text = await door.ask("CONNECT localhost:443 HTTP/1.1\r\n\r\n")
    assert status == 403
    assert "(loopback)" in text


async def test_a_name_that_changes_between_two_requests_is_checked_each_time(serve, open_egress, open_proxy, names):
    site = await serve(HELLO)
    resolve = names(turning_example=[["127.0.0.1"], ["169.254.169.254"]])
    request = f"GET http://turning.example:{site.port}/ HTTP/1.1\r\n\r\n"
    hosts = parse_hosts([f"turning.example:{site.port}"])
    async with open_proxy(open_egress(site.endpoint, resolve=resolve), hosts) as door:
        assert (await door.ask(request))[0] == 200
        assert (await door.ask(request))[0] == 403


async def test_a_listed_host_that_leads_to_a_private_address_stays_refused(open_egress, open_proxy, names):
    egress = open_egress(resolve=names(inner_example=[["192.168.0.1"]]))
    async with open_proxy(egress, parse_hosts(["inner.example"])) as door:
        assert (await door.ask("CONNECT inner.example:443 HTTP/1.1\r\n\r\n"))[0] == 403


async def test_an_empty_list_of_hosts_lets_no_request_out_and_asks_no_server(open_egress, open_proxy, names):
    resolve = names()
    async with open_proxy(open_egress(resolve=resolve), parse_hosts([])) as door:
        status, text = await door.ask("CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    assert (status, resolve.asked) == (403, [])
    assert "(none)" in text


async def test_what_cannot_be_reached_is_a_bad_gateway(open_egress, open_proxy, serve):
    async def nowhere(host, port):
        raise OSError

    site = await serve(HELLO)
    site.server.close()
    async with open_proxy(open_egress(site.endpoint, resolve=nowhere)) as door:
        unknown = await door.ask("CONNECT nowhere.example:443 HTTP/1.1\r\n\r\n")
        closed = await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n")
    assert unknown[0] == closed[0] == 502
    assert unknown[1].endswith("\r\n\r\nnowhere.example: looking up the name failed\n")
    assert closed[1].endswith(f"\r\n\r\n{site.endpoint}: connection refused\n")


BODIES = {
    "length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "two lengths": "Content-Length: 5\r\nContent-Length: 5",
    "two lengths in one": "Content-Length: 5, 5",
    "a signed length": "Content-Length: +5",
    "a length beyond all": f"Content-Length: {'9' * 40}",
    "a negative length": "Content-Length: -1",
    "an empty length": "Content-Length:",
    "two codings": "Transfer-Encoding: gzip, chunked",
    "coding twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "an odd coding": "Transfer-Encoding: xchunked",
    "a space before the colon": "Content-Length : 5",
    "a folded line": "X: 1\r\n Content-Length: 5",
    "a bare line feed": "X: 1\nContent-Length: 5",
    "a bare carriage return": "X: 1\rContent-Length: 5",
    "a NUL": "X: a\0b",
    "no colon": "Content-Length 5",
    "no name": ": 5",
    "too many headers": "\r\n".join(["X: 1"] * (MAX_HEADERS + 1)),
}


@pytest.mark.parametrize("headers", BODIES.values(), ids=BODIES.keys())
async def test_a_head_that_two_readers_could_read_differently_is_refused(serve, open_egress, open_proxy, headers):
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, text = await door.ask(f"POST {site.url()} HTTP/1.1\r\n{headers}\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert status == 400
    assert "message refused: " in text
    assert site.connections == 0


@pytest.mark.parametrize(
    "first",
    [
        "GET /only/a/path HTTP/1.1",
        "GET * HTTP/1.1",
        "GET https://example.com/ HTTP/1.1",
        "GET ftp://example.com/ HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1",
        "GET http://example.com/ HTTP/2.0",
        "GET http://example.com/",
        "GET  http://example.com/ HTTP/1.1",
        "GET http://example.com/a b HTTP/1.1",
        "GET\thttp://example.com/ HTTP/1.1",
        "get http://example.com/ HTTP/1.1",
        "TRACE http://example.com/ HTTP/1.1",
        "GET http://example.com\0.good.example/ HTTP/1.1",
        "GET http://example.com/\xff HTTP/1.1",
        "GET http://user@example.com/ HTTP/1.1",
        "GET http://example.com:99999/ HTTP/1.1",
        "\x16\x03\x01\x02",
        "",
    ],
)
async def test_a_first_line_that_names_no_http_url_is_bad_syntax(open_egress, open_proxy, first):
    async with open_proxy(open_egress()) as door:
        status, text = await door.ask(f"{first}\r\n\r\n")
    assert status == 400
    assert "refused: " in text


async def test_a_line_break_in_a_path_stays_percent_encoded(serve, open_egress, open_proxy):
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        await door.ask(f"GET {site.url('/a%0d%0aX:%201')} HTTP/1.1\r\n\r\n")
    assert site.requests[0].startswith(b"GET /a%0d%0aX:%201 HTTP/1.1\r\n")


async def test_a_head_without_end_is_cut_at_its_limit(open_egress, open_proxy):
    async with open_proxy(open_egress()) as door:
        status, text = await door.ask(b"GET http://example.com/ HTTP/1.1\r\nX: " + b"x" * 2 * MAX_HEAD_BYTES)
    assert (status, f"longer than {MAX_HEAD_BYTES} bytes" in text) == (400, True)


@pytest.mark.parametrize(
    "chunks", ["x\r\n", "-1\r\nabc\r\n", "3\r\nabcd\r\n", "0x3\r\nabc\r\n", "fffffffff\r\n", "\r\n"]
)
async def test_a_body_in_broken_chunks_ends_the_request(serve, open_egress, open_proxy, chunks):
    site = await serve(lambda _: silent)
    async with open_proxy(open_egress(site.endpoint)) as door:
        request = f"POST {site.url()} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
        status, text = await door.ask(request)
    assert (status, "message refused: a chunk" in text) == (400, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 30,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 3 * MAX_HEAD_BYTES,
        b"",
    ],
)
async def test_an_answer_that_is_not_http_is_a_bad_gateway(serve, open_egress, open_proxy, answer):
    async def reply(reader, writer):
        writer.write(answer)

    site = await serve(lambda _: reply)
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, text = await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n")
    assert status == 502
    assert f"\r\n\r\n{site.endpoint}: the " in text


async def test_a_response_that_breaks_off_is_not_made_to_look_whole(serve, open_egress, open_proxy):
    async def reply(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

    site = await serve(lambda _: reply)
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, answer = await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n")
    assert status == 200
    assert answer.endswith("5\r\nhello\r\n")


async def test_a_slow_head_is_given_up(open_egress, open_proxy):
    async with open_proxy(open_egress(), head_seconds=0.05) as door:
        status, text = await door.ask(b"GET http://example.com/ HTTP/1.1\r\nX:")
    assert (status, text.endswith("\r\n\r\nno complete request within 0.05 s\n")) == (408, True)


@pytest.mark.parametrize("halves", [True, False])
async def test_a_tunnel_on_which_nothing_moves_is_cut(serve, open_egress, open_proxy, halves):
    site = await serve(lambda _: silent)
    async with open_proxy(open_egress(site.endpoint), idle_seconds=0.05) as door:
        reader, writer = await door.open()
        writer.write(f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\n".encode())
        if halves:
            writer.write_eof()
        async with asyncio.timeout(25):
            assert await reader.read() == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_a_client_that_reads_nothing_holds_nothing_for_long(serve, open_egress, open_proxy):
    async def flood(reader, writer):
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    site = await serve(lambda _: flood)
    async with open_proxy(open_egress(site.endpoint), idle_seconds=0.1) as door:
        _, writer = await door.open()
        writer.write(f"GET {site.url()} HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(25):
            await site.gone.wait()


async def test_one_client_too_many_is_told_so(serve, open_egress, open_proxy):
    site = await serve(lambda _: silent)
    async with open_proxy(open_egress(site.endpoint), connections=2) as door:
        held = [await door.open() for _ in range(2)]
        for reader, writer in held:
            writer.write(f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\n".encode())
            async with asyncio.timeout(25):
                await reader.readuntil(b"\r\n\r\n")
        status, text = await door.ask(f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\n")
        assert (status, "2 connections are open already; close one" in text) == (503, True)
        crowd = [await door.open() for _ in range(10)]  # far too many are just dropped
        async with asyncio.timeout(25):
            assert [await reader.read() for reader, _ in crowd[3:]] == [b""] * 7


@pytest.mark.parametrize("form", ["CONNECT {endpoint}", "POST http://{endpoint}/"])
async def test_no_more_bytes_go_out_than_the_limit(serve, open_egress, open_proxy, form):
    site = await serve(lambda _: silent)
    request = f"{form.format(endpoint=site.endpoint)} HTTP/1.1\r\n"
    request += "\r\n" if form.startswith("CONNECT") else "Content-Length: 100000\r\n\r\n"
    async with open_proxy(open_egress(site.endpoint), sent_bytes=20_000) as door:
        await door.ask(request.encode() + b"x" * 100_000)
        again, text = await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n")
    reason = "more than 20000 bytes were sent by this job, and that is the limit"
    assert (again, reason in text) == (403, True)
    assert [(visit.allowed, visit.reason) for visit in door.log.visits] == [
        (True, ""),
        (False, reason),
        (False, reason),
    ]


async def test_no_more_bytes_come_in_than_the_limit(serve, open_egress, open_proxy):
    site = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
    async with open_proxy(open_egress(site.endpoint), received_bytes=20_000) as door:
        _, answer = await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n")
        assert len(answer) < 20_100
        assert (await door.ask(f"GET {site.url()} HTTP/1.1\r\n\r\n"))[0] == 403


async def test_the_log_has_a_bound_and_counts_the_rest(open_egress, open_proxy):
    async with open_proxy(open_egress(), visits=2) as door:
        for port in range(1, 6):
            await door.ask(f"CONNECT 10.0.0.1:{port} HTTP/1.1\r\n\r\n")
    assert [visit.port for visit in door.log.visits] == [1, 2]
    assert door.log.dropped == 3


async def test_what_cannot_be_read_is_noted_without_a_host(open_egress, open_proxy):
    async with open_proxy(open_egress()) as door:
        await door.ask("GET / HTTP/1.1\r\n\r\n")
    reason = "URL refused: it does not begin with http:// or https://"
    assert door.log.visits == [Visit("", 0, allowed=False, reason=reason)]


async def test_everything_ends_at_the_deadline(serve, open_egress, open_proxy):
    site = await serve(lambda _: silent)
    async with open_proxy(open_egress(site.endpoint), seconds=0.3) as door:
        reader, writer = await door.open()
        writer.write(f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(25):
            await reader.readuntil(b"\r\n\r\n")
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            await site.gone.wait()
            with pytest.raises(ConnectionError):
                await door.open()


@pytest.mark.parametrize("ending", ["left", "cancelled"])
async def test_nothing_is_left_when_the_context_is_left(serve, open_egress, open_proxy, ending):
    looked_up = asyncio.Event()

    async def never(host, port):
        looked_up.set()
        await asyncio.Event().wait()

    site = await serve(lambda _: silent)
    requests = [
        f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        f"POST {site.url()} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "GET http://unfinished",
        "GET / HTTP/1.1\r\n\r\n",
        "",
        "CONNECT slow.example:443 HTTP/1.1\r\n\r\n",
    ]

    async def use():
        async with open_proxy(open_egress(site.endpoint, resolve=never)) as door:
            for request in requests:
                _, writer = await door.open()
                writer.write(request.encode())
            await looked_up.wait()
            if ending == "cancelled":
                asyncio.current_task().cancel()
                await asyncio.sleep(0)

    before = what_is_open()
    async with asyncio.timeout(25):
        (outcome,) = await asyncio.gather(use(), return_exceptions=True)
        await asyncio.gather(*site.tasks)
    assert what_is_open() == before
    assert isinstance(outcome, asyncio.CancelledError) == (ending == "cancelled")


@pytest.mark.parametrize("turns", range(6))
async def test_a_client_that_comes_at_the_last_moment_is_closed_too(open_egress, open_proxy, turns):
    before = what_is_open()
    async with open_proxy(open_egress()) as door:
        client = socket.create_connection(("127.0.0.1", door.port), timeout=5)
        for _ in range(turns):  # from not even seen to being served
            await asyncio.sleep(0)
    with client, suppress(ConnectionError):
        assert client.recv(1) == b""
    assert what_is_open() == before


HEADS = st.lists(
    st.sampled_from(
        (
            *(b"GET", b"CONNECT", b" ", b"http://a.example/", b"HTTP/1.1", b"\r\n", b"Host", b":", b"x", b"\n", b"\r"),
            *(b"Content-Length", b"Transfer-Encoding", b"chunked", b"5", b"\xff", b"\t", b"Connection", b",", b"\0"),
        )
    )
    | st.binary(max_size=4),
    max_size=30,
).map(b"".join)


@given(head=HEADS)
def test_any_head_is_refused_or_read_in_one_way(head):
    try:
        request = parse_request(head)
    except ToolError:
        return
    lines = request.encode("host.example", "/").split(b"\r\n")
    assert lines[1] == b"Host: host.example"
    assert lines[-3:] == [b"Connection: close", b"", b""]
    assert all(re.fullmatch(rb"[!-9;-~]+: [\t -~\x80-\xff]*", line) for line in lines[2:-2])
    named = [line.partition(b":")[0].decode().lower() for line in lines[2:-3]]
    framed = [name for name in named if name in {"content-length", "transfer-encoding"}]
    assert len(framed) == (request.framing is not None)
    assert not set(named) & (HOP_BY_HOP - {"content-length", "transfer-encoding"})


@given(head=HEADS)
def test_any_response_is_refused_or_read_in_one_way(head):
    try:
        response = parse_response(b"HTTP/1.1 200 OK\r\n" + head)
    except ToolError:
        return
    assert response.encode().count(b"\r\n\r\n") == 1
