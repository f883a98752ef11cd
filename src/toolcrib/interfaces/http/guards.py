"""Guards of a request: host and origin, caller with token and scope, and rate limit."""

from __future__ import annotations

import functools
import hmac
import ipaddress
import logging
import math
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.call_state import QUOTA
from toolcrib.core.sources import VIEW
from toolcrib.features.access.oauth import UnreachableIssuerError
from toolcrib.features.access.sign_in import CSRF_HEADER, csrf_of, session_in
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.lib.audit_trail import ACTOR
from toolcrib.lib.signed_tokens import TokenError, looks_signed
from toolcrib.model.call import Scope
from toolcrib.model.errors import NO_CURE, RETRY_AFTER, Cure, Kind, ToolError
from toolcrib.model.limits import MINUTE, Claim, Shortage, Taken
from toolcrib.model.tool import SAFE_METHODS
from toolcrib.toolkit.http import CALLER, HOLDER, REQUEST
from toolcrib.toolkit.http.problems import Refusal, challenge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import ASGIApp, Receive, Send
    from starlette.types import Scope as AsgiScope

    from toolcrib.core.sources import View
    from toolcrib.features.access.oauth import Authorization
    from toolcrib.features.access.tokens import Token, Tokens
    from toolcrib.model.limits import Quota
    from toolcrib.toolkit.http import Header, Request


logger = logging.getLogger("toolcrib.http")

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# A name, or an address in brackets, with an optional port.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://([^/?#@\s]+)")

ALLOWED_HEADERS = (
    b"authorization, content-type, if-match, if-none-match, last-event-id, x-request-id, "
    b"mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, "
    b"toolcrib-session, toolcrib-mode, toolcrib-confirmation"
)
SHOWN_HEADERS = b"etag, location, retry-after, x-request-id, mcp-session-id"
PREFLIGHT_SECONDS = b"600"


class HostCheck:
    """An ASGI layer that passes a request on if its Host and Origin are allowed."""

    def __init__(self, app: ASGIApp, rules: HostRules) -> None:
        self._app = app
        self._rules = rules

    def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> Awaitable[None]:
        """Check the headers of a request before they are used."""
        request: Request = scope[REQUEST]
        request.check_headers()
        self._rules.check(request)
        return self._app(scope, receive, send)


class HostRules:
    """The host names and origins that are allowed."""

    def __init__(self, bound: str, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = LOCAL_NAMES | {_spell_host(bound)} | {host.lower() for host in hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        # The last allowed Host: nearly every request has the same.
        self._last = b""

    def check(self, request: Request) -> None:
        """Refuse a foreign Host, against DNS rebinding, and an Origin that is neither ours nor listed."""
        host = request.fields.get(b"host", b"")
        if host != self._last or not host:
            self._check_host(request, host.decode("latin-1").lower())
            self._last = host
        if b"origin" in request.fields and not self._is_allowed(request):
            message = f"the web page {request.header(b'origin')[:200]!r} may not call this server; list it in origins of [server]"
            raise Refusal(403, Kind.BLOCKED, message)

    def cross_headers(self, request: Request) -> tuple[Header, ...]:
        """The CORS headers of a response to a listed origin."""
        origin = request.header(b"origin")
        if not origin or origin.lower() not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", SHOWN_HEADERS),
            (b"vary", b"Origin"),
        )

    def preflight_headers(self, request: Request, allowed: bytes) -> tuple[Header, ...]:
        """The CORS headers of a preflight response to a listed origin."""
        if not self.cross_headers(request) or not request.has(b"access-control-request-method"):
            return ()
        return (
            (b"access-control-allow-methods", allowed),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        )

    def _check_host(self, request: Request, host: str) -> None:
        parts = _AUTHORITY.fullmatch(host)
        if parts is None:
            raise Refusal(
                400, Kind.VALIDATION, "the header Host is missing or malformed; send the host name of the server"
            )
        if not {host, parts[1]} & self._hosts and parts[1] != _own_address(request):
            message = f"{host[:200]!r} is not a host name of this server"
            cure = Cure("list it as server.hosts in toolcrib.toml", "use another one, or ask the operator to add it")
            raise Refusal(421, Kind.HOST_NOT_ALLOWED, message, cure=cure)

    def _is_allowed(self, request: Request) -> bool:
        origin = request.header(b"origin").lower()
        found = _ORIGIN.fullmatch(origin)
        return origin in self._origins or (found is not None and found[1] == request.header(b"host").lower())


@functools.lru_cache(maxsize=16)
def is_name_of_this_machine(host: bytes) -> bool:
    """Whether a Host is a loopback name or address, which no DNS record can lead a browser to by another name."""
    parts = _AUTHORITY.fullmatch(host.decode("latin-1").lower())
    if parts is None:
        return False
    if parts[1] in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(parts[1].strip("[]")).is_loopback
    except ValueError:
        return False


def _own_address(request: Request) -> str:
    """The local address of the connection; as an IP address it is safe from DNS rebinding."""
    server = request.scope.get("server")
    address = str(server[0]) if isinstance(server, (tuple, list)) and server else ""
    return _spell_host(address) if re.fullmatch(r"[0-9.]+|[0-9a-f.]*:[0-9a-f.:]*", address) else ""


def _spell_host(address: str) -> str:
    """An address as it is written in a Host header."""
    return f"[{address}]".lower() if ":" in address and not address.startswith("[") else address.lower()


LOCAL = "local"
# Approving and setting up take a token: any program on this machine, an agent too, can connect to the loopback address.
LOCAL_SCOPES = frozenset(Scope) - {Scope.APPROVE, Scope.SETUP}
CALLERS_KEPT = 10_000
# A server takes this share of a minute's requests at once, for a second.
BLOCKS, BLOCK_SECONDS = 600, 1
MAX_TOKEN = 512
TOKEN_CURE = Cure("make one with: crib token create", "ask the operator for one")
# Headers that proxies add: such a request does not come from the peer of the connection.
PASSED_ON = frozenset(
    {
        b"forwarded",
        b"via",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"true-client-ip",
        b"cf-connecting-ip",
    }
)
PASSED_ON_BEGINS = b"x-forwarded-"


class Caller(NamedTuple):
    """The caller of a request: its id, scopes, visible tools, the holder of its token, and its limits."""

    id: str
    scopes: frozenset[Scope]
    view: View | None = None
    holder: str = ""
    quota: Quota | None = None


def local_caller(view: View | None) -> Caller:
    """A client on this machine without a token; one that sees only some tools may not manage them."""
    return Caller(LOCAL, LOCAL_SCOPES if view is None else LOCAL_SCOPES - {Scope.MANAGE}, view)


def _caller_of(token: Token) -> Caller:
    return Caller(token.id, token.scopes, token.view, token.name, token.quota)


class Callers:
    """Find the caller of a request by its token, ours or one of an authorization server.

    `local` is a loopback client without a token, where that is allowed.
    """

    def __init__(self, tokens: Tokens, local: Caller | None, authorization: Authorization | None = None) -> None:
        self._tokens = tokens
        self._local = local
        self._authorization = authorization
        self._metadata_url = b"" if authorization is None else authorization.metadata_url.encode()

    def needs_verification(self, request: Request) -> bool:
        """Whether the request has a token that only the keys of the authorization server can verify."""
        return self._authorization is not None and looks_signed(_bearer(request))

    async def verify(self, request: Request) -> Caller:
        """The caller of a token of the authorization server."""
        assert self._authorization is not None  # noqa: S101 - `needs_verification` has said so
        try:
            grant = await self._authorization.check(_bearer(request))
        except TokenError as problem:
            message = f"the token of the authorization server does not count: {problem}"
            raise self._unknown(request, message, "invalid_token") from problem
        except UnreachableIssuerError as problem:
            raise Refusal(503, problem.kind, problem.message, details={RETRY_AFTER: 10}) from problem
        return Caller(grant.caller, grant.scopes, grant.view, grant.caller)

    def require(self, caller: Caller, request: Request, needed: Scope) -> None:
        """Refuse a caller that lacks the scope."""
        request.metadata_url = self._metadata_url
        if needed in caller.scopes:
            return
        who = "the token" if b"authorization" in request.fields else "a client without a token"
        cure = Cure(
            f"make a token that may: crib token create NAME --scope {needed}", "ask the operator for a token that may"
        )
        raise Refusal(
            403,
            Kind.AUTH,
            f"{who} may not {needed}",
            cure=cure,
            headers=(missing_scope(request, caller.scopes, needed),),
        )

    def find(self, request: Request) -> Caller:
        """The caller; raises if there is none."""
        if b"authorization" not in request.fields:
            if b"cookie" in request.fields and (token := self._signed_in(request)) is not None:
                return _caller_of(token)
            if self._local is not None and _is_from_here(request):
                return self._local
            raise self._unknown(request, "send a token as Authorization: Bearer …", cure=TOKEN_CURE)
        text = _bearer(request)
        token = self._tokens.check(text) if 0 < len(text) <= MAX_TOKEN and text.isascii() else None
        if token is None:
            raise self._unknown(request, "the token is unknown, revoked or expired", "invalid_token")
        return _caller_of(token)

    def _unknown(self, request: Request, message: str, error: str = "", *, cure: Cure = NO_CURE) -> Refusal:
        scope = " ".join(sorted({Scope.READ, Scope.INVOKE})) if self._metadata_url else ""
        header = challenge(error=error, scope=scope, metadata_url=self._metadata_url)
        return Refusal(401, Kind.AUTH, message, cure=cure, headers=(header,))

    def _signed_in(self, request: Request) -> Token | None:
        """The token of a person who is signed in to the web page; raises if a change does not come from the page itself."""
        text = session_in(request.header(b"cookie"))
        token = self._tokens.check(text) if text else None
        if token is None or request.scope["method"] in SAFE_METHODS:
            return token
        if not hmac.compare_digest(request.fields.get(CSRF_HEADER, b""), csrf_of(text).encode()):
            raise Refusal(403, Kind.AUTH, "the request does not come from the page of this session; reload the page")
        return token


class Gate:
    """Authenticate a request, check its scope, and apply the rate limit."""

    def __init__(self, callers: Callers, rates: Rates) -> None:
        self._callers = callers
        self._rates = rates

    async def admit(self, request: Request, needed: Scope) -> None:
        """Admit the request of a known caller; raises for any other."""
        callers = self._callers
        caller = await callers.verify(request) if callers.needs_verification(request) else callers.find(request)
        callers.require(caller, request, needed)
        request.caller, request.scopes, view, request.holder, quota = caller
        VIEW.set(view)
        QUOTA.set(quota)
        ACTOR.set((request.caller, request.holder))
        request.scope[CALLER], request.scope[HOLDER] = request.caller, request.holder
        self._rates.admit(request.caller)


@dataclass(slots=True)
class Block:
    """Requests that a server has taken from the ledger for a caller, and may admit until a moment."""

    left: int
    until: float
    claim: Claim
    taken: Taken


class Rates:
    """Admits so many requests of a caller within any minute, by all servers of a project together.

    A server takes them from the ledger in blocks, each for a second, and gives back what it did not need. The window is longer by
    that second, so that a block that is used late does not let more pass than the limit. While the ledger cannot be used, each
    server counts alone: this limit protects the server, which must not stop because of it.
    """

    def __init__(
        self, per_minute: int, ledger: Callable[[], UsageLedger], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = per_minute
        self._ledger = ledger
        self._clock = clock
        self._blocks: dict[str, Block] = {}
        self._alone: UsageLedger | None = None

    def admit(self, caller: str) -> None:
        """Count a request; raises if the caller has none left."""
        block, now = self._blocks.get(caller), self._clock()
        if block is None or not block.left or now >= block.until:
            block = self._blocks[caller] = self._take(caller, block, now)
        block.left -= 1

    def _take(self, caller: str, old: Block | None, now: float) -> Block:
        """Take the next block; raises if there is none."""
        if len(self._blocks) >= CALLERS_KEPT:
            self._blocks.clear()
        self._blocks.pop(caller, None)
        try:
            found = self._ask(self._ledger() if self._alone is None else self._alone, caller, old, now)
        except ToolError as problem:
            logger.warning("requests are counted by this server alone: %s", problem.message)
            self._alone = UsageLedger(None)
            found = self._ask(self._alone, caller, None, now)
        if isinstance(found, Block):
            return found
        wait = max(1, math.ceil(found.wait or 0))
        message = f"more than {self._most} requests in a minute; retry in {wait} s"
        raise Refusal(429, Kind.RATE_LIMIT, message, details={RETRY_AFTER: wait})

    def _ask(self, ledger: UsageLedger, caller: str, old: Block | None, now: float) -> Block | Shortage:
        if old is not None and old.left:
            ledger.give_back([replace(old.claim, amount=old.left)], old.taken)
        size = max(1, self._most // BLOCKS)
        claim = Claim(subject=f"requests of {caller}", amount=size, limit=self._most, window=MINUTE + BLOCK_SECONDS)
        found = ledger.take([claim])
        if isinstance(found, Shortage) and size > 1:
            claim = replace(claim, amount=1)
            found = ledger.take([claim])
        if isinstance(found, Taken):
            return Block(claim.amount, now + BLOCK_SECONDS, claim, found)
        return found


def _is_from_here(request: Request) -> bool:
    client = request.scope.get("client")
    if not isinstance(client, (tuple, list)) or _was_passed_on(request):
        return False
    # If the Host is a public name a proxy forwards the requests, perhaps without headers that say so.
    if not is_name_of_this_machine(request.fields.get(b"host", b"")):
        return False
    address = str(client[0])
    # Fast path for the usual address: parsing takes longer than the other checks.
    if address == "127.0.0.1":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _was_passed_on(request: Request) -> bool:
    fields = request.fields
    if not PASSED_ON.isdisjoint(fields):
        return True
    for name in fields:  # noqa: SIM110 - a generator takes twice the time, and every request comes here
        if name.startswith(PASSED_ON_BEGINS):
            return True
    return False


def missing_scope(request: Request, has: frozenset[Scope], needed: Scope) -> Header:
    """The header of a refusal for a missing scope; with an authorization server it names those to ask for altogether."""
    scopes = {needed} if not request.metadata_url else {needed, *has}
    return challenge(error="insufficient_scope", scope=" ".join(sorted(scopes)), metadata_url=request.metadata_url)


def _bearer(request: Request) -> str:
    """The token of a request; empty if it has none of this kind."""
    scheme, _, text = request.header(b"authorization").partition(" ")
    return text if scheme.lower() == "bearer" else ""
