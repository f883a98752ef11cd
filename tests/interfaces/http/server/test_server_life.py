"""How the server begins and how it ends."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket

import orjson
import pytest

from toolcrib import SettingsError
from toolcrib.interfaces.http import server

HOST = b"Host: localhost\r\n"


def test_a_port_that_is_taken_is_named_with_the_cure():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsError) as refused:
        server.open_sockets("127.0.0.1", port := taken.getsockname()[1])
    assert (
        refused.value.message
        == f"port {port} of 127.0.0.1 is taken; choose another with --port, or 0 for any that is free"
    )


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("192.0.2.1", "192.0.2.1 is not an address of this machine; listen on one that is: --host 127.0.0.1"),
        (
            "nowhere.invalid",
            "the host 'nowhere.invalid' is unknown; listen on an address of this machine: --host 127.0.0.1",
        ),
    ],
)
def test_a_host_that_is_not_ours_is_named_with_the_cure(host, message):
    with pytest.raises(SettingsError) as refused:
        server.open_sockets(host, 0)
    assert refused.value.message == message


def test_localhost_listens_on_each_of_its_addresses_with_one_port():
    sockets = server.open_sockets("localhost", 0)
    try:
        assert len({one.getsockname()[1] for one in sockets}) == 1
        assert server.url_of("localhost", sockets) == f"http://localhost:{sockets[0].getsockname()[1]}"
        assert server.url_of("::1", sockets).startswith("http://[::1]:")
    finally:
        for one in sockets:
            one.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])
def test_loopback_is_known(host):
    assert server.is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example.com", "127.0.0.1.example.com", "2130706433"]
)
def test_what_is_not_loopback_is_not_taken_for_it(host):
    assert not server.is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_a_server_for_others_does_not_start_without_a_token(crib_of, project, host):
    with pytest.raises(SettingsError, match="crib token create"):
        await asyncio.wait_for(server.serve(crib_of(project=project), host=host, port=0, say=print), 25)


async def test_a_token_that_has_expired_lets_no_server_start_for_others(crib_of, project):
    crib = crib_of(project=project)
    crib.tokens.create("short", ["read"], seconds=0.001)
    await asyncio.sleep(0.002)
    with pytest.raises(SettingsError, match="crib token create"):
        await asyncio.wait_for(server.serve(crib, host="0.0.0.0", port=0, say=print), 25)


async def test_a_token_in_force_lets_a_server_start_for_others(crib_of, project):
    crib = crib_of(project=project)
    crib.tokens.create("new", ["read"])
    # It gets as far as the address, which this machine does not have.
    with pytest.raises(SettingsError, match=r"192\.0\.2\.1 is not an address of this machine"):
        await asyncio.wait_for(server.serve(crib, host="192.0.2.1", port=0, say=print), 25)


def test_room_is_made_for_connections_as_far_as_the_system_allows():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, before[1]))
        assert server.room_for(2_000) == 2_000
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 2_000 + server.SPARE_FILES
        assert server.room_for(10**9) == before[1] - server.SPARE_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_quick_event_loop_is_taken():
    loop = server.new_loop()
    try:
        assert type(loop).__module__.startswith("uvloop")
    finally:
        loop.close()


async def test_the_first_signal_lets_calls_finish_and_takes_on_no_more(serving):
    served = await serving(server={"drain_seconds": 10})
    idle, busy = await served.connect(), await served.connect()
    assert (await idle.ask("POST", "/echo", b"hi"))[2] == b"hi"
    await busy.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n")
    await served.until(lambda: served.app.arrived.qsize() == 2)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await idle.rest() == b""
    assert not served.service.ready
    with pytest.raises(ConnectionRefusedError):
        await served.connect()
    served.app.go_on.set()
    status, headers, body = await busy.answer()
    assert (status, headers[b"connection"], body) == (200, b"close", b"done")
    assert await asyncio.wait_for(served.task, 25) == 0
    assert served.said == ["shutting down; requests in progress: 1; a second signal cancels them"]


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_the_second_signal_stops_what_is_running_and_says_so(serving, second):
    served = await serving(server={"drain_seconds": 1_000})
    busy = await served.connect()
    await busy.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n")
    await served.app.arrived.get()
    os.kill(os.getpid(), signal.SIGINT)
    await served.until(lambda: not served.service.ready)
    os.kill(os.getpid(), second)
    status, _, body = await busy.answer()
    assert (status, orjson.loads(body)["detail"]) == (503, "the server is shutting down; retry when it is back")
    assert await asyncio.wait_for(served.task, 25) == 0


async def test_calls_that_do_not_finish_in_time_are_stopped(serving):
    served = await serving(server={"drain_seconds": 0.2})
    busy = await served.connect()
    await busy.send(b"GET /wait HTTP/1.1\r\n" + HOST + b"\r\n")
    await served.app.arrived.get()
    os.kill(os.getpid(), signal.SIGTERM)
    assert (await busy.answer())[0] == 503
    assert await asyncio.wait_for(served.task, 25) == 0


async def test_signals_mean_what_they_meant_before_once_the_server_has_ended(serving):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    served = await serving()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(served.task, 25) == 0
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_a_server_that_may_not_have_all_its_connections_says_so(serving):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        served = await serving(server={"connections": hard + 1})
        assert served.said == [
            f"the system allows {hard - 256} connections; raise the limit of open files (ulimit -n) for more"
        ]
        assert served.service.connections.most == hard - 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
