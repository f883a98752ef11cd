"""What ordinary clients get from the proxy."""

import asyncio
import json
import shutil
import socket
import ssl
import sys
from pathlib import Path

import pytest

from toolcrib import ToolError
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.dialler import AddressPolicy, Dialler
from toolcrib.infra.egress.proxy import Visit
from toolcrib.lib.http_syntax import parse_hosts

CERTIFICATE = Path(__file__).with_name("tls.example.pem")
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Of-The-Site: yes\r\n\r\nhello"
SCRIPT = """
import json, sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], sys.argv[2].encode() if len(sys.argv) > 2 else None, timeout=5) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, str(error)]))
"""


@pytest.fixture
def python_script():
    """Run urllib in a process of its own, which knows the proxy from its environment alone."""

    async def run(door, *words):
        return json.loads(await run_program(door, sys.executable, "-I", "-c", SCRIPT, *words))

    return run


@pytest.fixture
def curl():
    program = shutil.which("curl")
    if program is None:
        pytest.skip("curl is not installed here")

    async def run(door, *words):
        return await run_program(door, program, "-q", "-s", "-S", "-i", "-m", "5", *words)

    return run


async def run_program(door, *argv):
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    process = await asyncio.create_subprocess_exec(
        *argv, env=dict.fromkeys(names, door.url), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(25):
        output, _ = await process.communicate()
    return output.decode()


async def echo(reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()


async def test_python_reaches_a_listed_host_through_the_proxy(serve, open_egress, open_proxy, python_script):
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        assert await python_script(door, site.url("/path?q=1")) == [200, "hello"]
    assert site.requests[0].startswith(b"GET /path?q=1 HTTP/1.1\r\nHost: " + site.endpoint.encode() + b"\r\n")
    assert door.log.visits == [Visit("127.0.0.1", site.port, allowed=True)]


async def test_python_is_told_which_host_is_refused_and_why(open_egress, open_proxy, python_script):
    async with open_proxy(open_egress(), parse_hosts(["api.example.com"])) as door:
        status, text = await python_script(door, "http://other.example/")
        tunnel = await python_script(door, "https://other.example/")
    reason = (
        'other.example is not among the allowed hosts (api.example.com); add "other.example" to the hosts of the tool'
    )
    assert (status, text) == (403, f"{reason}\n")
    assert tunnel == [0, f"<urlopen error Tunnel connection failed: 403 {reason}>"]
    assert door.log.visits == [Visit("other.example", port, allowed=False, reason=reason) for port in (80, 443)]


async def test_a_posted_body_arrives_whole(serve, open_egress, open_proxy, python_script):
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        assert await python_script(door, site.url(), "x" * 70_000) == [200, "hello"]
    assert site.requests[0].endswith(b"\r\n\r\n" + b"x" * 70_000)


async def test_a_redirect_is_left_to_the_client_and_checked_when_it_follows(
    serve, open_egress, open_proxy, python_script
):
    site = await serve(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, text = await python_script(door, site.url())
    assert status == 403
    assert text.startswith("127.0.0.1 lies in 127.0.0.0/8 (loopback); ")
    assert [(visit.port, visit.allowed) for visit in door.log.visits] == [(site.port, True), (1, False)]


async def test_curl_reaches_a_site_and_sends_a_large_body(serve, open_egress, open_proxy, curl, tmp_path):
    (tmp_path / "large").write_bytes(b"y" * 2_000_000)
    site = await serve(HELLO)
    async with open_proxy(open_egress(site.endpoint)) as door:
        assert (await curl(door, site.url())).endswith("\r\n\r\nhello")
        # curl waits with such a body for the word to go on.
        assert (await curl(door, "-T", str(tmp_path / "large"), site.url())).endswith("hello")
        assert await curl(door, "-H", "Transfer-Encoding: chunked", "-T", str(tmp_path / "large"), site.url())
    assert site.requests[1].endswith(b"y" * 2_000_000)


async def test_curl_shows_the_reason_of_a_refused_tunnel(open_egress, open_proxy, curl):
    async with open_proxy(open_egress()) as door:
        shown = await curl(door, "https://10.1.2.3/")
    assert "HTTP/1.1 403 10.1.2.3 lies in 10.0.0.0/8 (private); " in shown


async def test_a_tunnel_to_a_port_that_nothing_declares_is_refused(open_egress, open_proxy, names):
    resolve = names()
    async with open_proxy(open_egress(resolve=resolve)) as door:
        status, rest = await door.ask("CONNECT mail.example:25 HTTP/1.1\r\n\r\n")
    assert status == 403
    assert "mail.example:25: a port other than 80 and 443 has to be declared" in rest
    assert resolve.asked == []


async def test_tls_goes_through_the_tunnel_untouched(serve, open_egress, open_proxy, names):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    site = await serve(HELLO, tls=tls)
    resolve = names(tls_example=[["127.0.0.1"]])
    async with open_proxy(open_egress(site.endpoint, resolve=resolve), parse_hosts([f"*.example:{site.port}"])) as door:
        reader, writer = await door.open()
        writer.write(f"CONNECT tls.example:{site.port} HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(25):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
            await writer.start_tls(ssl.create_default_context(cafile=CERTIFICATE), server_hostname="tls.example")
            writer.write(b"GET / HTTP/1.1\r\nHost: tls.example\r\n\r\n")
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
        await writer.wait_closed()
    assert resolve.asked == [("tls.example", site.port)]


async def test_a_tunnel_carries_bytes_both_ways_until_both_sides_end(serve, open_egress, open_proxy):
    site = await serve(lambda _: echo)
    async with open_proxy(open_egress(site.endpoint)) as door:
        reader, writer = await door.open()
        # What is sent before the tunnel stands is for the other side, too.
        writer.write(f"CONNECT {site.endpoint} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode() + b"z" * 300_000)
        writer.write_eof()
        async with asyncio.timeout(25):
            answer = await reader.read()
        writer.close()
    assert answer.endswith(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 300_000)


async def test_headers_of_the_connection_stay_behind_and_the_host_is_the_checked_one(serve, open_egress, open_proxy):
    site = await serve(
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, x-of-hop\r\nX-Of-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n"
        b"Proxy-Authenticate: Basic\r\nX-Kept: yes\r\n\r\nok"
    )
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, answer = await door.ask(
            f"GET {site.url('/a')} HTTP/1.1\r\nHost: elsewhere.example\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
            "Proxy-Connection: keep-alive\r\nConnection: X-Mine, content-length\r\nX-Mine: 1\r\nTE: trailers\r\n"
            "Upgrade: h2c\r\nX-Kept: caf\xe9\r\nContent-Length: 0\r\n\r\n"
        )
    assert status == 200
    assert site.requests[0] == (
        f"GET /a HTTP/1.1\r\nHost: {site.endpoint}\r\nx-kept: caf\xe9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ).encode("latin-1")
    assert answer == "x-kept: yes\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


async def test_chunks_pass_in_both_directions_and_end_where_they_end(serve, open_egress, open_proxy):
    async def reply(reader, writer):
        body = await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;note=1\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n"
        )
        site.requests.append(body)
        await reader.read()  # the connection stays open, and the proxy does not wait for it

    site = await serve(lambda _: reply)
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, answer = await door.ask(
            f"POST {site.url()} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n00A\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
            "GET http://127.0.0.1/smuggled HTTP/1.1\r\n\r\n"
        )
    assert site.requests[1] == b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"
    assert (status, answer.partition("\r\n\r\n")[2]) == (200, "5\r\nhello\r\n0\r\n\r\n")


async def test_a_response_without_length_goes_on_to_the_end_of_its_connection(serve, open_egress, open_proxy):
    async def reply(reader, writer):
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"part " * 30_000)

    site = await serve(lambda _: reply)
    async with open_proxy(open_egress(site.endpoint)) as door:
        status, answer = await door.ask(f"GET {site.url()} HTTP/1.0\r\n\r\n")
    assert (status, answer) == (200, "Connection: close\r\n\r\n" + "part " * 30_000)
    assert site.requests[0].startswith(b"GET / HTTP/1.0\r\n")


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_a_response_that_has_no_body_is_not_waited_for(serve, open_egress, open_proxy, method):
    status = 200 if method == "HEAD" else 304
    site = await serve(f"HTTP/1.1 {status} X\r\nContent-Length: 50\r\n\r\n".encode())
    async with open_proxy(open_egress(site.endpoint)) as door:
        assert await door.ask(f"{method} {site.url()} HTTP/1.1\r\n\r\n") == (
            status,
            "Content-Length: 50\r\nConnection: close\r\n\r\n",
        )


async def test_an_answer_that_comes_before_the_body_was_read_reaches_the_client(serve, open_egress, open_proxy):
    async def refuse(reader, writer):
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nless")
        await writer.drain()
        writer.transport.abort()

    site = await serve(lambda _: refuse)
    site.reply = lambda _: refuse
    async with open_proxy(open_egress(site.endpoint)) as door:
        reader, writer = await door.open()
        writer.write(f"POST {site.url()} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".encode())
        async with asyncio.timeout(25):
            answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 413 Too Large\r\n")
    assert answer.endswith(b"\r\n\r\nless")


async def test_a_connection_that_leads_elsewhere_than_it_may_is_refused(serve):
    site = await serve(HELLO)
    refusal = pytest.raises(ToolError, match=r"127\.0\.0\.1 lies in 127\.0\.0\.0/8 \(loopback\)")
    with socket.create_connection(("127.0.0.1", site.port), timeout=5) as connection, refusal:
        Dialler(policy=AddressPolicy()).check_peer(connection)


async def test_the_next_address_is_tried_when_one_does_not_answer(serve, open_egress, open_proxy, names):
    site = await serve(HELLO)
    private = (site.endpoint, f"[::1]:{site.port}")
    resolve = names(two_example=[["::1", "127.0.0.1"]])
    async with open_proxy(open_egress(*private, resolve=resolve)) as door:
        status, answer = await door.ask(f"GET http://two.example:{site.port}/ HTTP/1.1\r\n\r\n")
    assert (status, answer.endswith("hello")) == (200, True)


def test_making_a_proxy_opens_nothing():
    assert callable(Egress().proxy(None, deadline=0))
