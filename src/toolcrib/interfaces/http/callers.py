"""Find the caller of a request by its token, check its scope, and count its requests."""

from __future__ import annotations

import ipaddress
import math
import time
from typing import TYPE_CHECKING

from toolcrib.interfaces.http.host_check import is_name_of_this_machine
from toolcrib.model.access import Scope
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http.messages import CALLER
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.access.tokens import Tokens
    from toolcrib.toolkit.http.messages import Request

LOCAL = "local"
EVERY_SCOPE = frozenset(Scope)
CALLERS_KEPT = 10_000
MAX_TOKEN = 512
# A request that a proxy passed on does not come from where its connection does.
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


class Callers:
    """Finds the caller of a request by its token, or takes it for the user of this machine where that is allowed."""

    def __init__(self, tokens: Tokens, *, open_to_loopback: bool) -> None:
        self._tokens = tokens
        self._is_open = open_to_loopback

    def identify(self, request: Request, needed: Scope) -> str:
        """The caller; raises where there is none, or one that may not do this."""
        caller, scopes = self._find(request)
        if needed in scopes:
            return caller
        message = f"the token may not {needed}; make one that may: crib token create NAME --scope {needed}"
        challenge = b'Bearer error="insufficient_scope", scope="%b"' % str(needed).encode()
        raise Refusal(403, Kind.AUTH, message, headers=((b"www-authenticate", challenge),))

    def _find(self, request: Request) -> tuple[str, frozenset[Scope]]:
        if b"authorization" not in request.fields:
            if self._is_open and _is_from_here(request):
                return LOCAL, EVERY_SCOPE
            raise _unknown("send a token as Authorization: Bearer …; make one with: crib token create", b"Bearer")
        scheme, _, text = request.header(b"authorization").partition(" ")
        token = None
        if scheme.lower() == "bearer" and 0 < len(text) <= MAX_TOKEN and text.isascii():
            token = self._tokens.check(text)
        if token is None:
            raise _unknown("the token is unknown, revoked or expired", b'Bearer error="invalid_token"')
        return token.id, token.scopes


class Gate:
    """Finds the caller of a request, checks its scope, and counts the request."""

    def __init__(self, callers: Callers, rates: Rates) -> None:
        self._callers = callers
        self._rates = rates

    def admit(self, request: Request, needed: Scope) -> None:
        """Let the request of a known caller through; raises for any other."""
        request.caller = request.scope[CALLER] = self._callers.identify(request, needed)
        self._rates.admit(request.caller)


class Rates:
    """Counts the requests of each caller: a full minute's worth at once, and then as many as time allows."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def admit(self, caller: str) -> None:
        """Count a request; raises where the caller has none left."""
        now = self._clock()
        left, then = self._left.get(caller, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        if left < 1:
            wait = math.ceil((1 - left) / self._per_second)
            message = f"more than {self._most:g} requests in a minute; come again in {wait} s"
            raise Refusal(429, Kind.RATE_LIMIT, message, headers=((b"retry-after", b"%d" % wait),))
        if len(self._left) >= CALLERS_KEPT:
            self._left.clear()
        self._left[caller] = (left - 1, now)


def _is_from_here(request: Request) -> bool:
    client = request.scope.get("client")
    if not isinstance(client, (tuple, list)) or _was_passed_on(request):
        return False
    # Where a server of this machine is called by a public name, a proxy passes the calls on, which need not say so.
    if not is_name_of_this_machine(request.fields.get(b"host", b"")):
        return False
    address = str(client[0])
    # The usual address; parsing one takes longer than all the rest.
    if address == "127.0.0.1":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _was_passed_on(request: Request) -> bool:
    fields = request.fields
    return not PASSED_ON.isdisjoint(fields) or any(name.startswith(PASSED_ON_BEGINS) for name in fields)


def _unknown(message: str, challenge: bytes) -> Refusal:
    return Refusal(401, Kind.AUTH, message, headers=((b"www-authenticate", challenge),))
