"""Every wait for a client is bounded, and no client takes more than a share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os

import orjson
import pytest

from toolcrib.interfaces.http.server_state import Connections, Service, network_of
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.interfaces.http.uvicorn_server import LINGER_BYTES, GuardedProtocol

HOST = b"Host: localhost\r\n"
SOON = {"header_seconds": 0.3, "body_seconds": 0.3, "keep_alive_seconds": 0.3}


async def test_headers_that_do_not_come_end_the_connection_with_408(serving):
    served = await serving(SOON)
    heard = await served.exchange(b"GET /echo HTTP/1.1\r\nHost: loc")
    assert heard.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert served.app.seen == []


async def test_headers_that_drip_are_not_waited_for_longer(serving):
    served = await serving(SOON)
    client = await served.connect()
    await client.send(b"GET /echo HTTP/1.1\r\n")
    dripping = asyncio.ensure_future(drip(client, b"X-A: b\r\n"))
    assert (await client.rest()).startswith(b"HTTP/1.1 408 ")
    dripping.cancel()


async def drip(client, piece: bytes) -> None:
    while True:
        await client.send(piece)
        await asyncio.sleep(0.02)


async def test_a_connection_that_says_nothing_is_closed(serving):
    served = await serving(SOON)
    assert await served.exchange() == b""
    await served.until(lambda: served.service.connections.total == 0)


async def test_empty_lines_are_no_reason_to_wait(serving):
    served = await serving(SOON)
    client = await served.connect()
    assert (await client.ask("POST", "/echo", b"a"))[0] == 200
    dripping = asyncio.ensure_future(drip(client, b"\r\n"))
    assert await client.rest() == b""
    dripping.cancel()


async def test_a_connection_between_requests_is_kept_and_then_closed(serving):
    served = await serving(SOON)
    client = await served.connect()
    assert (await client.ask("POST", "/echo", b"a"))[0] == 200
    assert (await client.ask("POST", "/echo", b"b"))[2] == b"b"
    assert await client.rest() == b""


async def test_the_headers_of_a_later_request_have_the_same_time(serving):
    served = await serving(SOON)
    client = await served.connect()
    assert (await client.ask("POST", "/echo", b"a"))[0] == 200
    await client.send(b"GET /echo HT")
    assert (await client.rest()).startswith(b"HTTP/1.1 408 ")


async def test_a_later_request_that_has_begun_is_not_held_to_the_time_between_requests(serving):
    served = await serving(server={"keep_alive_seconds": 0.3})
    client, idle = await served.connect(), await served.connect()
    assert (await client.ask("POST", "/echo", b"a"))[0] == 200
    await client.send(b"GET /echo HT")
    assert (await idle.ask("POST", "/echo", b"a"))[0] == 200
    assert await idle.rest() == b""
    await client.send(b"TP/1.1\r\n" + HOST + b"\r\n")
    assert (await client.answer())[0] == 200


async def test_a_body_that_does_not_come_is_told_408(serving):
    served = await serving(SOON)
    client = await served.connect()
    await client.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nab")
    status, headers, body = await client.answer()
    assert (status, headers[b"connection"]) == (408, b"close")
    assert b"the body did not arrive within 0.3 s" in body
    assert await client.rest() == b""
    await asyncio.wait_for(served.app.ended.get(), 25)


async def test_a_body_that_drips_is_not_waited_for_longer(serving):
    served = await serving(SOON)
    client = await served.connect()
    await client.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
    dripping = asyncio.ensure_future(drip(client, b"1\r\na\r\n"))
    assert (await client.answer())[0] == 408
    dripping.cancel()


async def test_a_body_that_came_leaves_all_the_time_for_the_work(serving):
    served = await serving(server={"body_seconds": 0.1})
    client = await served.connect()
    await client.send(b"POST /wait HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab")
    await served.app.arrived.get()
    other = await served.connect()
    # A request that is late for its body has been stopped meanwhile; the one that waits has not.
    await other.send(b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\na")
    assert (await other.answer())[0] == 408
    served.app.go_on.set()
    assert (await client.answer())[::2] == (200, b"done")


async def test_work_that_takes_too_long_is_stopped_and_told_504(serving):
    served = await serving(server={"total_seconds": 0.3})
    client = await served.connect()
    await client.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n")
    status, headers, body = await client.answer()
    assert (status, headers[b"content-type"]) == (504, b"application/problem+json")
    assert orjson.loads(body)["detail"] == "the request timed out after 0.3 s"
    await asyncio.wait_for(served.app.ended.get(), 25)


@pytest.mark.parametrize("path", [b"/endless", b"/large"])
async def test_a_client_that_does_not_read_is_cut_off(serving, path):
    served = await serving(server={"body_seconds": 0.3})
    client = await served.connect()
    client.writer.transport.pause_reading()
    await client.send(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    await served.app.arrived.get()
    await served.until(lambda: served.service.connections.total == 0)
    served.app.go_on.set()
    await asyncio.wait_for(served.app.ended.get(), 25)


async def test_a_client_that_reads_slowly_gets_everything(serving):
    served = await serving(server={"body_seconds": 1})
    client = await served.connect()
    await client.send(b"GET /large HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    read = 0
    while piece := await asyncio.wait_for(client.reader.read(1_000_000), 25):
        read += len(piece)
        await asyncio.sleep(0.002)
    assert read > 40_000_000


async def test_a_client_that_reads_on_gets_everything_however_long_it_takes(serving):
    served = await serving(SOON)
    client = await served.connect()
    await client.send(b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n")
    read, end = 0, asyncio.get_running_loop().time() + 3 * SOON["body_seconds"]
    while read < 40_000_000:
        piece = await asyncio.wait_for(client.reader.read(200_000), 25)
        assert piece, f"cut off after {read} bytes"
        read += len(piece)
        if asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)


async def test_a_client_that_reads_next_to_nothing_is_cut_off(serving):
    served = await serving(SOON)
    client = await served.connect()
    client.writer.transport.pause_reading()
    await client.send(b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n")
    await served.app.arrived.get()
    source = client.writer.transport.get_extra_info("socket").fileno()

    def is_cut_off() -> bool:
        with contextlib.suppress(OSError):
            os.read(source, 100)
        return not served.service.connections.total

    await served.until(is_cut_off)


async def test_what_follows_an_early_answer_is_read_away_for_a_moment_only(serving, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.LINGER_SECONDS", 0.3)
    served = await serving()
    client = await served.connect()
    await client.send(b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000000000\r\n\r\n")
    assert (await client.answer())[0] == 401
    with pytest.raises(ConnectionError):
        while True:
            await client.send(b"x" * 65_536)


async def test_a_client_that_goes_on_sending_after_an_early_answer_is_cut_off(serving, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.LINGER_SECONDS", 1_000.0)
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.UNREAD_SECONDS", 0.1)
    served = await serving()
    client = await served.connect()
    await client.send(b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000000000\r\n\r\n")
    assert (await client.answer())[0] == 401
    with pytest.raises(ConnectionError):
        for _ in range(1_000):
            await client.send(b"x" * 65_536)
    await served.until(lambda: served.service.connections.total == 0)


@pytest.mark.parametrize("head", [b"HTTP/1.1\r\nConnection: close\r\n", b"HTTP/1.0\r\n"])
async def test_a_connection_to_be_closed_takes_the_rest_of_a_body_and_no_further_request(serving, head):
    served = await serving()
    client = await served.connect()
    body = b"x" * 300_000
    await client.send(b"POST /early " + head + HOST + b"Content-Length: %d\r\n\r\n" % len(body))
    assert (await client.answer())[::2] == (401, b"no")
    # The client hears the end at once, and what it still sends is not answered with a reset.
    assert await client.rest() == b""
    await client.send(body, b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n")
    await client.close()
    await served.until(lambda: served.service.connections.total == 0)
    assert [scope["path"] for scope in served.app.seen] == ["/early"]


async def test_a_connection_to_be_closed_takes_the_rest_of_a_body_for_a_moment_only(serving, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.LINGER_SECONDS", 0.1)
    served = await serving()
    client = await served.connect()
    await client.send(b"POST /early HTTP/1.0\r\n" + HOST + b"Content-Length: 1000000000000\r\n\r\n")
    assert (await client.answer())[0] == 401
    await served.until(lambda: served.service.connections.total == 0)


async def test_a_client_that_sends_far_too_much_before_it_reads_gets_the_answer(serving, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.LINGER_SECONDS", 1_000.0)
    monkeypatch.setattr("toolcrib.interfaces.http.uvicorn_server.UNREAD_SECONDS", 1_000.0)
    served = await serving()
    client = await served.connect()
    assert (await client.ask("POST", "/echo", b"in"))[0] == 200
    client.writer.transport.pause_reading()
    client.writer.write(b"POST /early HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000000000\r\n\r\n")
    client.writer.write(b"x" * 50_000_000)
    # The server takes so much and no more: what it left unread stays with the client.
    [connection] = [each for each in gc.get_objects() if type(each) is GuardedProtocol and each._address is not None]
    await served.until(lambda: connection._read_away > LINGER_BYTES)
    client.writer.transport.resume_reading()
    assert (await client.answer())[0] == 401
    assert client.writer.transport.get_write_buffer_size() > 0
    client.writer.transport.abort()


async def test_the_memory_of_closed_connections_is_returned_without_the_garbage_collector(serving):
    served = await serving()

    def connections() -> int:
        return sum(type(each) is GuardedProtocol for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = connections()
        for _ in range(5):
            client, ahead = await served.connect(), await served.connect()
            assert (await client.ask("POST", "/echo", b"in"))[2] == b"in"
            await client.close()
            # With a request that never begins, because its client leaves before.
            await ahead.send((b"GET /stay HTTP/1.1\r\n" + HOST + b"\r\n") * 2)
            await ahead.close()
        await served.until(lambda: served.service.connections.total == 0 and not served.service.exchanges)
        await served.until(lambda: connections() == before)
    finally:
        gc.enable()


async def test_there_are_so_many_connections_and_no_more(serving):
    served = await serving(server={"connections": 3})
    clients = [await served.connect() for _ in range(3)]
    for client in clients:
        assert (await client.ask("POST", "/echo", b"in"))[2] == b"in"
    heard = await served.exchange()
    assert heard.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"\r\nretry-after: 1\r\n" in heard
    await clients[0].close()
    await served.until(lambda: served.service.connections.total == 2)
    again = await served.connect()
    assert (await again.ask("POST", "/echo", b"in"))[2] == b"in"


async def test_one_address_does_not_take_all_connections(serving):
    served = await serving(server={"connections": 10, "address_connections": 2})
    await served.connect()
    await served.connect()
    await served.until(lambda: served.service.connections.total == 2)
    assert (await served.exchange()).startswith(b"HTTP/1.1 429 ")
    assert "toolcrib_http_connections_refused_total 1" in served.service.metrics_text()


def test_an_address_has_a_share_of_the_connections_by_default_and_loopback_may_have_all():
    connections = Service(ServerSettings.of({})).connections
    assert all(connections.enter("192.0.2.7") for _ in range(1_000))
    assert not connections.enter("192.0.2.7")
    assert connections.enter("192.0.2.8")
    assert all(connections.enter(address) for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for _ in range(1_001))


def test_neighbours_of_one_half_of_ipv6_count_as_one():
    door = Connections(100, 2)
    assert door.enter("2001:db8::1")
    assert door.enter("2001:db8::2:3%eth0")
    assert not door.enter("2001:db8::ffff")
    assert door.enter("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7")
    door.leave("2001:db8::1")
    assert door.enter("2001:db8::9")
    assert door.total == 3
