"""Log in with a browser (OAuth 2 authorization code) for the tools that declare a login."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.infra.oauth.login import Lines, Login, listen
from toolcrib.infra.oauth.token_endpoint import Client
from toolcrib.lib.http_auth.declaration import declarations_of, read_auth
from toolcrib.lib.http_auth.kinds import OAuth2
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Chained, Http
from toolcrib.toolkit.cli import complain, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.infra.oauth import OAuthTokens
    from toolcrib.infra.oauth.access_tokens import AccessTokens
    from toolcrib.infra.secrets.lookup import Secrets
    from toolcrib.lib.http_auth.kinds import Value
    from toolcrib.lib.http_syntax import HostList
    from toolcrib.model.tool import Tool

MAX_MISTAKES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredLogin:
    """A login with the tools that declare it; its scopes are the union of theirs."""

    auth: OAuth2
    tools: tuple[Tool, ...]

    def allowed_hosts(self, patterns: tuple[str, ...]) -> HostList | None:
        """The hosts that its tools may reach: those of the operator; for scripts without such a list, all public hosts."""
        run = self.tools[0].run
        operators: HostList | None = parse_hosts(patterns, "the setting http_tools.hosts")
        if isinstance(run, Chained) and not patterns:
            operators = None
        own = run.hosts if isinstance(run, Chained | Http) else None
        return operators if own is None else replace(parse_hosts(own), within=operators)


def find_login(tools: Iterable[Tool], name: str) -> DeclaredLogin:
    """Find the login of that name; raises ToolError if no tool declares it, or two declare it differently."""
    found: DeclaredLogin | None = None
    names: set[str] = set()
    for tool, auth in _logins(tools):
        names.add(auth.login)
        if auth.login != name:
            continue
        if found is None:
            found = DeclaredLogin(auth=auth, tools=(tool,))
            continue
        if replace(auth, scopes=()) != replace(found.auth, scopes=()):
            message = f"{found.tools[0].name} and {tool.name} declare the login {name} differently; give one of them another name"
            raise ToolError(Kind.VALIDATION, message)
        scopes = tuple(dict.fromkeys((*found.auth.scopes, *auth.scopes)))
        found = DeclaredLogin(auth=replace(found.auth, scopes=scopes), tools=(*found.tools, tool))
    if found is None:
        known = f"; the logins are {', '.join(sorted(names))}" if names else ""
        message = (
            f"no tool declares a login {name}{known}; see auth with the grant authorization_code in docs/http-tools.md"
        )
        raise ToolError(Kind.NOT_FOUND, message)
    return found


async def log_in(
    declared: DeclaredLogin, secrets: Secrets, tokens: AccessTokens, *, hosts: HostList | None, seconds: float
) -> OAuthTokens:
    """Print the address to open, wait for the redirect or a pasted address, and exchange the code for tokens."""
    auth = declared.auth
    client_id = _reveal(secrets, auth.client_id)
    client = Client(
        token_url=auth.token_url,
        client_id=client_id,
        client_secret="" if auth.client_secret is None else _reveal(secrets, auth.client_secret),
        client_auth=auth.client_auth,
        hosts=hosts,
        cure=Cure("nothing was stored"),
    )
    # Checked now, so that a person does not log in for nothing.
    tokens.check_server(client)
    login = Login(auth, client_id, auth.scopes)
    try:
        async with asyncio.timeout(seconds), listen(login) as answer:
            say(login.address)
            complain(
                f"open this address in a browser; it comes back to {login.redirect} and is waited for {seconds:g} s"
            )
            complain("if the browser runs on another machine, paste the address here that it ends at")
            code = await _first(login, answer)
    except TimeoutError:
        raise ToolError(Kind.TIMEOUT, f"the login was not completed within {seconds:g} s; nothing was stored") from None
    values = {"code": code, "redirect_uri": str(login.redirect), "code_verifier": login.verifier}
    got = await tokens.exchange(client, values)
    # The scope was part of the authorization request; the exchange does not repeat it.
    return replace(got, scope=got.scope or " ".join(auth.scopes))


async def _first(login: Login, answer: asyncio.Future[str]) -> str:
    """The code from the redirect or from a pasted address, whichever arrives first."""
    pasted = asyncio.create_task(_pasted(login))
    try:
        await asyncio.wait((answer, pasted), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() and (code := pasted.result()) is not None:
            return code
        return await answer
    finally:
        pasted.cancel()


async def _pasted(login: Login) -> str | None:
    """The code of a pasted address; None without a terminal."""
    lines = None if sys.stdin is None else Lines(sys.stdin)
    for _ in range(MAX_MISTAKES):
        if lines is None or not (line := await lines.next()):
            return None
        address = line.removeprefix(login.redirect.origin)
        if (code := login.read_code(address)) is not None:
            return code
        complain(f"this is not the address that the login ends at; it begins with {login.redirect}?")
    raise ToolError(Kind.AUTH, "no pasted address belongs to this login; nothing was stored")


def _logins(tools: Iterable[Tool]) -> Iterator[tuple[Tool, OAuth2]]:
    for tool in tools:
        for declared in declarations_of(tool):
            try:
                auth = read_auth(declared)
            except ToolError:
                continue  # crib check reports it
            if isinstance(auth, OAuth2) and auth.login:
                yield tool, auth


def _reveal(secrets: Secrets, value: Value) -> str:
    if isinstance(value, str):
        return value
    if value.kind == "env":
        found = os.environ.get(value.name)
        cure = f"set the variable {value.name}"
    else:
        secret = secrets.get(value.name)
        found = None if secret is None else secret.reveal()
        cure = f"run: crib secret set {value.name}"
    if not found:
        raise ToolError(Kind.AUTH, f"there is no {value}, which the login needs", cure=Cure(cure))
    return found
