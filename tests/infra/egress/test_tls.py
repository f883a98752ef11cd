import asyncio
import ssl
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError

CERTIFICATE = Path(__file__).with_name("tls.example.pem")
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def server_side():
    """A TLS server's context that records the name each client asks for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.asked = []
    context.sni_callback = lambda _, name, __: context.asked.append(name)
    return context


@pytest.fixture
def trusted(monkeypatch):
    """Let the client trust the certificate of these tests."""
    context = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr("toolcrib.infra.egress.connection_pool.tls_context", lambda: context)


async def test_tls_is_spoken_to_the_name_over_the_checked_address(
    serve, open_egress, fetch, names, server_side, trusted
):
    site = await serve(HELLO, tls=server_side)
    egress = open_egress(site.endpoint, resolve=names(tls_example=[["127.0.0.1"]]))
    assert (await fetch(egress, f"https://TLS.example:{site.port}/")).body == b"hello"
    assert server_side.asked == ["tls.example"]
    assert f"Host: tls.example:{site.port}\r\n".encode() in site.requests[0]


async def test_a_connection_with_tls_is_kept_for_its_name_and_closed_with_the_egress(
    serve, open_egress, fetch, names, server_side, trusted
):
    site = await serve(HELLO, tls=server_side)
    egress = open_egress(site.endpoint, resolve=names(tls_example=[["127.0.0.1"]]))
    for _ in range(3):
        assert (await fetch(egress, f"https://tls.example:{site.port}/")).body == b"hello"
    assert (site.connections, len(site.requests)) == (1, 3)
    await egress.close()
    async with asyncio.timeout(5):
        await site.gone.wait()


async def test_a_plain_connection_is_not_used_for_tls(serve, open_egress, fetch, names, server_side, trusted):
    site = await serve(HELLO)
    egress = open_egress(site.endpoint, resolve=names(tls_example=[["127.0.0.1"]]))
    await fetch(egress, f"http://tls.example:{site.port}/")
    with pytest.raises(ToolError, match="no complete response"):  # the server waits for the end of a head
        await fetch(egress, f"https://tls.example:{site.port}/?key=hunter2", seconds=0.1)
    assert len(site.requests) == 1


async def test_a_certificate_for_another_name_is_refused_before_anything_is_sent(
    serve, open_egress, fetch, names, server_side, trusted
):
    site = await serve(HELLO, tls=server_side)
    egress = open_egress(site.endpoint, resolve=names(other_example=[["127.0.0.1"]]))
    with pytest.raises(ToolError, match="the TLS certificate is not trusted: Hostname mismatch") as caught:
        await fetch(egress, f"https://other.example:{site.port}/?key=hunter2", method="POST")
    assert (caught.value.kind, caught.value.partial_side_effects) == (Kind.PERMANENT, False)
    assert "hunter2" not in caught.value.message
    assert site.requests == []


async def test_a_certificate_of_an_unknown_authority_is_refused(serve, open_egress, fetch, names, server_side):
    site = await serve(HELLO, tls=server_side)
    egress = open_egress(site.endpoint, resolve=names(tls_example=[["127.0.0.1"]]))
    with pytest.raises(ToolError, match=r"the TLS certificate is not trusted: self.signed certificate"):
        await fetch(egress, f"https://tls.example:{site.port}/")
    assert site.requests == []


async def test_a_server_without_tls_is_refused(serve, open_egress, fetch):
    async def greet(reader, writer):
        writer.write(HELLO)

    site = await serve(lambda _: greet)
    site.talk = greet
    with pytest.raises(ToolError, match="the TLS handshake failed") as caught:
        await fetch(open_egress(site.endpoint), f"https://{site.endpoint}/")
    assert caught.value.kind is Kind.PERMANENT


async def test_a_downgrade_to_plain_text_leaves_secrets_behind(serve, open_egress, fetch, names, server_side, trusted):
    plain = await serve(HELLO)
    location = f"Location: http://tls.example:{plain.port}/\r\n"
    site = await serve(f"HTTP/1.1 302 Found\r\n{location}Content-Length: 0\r\n\r\n".encode(), tls=server_side)
    egress = open_egress(site.endpoint, plain.endpoint, resolve=names(tls_example=[["127.0.0.1"]]))
    await fetch(egress, f"https://tls.example:{site.port}/", headers={"Authorization": "hunter2"})
    assert b"hunter2" in site.requests[0]
    assert b"hunter2" not in plain.requests[0]
