"""A login in a browser: what comes back is taken only if it is the answer to this login."""

import asyncio
import base64
import hashlib
import io
import os
from urllib.parse import parse_qs, urlsplit

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.oauth import login as login_module
from toolcrib.lib.http_auth.declaration import read_auth

AUTH = {
    "type": "oauth2",
    "grant": "authorization_code",
    "login": "CRM",
    "token_url": "https://id.example/token",
    "authorization_url": "https://id.example/authorize?tenant=7",
    "client_id": "me & you",
    "parameters": {"prompt": "login"},
}


def make(**facts):
    return login_module.Login(read_auth(AUTH | facts), "me & you", ("read", "write"))


def asked(login):
    return {name: values[0] for name, values in parse_qs(urlsplit(login.address).query).items()}


async def visit(login, target):
    """Send the request of a browser; gives its answer."""
    reader, writer = await asyncio.open_connection(login.redirect.host, login.redirect.port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {login.redirect.authority}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 25)
    writer.close()
    return answer.decode()


def test_the_address_asks_for_a_code_with_a_fresh_state_and_a_challenge():
    login, other = make(), make()
    query = asked(login)
    assert login.address.startswith("https://id.example/authorize?tenant=7&prompt=login&response_type=code&")
    assert {**query, "state": "", "code_challenge": "", "redirect_uri": ""} == {
        "tenant": "7",
        "prompt": "login",
        "response_type": "code",
        "client_id": "me & you",
        "scope": "read write",
        "state": "",
        "code_challenge": "",
        "code_challenge_method": "S256",
        "redirect_uri": "",
    }
    digest = base64.urlsafe_b64encode(hashlib.sha256(login.verifier.encode()).digest()).rstrip(b"=").decode()
    assert query["code_challenge"] == digest
    assert query["state"] != asked(other)["state"]
    assert login.verifier != other.verifier


async def test_the_browser_comes_back_with_the_code():
    login = make()
    async with login_module.listen(login) as answer:
        state = asked(login)["state"]
        assert asked(login)["redirect_uri"] == f"http://127.0.0.1:{login.redirect.port}/callback"
        text = await visit(login, f"/callback?code=c-1&state={state}")
        assert text.startswith("HTTP/1.1 200 OK\r\n")
        assert "Cache-Control: no-store" in text
        assert await asyncio.wait_for(answer, 25) == "c-1"


async def test_what_is_not_the_answer_to_this_login_does_not_end_it():
    login = make()
    async with login_module.listen(login) as answer:
        state = asked(login)["state"]
        strangers = [
            "/callback?code=evil&state=guess",
            "/callback?code=evil",
            f"/other?code=evil&state={state}",
            f"/callback?code=evil&state={state}&state=x",
            "/favicon.ico",
            "/callback?error=access_denied&state=guess",
        ]
        for target in strangers:
            assert (await visit(login, target)).startswith("HTTP/1.1 404 Not Found")
        for raw in (b"\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"x" * 20_000, b"GET \xff HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", login.redirect.port)
            writer.write(raw)
            await asyncio.wait_for(reader.read(), 25)
            writer.close()
        assert not answer.done()
        await visit(login, f"/callback?code=good&state={state}")
        assert await asyncio.wait_for(answer, 25) == "good"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("error=access_denied&error_description=no%0Away", "refused the login: access_denied no"),
        ("x=1", "holds no code"),
        ("code=", "holds no code"),
    ],
)
async def test_a_refusal_is_told(query, message):
    login = make()
    async with login_module.listen(login) as answer:
        text = await visit(login, f"/callback?{query}&state={asked(login)['state']}")
        assert text.startswith("HTTP/1.1 400 Bad Request")
        with pytest.raises(ToolError, match=message) as refusal:
            await asyncio.wait_for(answer, 25)
        assert refusal.value.kind is Kind.AUTH
        assert "\n" not in refusal.value.message


@pytest.mark.parametrize("issuer", ["", "&iss=https%3A%2F%2Fevil.example"])
def test_an_answer_of_another_issuer_is_refused_where_one_is_declared(issuer):
    login = make(issuer="https://id.example")
    state = asked(login)["state"]
    with pytest.raises(ToolError, match="the answer to the login is not from https://id.example"):
        login.read_code(f"/callback?code=c&state={state}{issuer}")
    assert login.read_code(f"/callback?code=c&state={state}&iss=https%3A%2F%2Fid.example") == "c"


async def test_a_port_that_is_taken_is_said_with_a_cure():
    first = make()
    async with login_module.listen(first):
        second = make(redirect_url=f"http://127.0.0.1:{first.redirect.port}/callback")
        with pytest.raises(
            ToolError, match=r"cannot be listened on: .*; end what uses it, or name another in redirect_url"
        ):
            async with login_module.listen(second):
                pass


async def test_a_client_that_says_nothing_is_let_go(monkeypatch):
    monkeypatch.setattr(login_module, "HEAD_SECONDS", 0.05)
    login = make()
    async with login_module.listen(login):
        reader, writer = await asyncio.open_connection("127.0.0.1", login.redirect.port)
        assert await asyncio.wait_for(reader.read(), 25) == b""
        writer.close()


async def test_pasted_lines_are_read_from_a_pipe_and_from_a_file(tmp_path):
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as source:
        lines = login_module.Lines(source)
        line = asyncio.create_task(lines.next())
        os.write(writing, b"http://127.0.0.1:1/callback")
        await asyncio.sleep(0)
        os.write(writing, b"?code=c\nsecond\n")
        assert await asyncio.wait_for(line, 25) == "http://127.0.0.1:1/callback?code=c"
        assert await asyncio.wait_for(lines.next(), 25) == "second"
        waiting = asyncio.create_task(lines.next())
        await asyncio.sleep(0)
        waiting.cancel()
        assert await asyncio.gather(waiting, return_exceptions=True)
        os.close(writing)
        assert await asyncio.wait_for(lines.next(), 25) == ""
    path = tmp_path / "typed"
    path.write_text("a line\nanother")
    with path.open() as source:
        lines = login_module.Lines(source)
        assert [await lines.next() for _ in range(3)] == ["a line", "another", ""]
    assert await login_module.Lines(io.StringIO("x\n")).next() == ""
