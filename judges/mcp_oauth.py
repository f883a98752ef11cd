"""Let the official client of MCP get a token from an authorization server made with authlib, and try tokens that are for others.

`python judges/mcp_oauth.py`: the server needs a token on every path, and nothing but its address is told to the client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60
REDIRECT = "http://127.0.0.1:1/callback"
UNAUTHORIZED, FORBIDDEN, FINE = 401, 403, 200
FILE = 'def add(first: int, second: int) -> int:\n    """Add."""\n    return first + second\n'
# The server trusts no client on loopback, as one behind a proxy does: the header says that the request came from elsewhere.
ELSEWHERE = {"X-Forwarded-For": "203.0.113.1"}


class Storage:
    """Keeps what the client was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """What the client is registered as."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what the client is registered as."""
        self.client = client_info


class Browser:
    """Follows the link to the authorization server as a person would who is signed in, and reads the code off the redirect."""

    def __init__(self) -> None:
        self.result: AuthorizationCodeResult | None = None
        self.asked_for = ""

    async def follow(self, url: str) -> None:
        """Open the link."""
        self.asked_for = parse_qs(urlsplit(url).query).get("scope", [""])[0]
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.get(url, follow_redirects=False)
        found = parse_qs(urlsplit(answer.headers["location"]).query)
        self.result = AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

    async def read(self) -> AuthorizationCodeResult:
        """The code."""
        if self.result is None:
            raise RuntimeError("the client did not open the link")
        return self.result


async def judge(url: str, issuer: str) -> list[str]:
    """What is wrong."""
    wrong: list[str] = []
    # The older wire takes objects alone.
    for mode, value in (("auto", 5), ("legacy", {"result": 5})):
        storage, browser = Storage(), Browser()
        answer = await call_with_client(url, storage, browser, mode)
        if answer != (["add"], value):
            wrong.append(f"{mode}: the client gets {answer}")
        if set(browser.asked_for.split()) != {"read", "invoke"}:
            wrong.append(f"{mode}: the client asked for the scopes {browser.asked_for!r}")
        print(f"{mode}: a token for {browser.asked_for!r}, and a call: {answer}")
    if storage.client is None or storage.tokens is None:
        return [*wrong, "the client has no token"]
    return wrong + await judge_tokens(url, issuer, storage)


async def call_with_client(url: str, storage: Storage, browser: Browser, mode: Any) -> tuple[list[str], object]:
    """List and call with a client that knows nothing but the address."""
    about = OAuthClientMetadata(client_name="judge", redirect_uris=[REDIRECT])  # type: ignore[list-item]  # it is parsed
    provider = OAuthClientProvider(url, about, storage, browser.follow, browser.read)
    async with (
        asyncio.timeout(SECONDS),
        httpx2.AsyncClient(auth=provider, headers=ELSEWHERE, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        listed = await client.list_tools()
        result = await client.call_tool("add", {"first": 2, "second": 3})
    return [tool.name for tool in listed.tools], result.structured_content


async def judge_tokens(url: str, issuer: str, storage: Storage) -> list[str]:
    """What is wrong with the answers to tokens of the same authorization server for other resources and scopes."""
    origin = url.removesuffix("/mcp")
    wrong: list[str] = []
    async with httpx2.AsyncClient(trust_env=False, headers=ELSEWHERE) as http:
        cases = (
            ("read invoke", url, FINE, ""),
            ("read", url, FORBIDDEN, 'error="insufficient_scope", scope="invoke read"'),
            ("", url, FORBIDDEN, 'error="insufficient_scope", scope="invoke"'),
            ("read invoke", "https://elsewhere.example/mcp", UNAUTHORIZED, 'error="invalid_token"'),
            ("read invoke", origin, UNAUTHORIZED, 'error="invalid_token"'),
        )
        for scope, resource, status, challenge in cases:
            token = await fetch_token(http, issuer, storage, scope, resource)
            answer = await http.post(
                f"{origin}/call/add",
                json={"first": 2, "second": 3},
                headers={"Authorization": f"Bearer {token}"},
            )
            said = answer.headers.get("www-authenticate", "")
            print(f"a token for {scope!r} at {resource}: {answer.status_code} {said}")
            if answer.status_code != status or challenge not in said:
                wrong.append(f"a token for {scope!r} at {resource} is answered with {answer.status_code} {said}")
    return wrong


async def fetch_token(http: httpx2.AsyncClient, issuer: str, storage: Storage, scope: str, resource: str) -> str:
    """A token that the client gets for itself."""
    client = storage.client
    if client is None or client.client_secret is None:
        raise RuntimeError("the client is not registered")
    form = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
    answer = await http.post(f"{issuer}/token", data=form, auth=(str(client.client_id), client.client_secret))
    return str(answer.json()["access_token"])


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def main() -> int:
    """Start both servers, and judge."""
    ports = free_port(), free_port()
    issuer, url = f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}/mcp"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        project = Path(folder)
        (project / "tools").mkdir()
        (project / "tools" / "add.py").write_text(FILE)
        settings = f'[server]\noauth_issuer = "{issuer}"\noauth_resource = "{url}"\n[builtins]\nenabled = false\n'
        (project / "toolcrib.toml").write_text(settings)
        log = stack.enter_context((project / "log").open("w"))
        commands = (
            (sys.executable, str(ROOT / "judges" / "authorization_server.py"), str(ports[0])),
            (sys.executable, "-m", "toolcrib", "serve", "-C", folder, "--port", str(ports[1])),
        )
        for command in commands:
            environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"}
            running = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            stack.callback(running.wait, SECONDS)
            stack.callback(running.terminate)
        try:
            asyncio.run(wait_for(f"{issuer}/keys", f"{url.removesuffix('/mcp')}/readyz"))
            problems = asyncio.run(judge(url, issuer))
        except BaseException:
            print((project / "log").read_text())
            raise
    print("\n".join(problems) or "the client got its token, and only tokens that are meant for the server count")
    return 1 if problems else 0


async def wait_for(*urls: str) -> None:
    """Wait until the servers answer."""
    async with asyncio.timeout(SECONDS), httpx2.AsyncClient(trust_env=False) as http:
        for url in urls:
            while True:
                try:
                    if (await http.get(url)).status_code == FINE:
                        break
                except httpx2.TransportError:
                    await asyncio.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
