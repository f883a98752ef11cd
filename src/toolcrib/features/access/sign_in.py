"""Sign a person in to the web page: links that work once, and sessions, which are tokens that end by themselves."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.access.tokens import PAGE
from toolcrib.lib.seal import Seal
from toolcrib.model.call import Scope
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.access.tokens import Token, Tokens
    from toolcrib.infra.storage.expiring import Expiring

COOKIE = "toolcrib_session"
CSRF_HEADER = b"x-toolcrib-csrf"
LINK_SECONDS = 600
SESSION_SECONDS = 12 * 3_600


class SigningCrib(Protocol):
    """What signing in uses of a crib."""

    @property
    def tokens(self) -> Tokens:
        """The tokens of the server."""

    def derive_key(self, purpose: str) -> bytes:
        """A key for one purpose."""

    def expiring(self, space: str) -> Expiring:
        """A corner of the store for documents that expire."""


def sign_in_of(crib: SigningCrib) -> SignIn:
    """The sign-in of a crib's project."""
    return SignIn(crib.tokens, lambda: crib.derive_key("page sign-in"), crib.expiring("signin"))


def sign_in_link(crib: SigningCrib, url: str) -> str:
    """A link to the web page that signs in who opens it first; its code follows a #, which browsers never send."""
    return f"{url.rstrip('/')}/ui/#sign-in={sign_in_of(crib).make_code()}"


class SignIn:
    """Makes links that sign a person in once, and opens sessions.

    A link is made by a person who starts the server or can read the project, so its session may do everything, approving included.
    """

    def __init__(
        self,
        tokens: Tokens,
        key: Callable[[], bytes],
        used: Expiring,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._seal = Seal(key)
        self._used = used
        self._clock = clock

    def make_code(self) -> str:
        """A code that opens one session within ten minutes."""
        return self._seal.write([int(self._clock() + LINK_SECONDS), secrets.token_hex(16)])

    def open_by_code(self, code: str) -> tuple[Token, str]:
        """Open a session with a code of ours, once; raises ToolError for any other."""
        match self._seal.read(code):
            case [int(expiry), str(nonce)]:
                pass
            case _:
                raise _refusal("the link is not one of this server's")
        if expiry < self._clock():
            raise _refusal("the link has expired")
        if not self._used.create(expiry, nonce, b"used"):
            raise _refusal("the link was used before")
        return self._tokens.create(PAGE, Scope, seconds=SESSION_SECONDS)

    def open_by_token(self, text: str) -> tuple[Token, str]:
        """Open a session that may do what a token may: it is that token, held by the browser."""
        token = self._tokens.check(text)
        if token is None:
            raise _refusal("the token is unknown, revoked or expired")
        return token, text

    def close(self, text: str) -> None:
        """End a session; a token that was made elsewhere stays."""
        token = self._tokens.check(text)
        if token is not None and token.name == PAGE:
            self._tokens.revoke(token.id)


def csrf_of(text: str) -> str:
    """The value that the page sends with every change: a foreign page cannot know it, because it cannot read the cookie."""
    return hashlib.sha256(b"csrf\0" + text.encode()).hexdigest()[:32]


def session_in(cookies: str) -> str:
    """The text of the session's token in a Cookie header; empty if there is none, or more than one."""
    found = [value for name, _, value in (part.strip().partition("=") for part in cookies.split(";")) if name == COOKIE]
    return found[0] if len(found) == 1 else ""


def _refusal(reason: str) -> ToolError:
    cure = Cure("make another with: crib page, or sign in with a token", "sign in with another one, or with a token")
    return ToolError(Kind.AUTH, reason, cure=cure)
