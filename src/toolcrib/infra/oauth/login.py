"""Log in at an authorization server in a browser: authorization code with PKCE (RFC 6749, 7636, 8252, 9207).

The browser is redirected to a port of this machine. If it runs on another machine, the address of the redirect is typed or piped in.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from toolcrib.lib.http_syntax import Url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import TextIO

    from toolcrib.lib.http_auth.kinds import OAuth2

MAX_ADDRESS = 8_192
HEAD_SECONDS = 5.0
MAX_CONNECTIONS = 16
SHOWN = 200
VERIFIER_LETTERS = 64
DEFAULT_REDIRECT = Url(scheme="http", host="127.0.0.1", port=0, target="/callback")
DONE = "You are logged in. Close this window and go back to the terminal."
REFUSED = "This is not the answer to the login that is waiting. Look at the terminal."


class Login:
    """One login: its state and verifier are random, and valid for one answer."""

    def __init__(self, auth: OAuth2, client_id: str, scopes: tuple[str, ...]) -> None:
        from oauthlib.oauth2 import WebApplicationClient

        self._auth = auth
        self._client_id = client_id
        self._scopes = scopes
        self._state = secrets.token_urlsafe(32)
        client = WebApplicationClient(client_id)
        self.verifier: str = client.create_code_verifier(VERIFIER_LETTERS)
        self._challenge: str = client.create_code_challenge(self.verifier, "S256")
        self.redirect = auth.redirect_url or DEFAULT_REDIRECT

    @property
    def address(self) -> str:
        """The address that the browser opens."""
        start = str(self._auth.authorization_url)
        query = {
            **self._auth.parameters,
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": str(self.redirect),
            "state": self._state,
            "code_challenge": self._challenge,
            "code_challenge_method": "S256",
        }
        if self._scopes:
            query["scope"] = " ".join(self._scopes)
        return f"{start}{'&' if '?' in start else '?'}{urlencode(query)}"

    def read_code(self, target: str) -> str | None:
        """The code in the target of the redirect; None if it answers another request.

        Raises AUTH if the login was refused, or the answer comes from another issuer.
        """
        parts = urlsplit(target)
        if parts.path != self.redirect.target:
            return None
        pairs = parse_qsl(parts.query, max_num_fields=32)
        values = dict(pairs)
        if len(values) != len(pairs) or not hmac.compare_digest(values.get("state", "").encode(), self._state.encode()):
            return None
        issuer = self._auth.issuer
        if issuer and values.get("iss") != issuer:
            raise ToolError(Kind.AUTH, f"the answer to the login is not from {issuer}; nothing was stored")
        if "error" in values:
            reason = " ".join(filter(None, (values["error"], values.get("error_description"))))
            raise ToolError(Kind.AUTH, f"the authorization server refused the login: {_shown(reason)}")
        if not values.get("code"):
            raise ToolError(Kind.AUTH, "the answer to the login holds no code; log in again")
        return values["code"]


@asynccontextmanager
async def listen(login: Login) -> AsyncIterator[asyncio.Future[str]]:
    """Listen on a port of this machine for the redirect; the future gets the code, or the error."""
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    free = asyncio.Semaphore(MAX_CONNECTIONS)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not free.locked():
                async with free, asyncio.timeout(HEAD_SECONDS):
                    await _talk(login, found, reader, writer)
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            pass  # not the browser that comes back
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    redirect = login.redirect
    try:
        server = await asyncio.start_server(answer, redirect.host, redirect.port, limit=MAX_ADDRESS)
    except OSError as problem:
        message = f"port {redirect.port} of {redirect.host} cannot be listened on: {problem.strerror}"
        raise ToolError(Kind.TRANSIENT, f"{message}; end what uses it, or name another in redirect_url") from None
    async with server:
        if not redirect.port:
            port = server.sockets[0].getsockname()[1]
            login.redirect = Url(scheme=redirect.scheme, host=redirect.host, port=port, target=redirect.target)
        try:
            yield found
        finally:
            found.cancel()


class Lines:
    """The lines of standard input, read without a thread, so that a cancelled read leaves nothing running."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._data = b""

    async def next(self) -> str:
        """The next line without spaces around it; empty at the end."""
        while b"\n" not in self._data and len(self._data) < MAX_ADDRESS:
            piece = await self._read()
            if not piece:
                break
            self._data += piece
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    async def _read(self) -> bytes:
        try:
            descriptor = self._source.fileno()
        except (OSError, ValueError):
            return b""  # standard input is closed
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            # A thread that reads a line cannot be cancelled, and would keep the program from exiting.
            loop.add_reader(descriptor, ready.set)
        except OSError:
            return os.read(descriptor, MAX_ADDRESS)  # a plain file is always ready
        try:
            await ready.wait()
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, MAX_ADDRESS)


async def _talk(
    login: Login, found: asyncio.Future[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    status, text = "404 Not Found", REFUSED
    if method == "GET" and len(target) <= MAX_ADDRESS:
        try:
            code = login.read_code(target)
        except ToolError as problem:
            status, text = "400 Bad Request", "The login failed. Look at the terminal."
            if not found.done():
                found.set_exception(problem)
        else:
            if code is not None:
                status, text = "200 OK", DONE
                if not found.done():
                    found.set_result(code)
    body = text.encode()
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def _shown(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:SHOWN])
