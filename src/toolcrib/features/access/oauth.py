"""Accept access tokens of an OAuth authorization server, the issuer that the operator trusts.

A token is valid if the issuer signed it, its audience is this resource, and it has not expired. The keys of the issuer are
fetched through `infra.egress` and cached; a minimum interval keeps requests of clients from fetching them too often.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections import OrderedDict
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.access.view import read_view
from toolcrib.infra.egress import Request
from toolcrib.infra.egress.client import Egress
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.lib.signed_tokens import TokenError, read_keys, read_token, verify
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.features.access.view import ToolView
    from toolcrib.lib.http_syntax import Url
    from toolcrib.lib.signed_tokens import PublicKey, SignedToken

logger = logging.getLogger("toolcrib.oauth")

# How far the clocks of issuer and server may differ.
LEEWAY_SECONDS = 30.0
# How long a verified token is cached, at most until it expires.
REMEMBERED_SECONDS = 60.0
MAX_REMEMBERED = 1_000
# The age at which keys are fetched again; the pause between two fetches, for an unknown key or after a failure; and how long
# cached keys are used while the issuer cannot be reached.
FRESH_SECONDS = 300.0
PAUSE_SECONDS = 10.0
STALE_SECONDS = 3_600.0
FETCH_SECONDS = 5.0
ALL_SECONDS = 10.0
MAX_DOCUMENT_BYTES = 256_000
MAX_SUBJECT = 150
OK = 200
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# The claim by which the issuer limits a token to some tools.
LIMITS_CLAIM = "toolcrib_limits"
WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
RESOURCE_PATH = "/.well-known/oauth-protected-resource"


class UnreachableIssuerError(ToolError):
    """The keys of the issuer cannot be fetched, so no token can be verified."""

    def __init__(self, why: str) -> None:
        super().__init__(
            Kind.TRANSIENT, f"the keys of the authorization server cannot be had: {why}; retry later", retryable=True
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class IssuerGrant:
    """What a token of the issuer grants: a caller, its scopes, and which tools it sees."""

    caller: str
    scopes: frozenset[Scope]
    view: ToolView | None
    expires_at: float


class Authorization:
    """Verifies tokens of one issuer for one resource.

    `keys_url` is the address of its keys; if empty, the metadata of the issuer name it. `private` are addresses that may be
    reached besides public ones; the address of the issuer is allowed, because the operator configured it.
    """

    def __init__(
        self,
        issuer: str,
        resource: str,
        *,
        keys_url: str = "",
        private: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        typed = [
            url for url in (_checked("oauth_issuer", issuer), keys_url and _checked("oauth_keys", keys_url)) if url
        ]
        self._resource = _checked("oauth_resource", resource)
        self.issuer = issuer
        self.resource = resource
        own = tuple(f"{url.host}:{url.port}" for url in typed if url.address is not None)
        self._egress = Egress(private=(*private, *own))
        self._keys = IssuerKeys(issuer, keys_url, self._egress)
        self._clock = clock
        self._remembered: OrderedDict[bytes, tuple[float, IssuerGrant]] = OrderedDict()

    @property
    def metadata_url(self) -> str:
        """The address of the resource's metadata: the well-known path, followed by the path of the resource."""
        path = self._resource.target.partition("?")[0].rstrip("/")
        return f"{self._resource.origin}{RESOURCE_PATH}{path}"

    @property
    def metadata(self) -> dict[str, object]:
        """The metadata of the resource (RFC 9728)."""
        return {
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": [str(scope) for scope in Scope],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolcrib",
        }

    async def check(self, text: str) -> IssuerGrant:
        """Verify a token; raises TokenError if it is invalid, UnreachableIssuerError if there are no keys to verify it."""
        now = self._clock()
        digest = hashlib.sha256(text.encode()).digest()
        until, grant = self._remembered.get(digest, (0.0, None))
        if grant is not None and now < until:
            return grant
        token = read_token(text)
        # Claims first: only a token that claims to be for this resource may cause a fetch of keys.
        grant = self._read(token.claims, now)
        await self._verify(token)
        self._remembered[digest] = min(now + REMEMBERED_SECONDS, grant.expires_at), grant
        self._remembered.move_to_end(digest)
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return grant

    async def close(self) -> None:
        """Close the connections to the issuer."""
        await self._egress.close()

    async def _verify(self, token: SignedToken) -> None:
        for key in await self._keys.for_token(token):
            # One check takes a tenth of a millisecond at most, so it needs no thread.
            if verify(token, key):
                return
        raise TokenError("its signature is not one of the issuer")

    def _read(self, claims: Mapping[str, object], now: float) -> IssuerGrant:
        if claims.get("iss") != self.issuer:
            raise TokenError("it is of another issuer")
        audience = claims.get("aud")
        if self.resource not in (audience if isinstance(audience, list) else [audience]):
            raise TokenError(f"it is not for {self.resource}")
        expires_at = _moment(claims, "exp")
        if expires_at is None or expires_at + LEEWAY_SECONDS <= now:
            raise TokenError("it has expired, or does not say when it does")
        for name in ("nbf", "iat"):
            moment = _moment(claims, name)
            if moment is not None and moment - LEEWAY_SECONDS > now:
                raise TokenError("it is not valid yet")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise TokenError("it names no subject, or one that cannot be shown")
        scopes = _scopes(claims)
        try:
            view = read_view(claims.get(LIMITS_CLAIM))
        except (ValueError, ToolError):
            raise TokenError(f"its limits in {LIMITS_CLAIM} cannot be read") from None
        if view is not None:
            scopes -= {Scope.MANAGE}
        # The prefix keeps a subject of the issuer apart from our own token ids and from users of this machine.
        return IssuerGrant(caller=f"oauth:{subject}", scopes=scopes, view=view, expires_at=expires_at + LEEWAY_SECONDS)


class IssuerKeys:
    """The public keys of an issuer, fetched on demand and cached."""

    def __init__(self, issuer: str, url: str, egress: Egress, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._url = url
        self._egress = egress
        self._clock = clock
        self._keys: list[PublicKey] = []
        self._fetched = -math.inf
        self._tried = -math.inf
        self._failure = ""
        self._fetching: asyncio.Task[None] | None = None

    async def for_token(self, token: SignedToken) -> list[PublicKey]:
        """The keys that may have signed the token; fetched again if they are missing, old, or lack the one that it names."""
        now = self._clock()
        found = self._matching(token)
        if (not found or now - self._fetched > FRESH_SECONDS) and now - self._tried >= PAUSE_SECONDS:
            if self._fetching is None:
                # All waiting requests share one fetch, so the end of one of them must not cancel it.
                self._fetching = asyncio.create_task(self._fetch(), context=Context())
            await asyncio.shield(self._fetching)
            found = self._matching(token)
        elif self._fetching is not None and not found:
            await asyncio.shield(self._fetching)
            found = self._matching(token)
        if self._failure and self._clock() - self._fetched > STALE_SECONDS:
            raise UnreachableIssuerError(self._failure)
        return found

    def _matching(self, token: SignedToken) -> list[PublicKey]:
        suited = [key for key in self._keys if key.is_for(token.algorithm)]
        if token.key_id is None:
            # A token without a key id can only mean the issuer's single key.
            return suited if len(suited) == 1 else []
        return [key for key in suited if key.id == token.key_id][:1]

    async def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            async with asyncio.timeout(ALL_SECONDS):
                url = self._url or await self._find_url()
                self._keys = read_keys(await self._read_document(url))
            self._fetched = self._clock()
            self._failure = ""
        except (ToolError, SettingsError, TokenError, TimeoutError) as problem:
            self._failure = str(problem) or f"nothing came within {ALL_SECONDS:g} s"
            logger.warning("the keys of the issuer %s cannot be had: %s", self._issuer, self._failure)
        finally:
            # The pause starts at the end of the fetch, or a slow one would be followed by the next at once.
            self._tried = self._clock()
            self._fetching = None

    async def _find_url(self) -> str:
        """The address of the keys, from the metadata of the issuer (RFC 8414, or OpenID discovery)."""
        base = parse_url(self._issuer)
        path = "" if base.target == "/" else base.target.rstrip("/")
        places = (
            f"{base.origin}{WELL_KNOWN[0]}{path}",
            f"{base.origin}{WELL_KNOWN[1]}{path}",
            f"{base.origin}{path}{WELL_KNOWN[1]}",
        )
        problem = TokenError("it has no metadata")
        for place in dict.fromkeys(places):
            try:
                document = await self._read_document(place)
            except (ToolError, TokenError) as refusal:
                # The next well-known path may have them.
                problem = TokenError(str(refusal))
                continue
            if not isinstance(document, dict) or document.get("issuer") != self._issuer:
                raise TokenError(f"{place} is about another issuer")
            url = document.get("jwks_uri")
            if not isinstance(url, str):
                raise TokenError(f"{place} does not say where the keys are")
            _checked("jwks_uri of the issuer", url)
            return url
        raise problem

    async def _read_document(self, place: str) -> object:
        url = parse_url(place)
        request = Request(url=url, headers={"Accept": "application/json"})
        hosts = parse_hosts([url.authority])
        response = await self._egress.fetch(request, hosts=hosts, max_bytes=MAX_DOCUMENT_BYTES, timeout=FETCH_SECONDS)
        if response.status != OK or response.hops:
            raise TokenError(f"{place} answers with status {response.status}, or from elsewhere")
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError:
            raise TokenError(f"{place} answers with something else than JSON") from None


def _checked(name: str, text: str) -> Url:
    """Parse a URL with https or on loopback; raises SettingsError for any other, over which keys could be replaced."""
    try:
        url = parse_url(text)
    except ToolError as problem:
        raise SettingsError(f"{name}: {problem.message}") from problem
    if url.scheme != "https" and url.host not in LOOPBACK:
        raise SettingsError(f"{name}: write an address with https; http is for this machine alone")
    return url


def _moment(claims: Mapping[str, object], name: str) -> float | None:
    moment = claims.get(name)
    if moment is None:
        return None
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise TokenError(f"its {name} is not a time")
    return float(moment)


def _scopes(claims: Mapping[str, object]) -> frozenset[Scope]:
    """The scopes of Toolcrib in the claims; others are ignored."""
    given = claims.get("scope", claims.get("scp", ""))
    words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
    known = {str(scope): scope for scope in Scope}
    return frozenset(known[word] for word in words if isinstance(word, str) and word in known)
