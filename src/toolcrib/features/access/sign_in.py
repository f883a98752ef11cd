"""Sign a person in to the web page: one-time links, and sessions, which are tokens that expire."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.access.tokens import PAGE, SIGNED_IN
from toolcrib.infra.files.locks import give_back, take
from toolcrib.lib.seal import Seal
from toolcrib.model.call import Scope
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from toolcrib.features.access.tokens import Token, Tokens
    from toolcrib.infra.storage.expiring import Expiring

COOKIE = "toolcrib_session"
CSRF_HEADER = b"x-toolcrib-csrf"
LINK_SECONDS = 600
# Locked by a running server, and holds its URL.
SERVER_FILE = "server"
SESSION_SECONDS = 12 * 3_600


class SigningCrib(Protocol):
    """What signing in uses of a crib."""

    @property
    def tokens(self) -> Tokens:
        """The tokens of the server."""

    def derive_key(self, purpose: str) -> bytes:
        """A key for one purpose."""

    def expiring(self, space: str) -> Expiring:
        """A space of the store for documents that expire."""


def sign_in_of(crib: SigningCrib) -> SignIn:
    """The sign-in of a crib's project."""
    return SignIn(crib.tokens, lambda: crib.derive_key("page sign-in"), crib.expiring("signin"))


def sign_in_link(crib: SigningCrib, url: str) -> str:
    """A one-time link that signs in to the web page; its code follows a #, which browsers never send to a server."""
    return f"{url.rstrip('/')}/ui/#sign-in={sign_in_of(crib).make_code()}"


@contextmanager
def noted_server(data: Path | None, url: str) -> Iterator[None]:
    """Inside the block, other commands of the project find the running server at this URL; the first of several counts."""
    held = None
    if data is not None:
        with suppress(OSError):
            held = take(data / SERVER_FILE, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        if held is not None:
            os.ftruncate(held, 0)
            os.pwrite(held, url.encode(), 0)
        yield
    finally:
        if held is not None:
            give_back(held)


def running_server(data: Path | None) -> str:
    """The URL of the server of the project that runs on this machine; empty if none does."""
    if data is None or not (data / SERVER_FILE).is_file():
        return ""
    held = take(data / SERVER_FILE, fcntl.LOCK_SH | fcntl.LOCK_NB)
    if held is None:
        return (data / SERVER_FILE).read_text(encoding="utf-8")
    give_back(held)
    return ""


class SignIn:
    """Makes one-time sign-in links, and opens sessions.

    A link is made by a person who starts the server or can read the project, so its session has all scopes, including approve.
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
        """Open a session with the code of a link; raises ToolError if the code is invalid, expired or used."""
        match self._seal.read(code):
            case [int(expiry), str(nonce)]:
                pass
            case _:
                raise _refusal("the link is not one of this server's")
        if expiry < self._clock():
            raise _refusal("the link has expired")
        if not self._used.create(expiry, nonce, b"used"):
            raise _refusal("the link was used before")
        return self._tokens.create(PAGE, Scope, seconds=SESSION_SECONDS, signs_in=True)

    def open_by_token(self, text: str) -> tuple[Token, str]:
        """Open a session with a token; the session is the token itself, stored in the cookie."""
        token = self._tokens.check(text)
        if token is None:
            raise _refusal("the token is unknown, revoked or expired")
        with self._tokens.record(SIGNED_IN, token.id, actor=(token.id, token.name)):
            return token, text

    def close(self, text: str) -> None:
        """Close a session; a token that was not created by a link stays valid."""
        token = self._tokens.check(text)
        if token is not None and token.name == PAGE:
            self._tokens.revoke(token.id)


def csrf_of(text: str) -> str:
    """The CSRF token that the page sends with every change; another site cannot compute it without the cookie."""
    return hashlib.sha256(b"csrf\0" + text.encode()).hexdigest()[:32]


def session_in(cookies: str) -> str:
    """The session's token in a Cookie header; empty if there is none, or more than one."""
    found = [value for name, _, value in (part.strip().partition("=") for part in cookies.split(";")) if name == COOKIE]
    return found[0] if len(found) == 1 else ""


def _refusal(reason: str) -> ToolError:
    cure = Cure("make another with: crib page, or sign in with a token", "sign in with another one, or with a token")
    return ToolError(Kind.AUTH, reason, cure=cure)
