"""What servers can do to a client that keeps its connections: every trick of framing, timing and order, on both event loops."""

import asyncio
import contextlib
import re
import socket
import struct

import pytest
import uvloop

from toolcrib import Kind, ToolError
from toolcrib.infra.egress import Request, connection_pool
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.dialler import AddressPolicy, Dialler, parse_private
from toolcrib.infra.egress.http1 import MAX_HEAD_BYTES, MAX_HEADERS
from toolcrib.infra.egress.transport import MAX_WAITING, encode_request
from toolcrib.lib.http_syntax import parse_hosts, parse_url

PATIENCE = 20
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Performs one script for each connection, the last one for every further; a script is bytes, or a coroutine function.

    Bytes are sent after each request. `closed` counts the connections that the client has ended.
    """

    def __init__(self, *scripts):
        self.scripts = [*scripts]
        self.connections = 0
        self.requests = []
        self.closed = asyncio.Semaphore(0)

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.perform, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.tasks = set()
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"http://{self.endpoint}/"

    async def perform(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        self.connections += 1
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                if isinstance(script, bytes):
                    while True:
                        await self.read_request(reader)
                        writer.write(script)
                        await writer.drain()
                else:
                    await script(self, reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over; asyncio would report the cancellation of a connection's task
        finally:
            self.closed.release()
            self.tasks.discard(task)
            writer.close()

    async def read_request(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))


async def ask(egress, url, *, seconds=PATIENCE, max_bytes=1_000_000, hosts=None, **request):
    request = Request(url=parse_url(url), **request)
    return await egress.fetch(request, hosts=hosts, max_bytes=max_bytes, max_sent_bytes=100_000_000, timeout=seconds)


async def refused(egress, url, **how):
    """The error that a request ends with."""
    with pytest.raises(ToolError) as caught:
        await ask(egress, url, **how)
    return caught.value


@pytest.fixture(params=[None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request):
    """Run a scenario on an event loop of its own: `play(scenario, *scripts)` gives it a server and an egress."""

    def run(scenario, *scripts, **options):
        async def perform():
            async with asyncio.timeout(PATIENCE), Server(*scripts) as server:
                egress = Egress(private=[server.endpoint], **options)
                try:
                    await scenario(server, egress)
                finally:
                    await egress.close()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(perform())

    return run


def ok(*headers, body=b"hello"):
    return b"HTTP/1.1 200 OK\r\n" + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


REFUSED = {
    "two lengths": ok(b"Content-Length: 5", b"Content-Length: 6"),
    "the same length twice": ok(b"Content-Length: 5", b"Content-Length: 5"),
    "a list of lengths": ok(b"Content-Length: 5, 5"),
    "a length with a sign": ok(b"Content-Length: +5"),
    "a negative length": ok(b"Content-Length: -5"),
    "a hexadecimal length": ok(b"Content-Length: 0x5"),
    "a length with a space": ok(b"Content-Length: 5 5"),
    "an empty length": ok(b"Content-Length:"),
    "a length beyond all bounds": ok(b"Content-Length: 99999999999999999999"),
    "digits that are not ASCII": ok("Content-Length: \u0665".encode()),
    "length and chunks": ok(b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    "chunks and length": ok(b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    "chunked twice": ok(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "chunked in a list": ok(b"Transfer-Encoding: chunked, identity"),
    "compressed by the connection": ok(b"Transfer-Encoding: gzip, chunked"),
    "an unknown coding": ok(b"Transfer-Encoding: xchunked"),
    "a space before the colon": ok(b"Transfer-Encoding : chunked"),
    "a vertical tab in a coding": ok(b"Transfer-Encoding:\x0bchunked"),
    "a folded header": ok(b"X: 1", b" Content-Length: 5"),
    "a header without a name": ok(b": 5"),
    "a header without a colon": ok(b"Content-Length 5"),
    "a zero in a header": ok(b"X: \0"),
    "a control character in a header": ok(b'ETag: "a"\x01'),
    "a bare CR in a header": ok(b"X: 1\rContent-Length: 5"),
    "a bare LF in a header": ok(b"X: 1\nContent-Length: 5"),
    "lines that end with LF": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n",
    "HTTP/2 in plain text": b"HTTP/2 200\r\n\r\n",
    "an old version": b"HTTP/0.9 200 OK\r\n\r\n",
    "lower case": b"http/1.1 200 OK\r\n\r\n",
    "a short status": b"HTTP/1.1 20 OK\r\n\r\n",
    "a long status": b"HTTP/1.1 2000 OK\r\n\r\n",
    "an empty line first": b"\r\n\r\n" + HELLO,
    "another protocol from here on": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "a body before the answer": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 40\r\n\r\n" + EVIL + HELLO,
    "chunks before the answer": b"HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n" + HELLO,
    "a head without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES,
    "a first line without an end": b"HTTP/1.1 200 " + b"x" * MAX_HEAD_BYTES,
    "too many headers": ok(*[b"X: 1"] * (MAX_HEADERS + 1)),
    "more than it says": ok(b"Content-Length: 4"),
    "a chunk without a length": CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
    "a chunk with a sign": CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "a chunk in words of C": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk behind a space": CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n",
    "a chunk length beyond all bounds": CHUNKED + b"100000005\r\nhello\r\n0\r\n\r\n",
    "a chunk that ends with LF": CHUNKED + b"5\nhello\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"4\r\nhello\r\n0\r\n\r\n",
    "a chunk shorter than it says": CHUNKED + b"6\r\nhello\r\n0\r\n\r\n",
    "an endless line between chunks": CHUNKED + b"5;" + b"x" * 70_000,
    "a control character beside a chunk": CHUNKED + b"5;\0\r\nhello\r\n0\r\n\r\n",
    "a response as trailer": CHUNKED + b"5\r\nhello\r\n0\r\n" + EVIL,
    "a folded trailer": CHUNKED + b"5\r\nhello\r\n0\r\n x\r\n\r\n",
    "too many trailers": CHUNKED + b"5\r\nhello\r\n0\r\n" + b"X: 1\r\n" * (MAX_HEADERS + 1) + b"\r\n",
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_an_answer_that_could_be_read_in_two_ways_is_refused_and_its_connection_closed(play, answer):
    async def scenario(server, egress):
        error = await refused(egress, f"{server.url}?key=hunter2", method="POST")
        assert error.message.startswith(f"http://{server.endpoint}: the response is not valid HTTP: ")
        assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.PERMANENT, False, True)
        assert "evil" not in error.message
        assert "hunter2" not in error.message
        await server.closed.acquire()
        assert (await ask(egress, server.url)).body == b"hello"
        assert server.connections == 2

    play(scenario, answer, HELLO)


ACCEPTED = {
    "a plain answer": (HELLO, b"hello", True),
    "chunks": (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", b"hello", True),
    "chunks with extensions": (CHUNKED + b'2;a;b="c"\r\nhe\r\n003 ;x\r\nllo\r\n0;z\r\n\r\n', b"hello", True),
    "trailers": (CHUNKED + b"5\r\nhello\r\n0\r\nContent-Length: 9\r\nX-Later: 1\r\n\r\n", b"hello", True),
    "interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n" + HELLO,
        b"hello",
        True,
    ),
    "an empty interim body": (b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n" + HELLO, b"hello", True),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    "an empty answer": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True),
    "a status that is not listed": (b"HTTP/1.1 999 No\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "nothing modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9999999\r\n\r\n", b"", True),
    "no content, with content": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", b"", False),
    "no content, with chunks": (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", b"", False),
    "nothing modified, with content": (b"HTTP/1.1 304 Not Modified\r\n\r\nhello", b"", False),
    "a connection that is to close": (ok(b"Connection: x, Close", b"Content-Length: 5"), b"hello", False),
    "an old version": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", b"hello", False),
    "a line end too much": (HELLO + b"\r\n", b"hello", False),
    "another answer behind it": (HELLO + EVIL, b"hello", False),
    "the beginning of another answer": (HELLO + b"HTT", b"hello", False),
    "another answer behind chunks": (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + EVIL, b"hello", False),
}


@pytest.mark.parametrize(("answer", "body", "stays"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_connection_is_kept_only_where_its_answer_leaves_no_doubt(play, answer, body, stays):
    async def scenario(server, egress):
        responses = [await ask(egress, server.url) for _ in range(3)]
        assert [response.body for response in responses] == [body] * 3
        assert "x-later" not in responses[0].headers
        assert server.connections == (1 if stays else 3)

    play(scenario, answer)


@pytest.mark.parametrize("behind", [b"", b"hello", EVIL], ids=["nothing", "a body", "an answer"])
def test_the_length_in_an_answer_to_head_is_not_waited_for(play, behind):
    async def scenario(server, egress):
        answer = await ask(egress, server.url, method="HEAD", max_bytes=1)
        assert (answer.status, answer.headers["content-length"], answer.body) == (200, "5", b"")
        server.scripts = [HELLO]
        if behind:
            await server.closed.acquire()
            assert (await ask(egress, server.url)).body == b"hello"
        else:
            assert (await ask(egress, server.url, method="HEAD")).body == b""
        assert server.connections == (2 if behind else 1)

    play(scenario, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + behind)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n"],
)
def test_a_body_without_a_length_ends_with_its_connection(play, answer):
    async def pour(server, reader, writer):
        await server.read_request(reader)
        writer.write(answer + b"hel")
        await writer.drain()
        writer.write(b"lo" + EVIL)
        writer.write_eof()
        await reader.read()

    async def scenario(server, egress):
        for _ in range(2):
            assert (await ask(egress, server.url)).body == b"hello" + EVIL
        assert server.connections == 2

    play(scenario, pour)


CUT = {
    "nothing": (b"", "the connection was closed before the response was complete"),
    "half of a head": (b"HTTP/1.1 200 OK\r\nContent-Len", "the connection was closed before the response was complete"),
    "an interim answer": (
        b"HTTP/1.1 100 Continue\r\n\r\n",
        "the connection was closed before the response was complete",
    ),
    "half of a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "is incomplete or shorter than declared"),
    "half of a chunk": (CHUNKED + b"5\r\nhel", "is incomplete or shorter than declared"),
    "a chunk": (CHUNKED + b"5\r\nhello\r\n", "is incomplete or shorter than declared"),
    "chunks without their end": (CHUNKED + b"5\r\nhello\r\n0\r\n", "is incomplete or shorter than declared"),
}


@pytest.mark.parametrize("end", ["half-closed", "closed", "reset"])
@pytest.mark.parametrize(("answer", "reason"), CUT.values(), ids=CUT)
def test_an_answer_that_breaks_off_is_an_error_that_may_pass(play, answer, reason, end):
    async def cut(server, reader, writer):
        await server.read_request(reader)
        writer.write(answer)
        await writer.drain()
        if end == "half-closed":
            writer.write_eof()
            await reader.read()
        elif end == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    async def scenario(server, egress):
        error = await refused(egress, server.url)
        assert (error.kind, error.retryable) == (Kind.TRANSIENT, True)
        # What is still on its way may be dropped with a reset, the head included.
        assert end == "reset" or reason in error.message
        assert (await ask(egress, server.url)).body == b"hello"
        assert len(server.requests) == 2

    play(scenario, cut, HELLO)


def test_an_answer_that_comes_before_its_question_is_never_taken_for_it(play):
    """The server sends a second answer between two requests: whether or not the loop has seen it, it is dropped."""

    async def poison(server, reader, writer):
        await server.read_request(reader)
        writer.write(HELLO)
        await server.answered.wait()
        writer.write(EVIL)
        await writer.drain()
        server.poisoned.set()
        await reader.read()

    async def scenario(server, egress):
        server.answered, server.poisoned = asyncio.Event(), asyncio.Event()
        assert (await ask(egress, server.url)).body == b"hello"
        server.answered.set()
        await server.poisoned.wait()
        assert (await ask(egress, server.url)).body == b"hello"
        assert server.connections == 2

    for _ in range(5):
        play(scenario, poison, HELLO)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(play):
    async def answer_once(server, reader, writer):
        await server.read_request(reader)
        writer.write(HELLO)
        await server.answered.wait()
        writer.close()
        await writer.wait_closed()
        server.gone.set()

    async def scenario(server, egress):
        server.answered, server.gone = asyncio.Event(), asyncio.Event()
        await ask(egress, server.url)
        server.answered.set()
        await server.gone.wait()
        assert (await ask(egress, server.url, method="POST", body=b"once")).body == b"hello"
        assert [request.endswith(b"once") for request in server.requests] == [False, True]

    play(scenario, answer_once, HELLO)


def test_an_answer_before_the_whole_request_is_taken_and_its_connection_closed(play):
    async def refuse_early(server, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await server.answered.wait()

    async def scenario(server, egress):
        server.answered = asyncio.Event()
        response = await ask(egress, server.url, method="POST", body=b"x" * 30_000_000)
        server.answered.set()
        assert (response.status, response.body) == (413, b"no")
        assert (await ask(egress, server.url)).body == b"hello"
        assert server.connections == 2

    play(scenario, refuse_early, HELLO)


@pytest.mark.parametrize(
    "drop", [b"H", b"HTTP/1.1 200 OK\r\nX: x", ok(b"Content-Length: 99999", body=b"x"), CHUNKED + b"1"]
)
def test_a_server_that_sends_byte_after_byte_is_given_up_at_the_deadline(play, drop):
    async def drip(server, reader, writer):
        await server.read_request(reader)
        writer.write(HELLO)
        await server.read_request(reader)
        writer.write(drop)
        await reader.read()

    async def scenario(server, egress):
        # Over a connection that is there already: on a busy machine the short time might end before there is one.
        assert (await ask(egress, server.url)).body == b"hello"
        error = await refused(egress, server.url, seconds=0.05)
        assert (error.kind, error.message) == (
            Kind.TIMEOUT,
            f"http://{server.endpoint}: no complete response within 0.05 s",
        )
        await server.closed.acquire()
        assert (await ask(egress, server.url)).body == b"hello"

    play(scenario, drip, HELLO)


def test_the_deadlines_of_many_requests_are_each_their_own(play):
    async def hold(server, reader, writer):
        await server.read_request(reader)
        await reader.read()

    async def scenario(server, egress):
        async def late(seconds):
            return (await refused(egress, server.url, seconds=seconds)).message

        messages = await asyncio.gather(*(late(seconds) for seconds in (0.3, 0.01, 0.2, 0.1, 0)))
        assert [message.rpartition("within ")[2] for message in messages] == [
            "0.3 s",
            "0.01 s",
            "0.2 s",
            "0.1 s",
            "0 s",
        ]

    play(scenario, hold)


def test_a_cancelled_request_closes_its_connection_and_frees_its_place(play, monkeypatch):
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS", 2)

    async def hold(server, reader, writer):
        await server.read_request(reader)
        server.asked.release()
        await reader.read()

    async def scenario(server, egress):
        server.asked = asyncio.Semaphore(0)
        held = [asyncio.create_task(ask(egress, server.url)) for _ in range(2)]
        for _ in held:
            await server.asked.acquire()
        waiting = [asyncio.create_task(ask(egress, server.url)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in (waiting[1], *held):
            task.cancel()
        for _ in held:
            await server.closed.acquire()
        for _ in range(2):
            await server.asked.acquire()
        for task in waiting:
            task.cancel()
        ended = await asyncio.gather(*held, *waiting, return_exceptions=True)
        assert {type(each) for each in ended} == {asyncio.CancelledError}
        server.scripts = [HELLO]
        answers = await asyncio.gather(*(ask(egress, server.url) for _ in range(5)))
        assert {answer.body for answer in answers} == {b"hello"}
        assert server.connections <= 6

    play(scenario, hold)


def test_a_place_that_is_handed_over_to_a_cancelled_request_is_not_lost(play, monkeypatch):
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS", 1)

    async def scenario(server, _):
        url = parse_url(server.url)
        pool = connection_pool.ConnectionPool(Dialler(policy=AddressPolicy(private=parse_private([server.endpoint]))))
        connection = await pool.take(url, None)
        waiting = asyncio.create_task(pool.take(url, None))
        await asyncio.sleep(0)
        pool.give_back(connection)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        pool.give_back(await pool.take(url, None))
        await pool.close()

    play(scenario, HELLO)


def test_a_request_that_waits_for_a_connection_ends_at_its_deadline(play, monkeypatch):
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS", 1)

    async def hold(server, reader, writer):
        await server.read_request(reader)
        server.asked.set()
        await server.answered.wait()
        while True:
            writer.write(HELLO)
            await server.read_request(reader)

    async def scenario(server, egress):
        server.asked, server.answered = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(ask(egress, server.url))
        await server.asked.wait()
        assert (await refused(egress, server.url, seconds=0.05)).kind is Kind.TIMEOUT
        second = asyncio.create_task(ask(egress, server.url))
        server.answered.set()
        assert (await first).body == b"hello"
        server.scripts = [HELLO]
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert (await ask(egress, f"{server.url}?last")).body == b"hello"

    play(scenario, hold, HELLO)


def test_connections_for_which_there_is_no_room_are_closed_before_new_ones_open(play, monkeypatch):
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS", 2)

    async def scenario(server, egress):
        for name in ("a", "b", "c"):
            await ask(egress, f"http://{name}.example:{server.port}/")
        await server.closed.acquire()  # that of a, which was used first
        await ask(egress, f"http://c.example:{server.port}/")
        await ask(egress, f"http://b.example:{server.port}/")
        assert server.connections == 3

    async def resolve(host, port):
        return ["127.0.0.1"]

    play(scenario, HELLO, resolve=resolve)


def test_names_of_one_address_share_no_connection(play):
    async def scenario(server, egress):
        for _ in range(2):
            for name in ("a", "b"):
                await ask(egress, f"http://{name}.example:{server.port}/")
        assert server.connections == 2
        assert [re.search(rb"Host: (.)", request)[1] for request in server.requests] == [b"a", b"b", b"a", b"b"]

    async def resolve(host, port):
        return ["127.0.0.1"]

    play(scenario, HELLO, resolve=resolve)


def test_a_connection_that_is_not_used_for_long_is_closed(play, monkeypatch):
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.01)

    async def scenario(server, egress):
        await ask(egress, server.url)
        await server.closed.acquire()
        await ask(egress, server.url)
        assert server.connections == 2

    play(scenario, HELLO)


def test_closing_ends_requests_that_are_under_way(play):
    async def hold(server, reader, writer):
        await server.read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        server.asked.set()
        await reader.read()

    async def scenario(server, egress):
        server.asked = asyncio.Event()
        under_way = asyncio.create_task(refused(egress, server.url))
        await server.asked.wait()
        await egress.close()
        assert (await under_way).kind is Kind.TRANSIENT

    play(scenario, hold)


def test_a_stream_that_nothing_reads_slows_its_server_down(play):
    """What is held is bounded by what may wait and one more read of the socket, and not by what the server would send."""

    async def pour(server, reader, writer):
        await server.read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        writer.transport.set_write_buffer_limits(high=0)
        for _ in range(1_000):
            writer.write(b"x" * 100_000)
            await writer.drain()

    async def scenario(server, egress):
        request = Request(url=parse_url(server.url))
        async with egress.stream(request, hosts=None, max_piece=100_000_000) as (_, pieces):
            total = len(await anext(pieces))
            for _ in range(5):
                for _ in range(200):
                    await asyncio.sleep(0)
                piece = len(await anext(pieces))
                assert piece <= MAX_WAITING + 2**18
                total += piece
            async for piece in pieces:
                total += len(piece)
            assert total == 100_000_000

    play(scenario, pour)


def test_a_connection_whose_stream_was_left_unread_can_be_used_again(play):
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000

    async def scenario(server, egress):
        request = Request(url=parse_url(server.url))
        for _ in range(3):
            async with egress.stream(request, hosts=None, max_piece=100_000) as (head, _):
                assert head.status == 200
            assert (await ask(egress, server.url)).body == b"x" * 100_000

    play(scenario, large)


def test_a_stream_that_breaks_off_fails_where_it_does(play):
    async def cut(server, reader, writer):
        await server.read_request(reader)
        writer.write(CHUNKED + b"5\r\nhello\r\n")
        await writer.drain()

    async def scenario(server, egress):
        got = b""
        with pytest.raises(ToolError, match="is incomplete or shorter than declared") as caught:
            async with egress.stream(Request(url=parse_url(server.url)), hosts=None, max_piece=100) as (_, pieces):
                async for piece in pieces:
                    got += piece
        assert (got, caught.value.kind) == (b"hello", Kind.TRANSIENT)
        with pytest.raises(ToolError, match="not valid HTTP"):
            async with egress.stream(Request(url=parse_url(server.url)), hosts=None, max_piece=100):
                pass

    play(scenario, cut, b"nonsense\r\n\r\n")


@pytest.mark.parametrize("first", ["refuses", "never answers"])
def test_another_address_is_tried_when_the_first_is_of_no_use(play, monkeypatch, first):
    monkeypatch.setattr("toolcrib.infra.egress.dialler.CONNECT_SECONDS", 100 * PATIENCE)

    async def resolve(host, port):
        return ["127.0.0.2", "127.0.0.1"]

    async def scenario(server, egress):
        with contextlib.ExitStack() as stack:
            if first == "never answers":
                # Linux drops what comes when the queue is full.
                dead = stack.enter_context(socket.create_server(("127.0.0.2", server.port), backlog=0))
                for _ in range(10):
                    filler = stack.enter_context(socket.socket())
                    filler.setblocking(False)
                    filler.connect_ex(dead.getsockname())
            url = f"http://two.example:{server.port}/"
            egress = Egress(private=[server.endpoint, f"127.0.0.2:{server.port}"], resolve=resolve)
            assert (await ask(egress, url, hosts=parse_hosts([f"two.example:{server.port}"]))).body == b"hello"
            await egress.close()

    play(scenario, HELLO)


def test_repeated_headers_are_joined_and_what_is_not_ascii_is_utf_8(play):
    async def scenario(server, egress):
        headers = (await ask(egress, server.url)).headers
        assert headers == {"x-a": "1, 2", "location": "/ä", "content-length": "0", "x-b": "\udcff"}

    answer = "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:\t2 \r\nLocation: /ä\r\nX-B: ".encode()
    play(scenario, answer + b"\xff\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://a.example/", {"X-A": "1\r\nX-Injected: 1"}),
        ("http://a.example/", {"X-A\nX-Injected": "1"}),
        ("http://a.example/", {"X-A": "1\r"}),
    ],
)
def test_a_line_that_gets_past_all_checks_is_found_before_it_is_sent(url, headers):
    given = {}
    request = Request(url=parse_url(url), headers=given)
    given |= headers
    with pytest.raises(ToolError, match="a line break or a space where none may be") as caught:
        encode_request(request, "identity")
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: 1", "/ HTTP/1.1\r\n\r\nGET /"])
def test_a_target_that_gets_past_all_checks_is_found_before_it_is_sent(target):
    url = parse_url("http://a.example/")
    object.__setattr__(url, "target", target)
    with pytest.raises(ToolError, match="a line break or a space where none may be"):
        encode_request(Request(url=url), "identity")
