"""Access tokens of the server: shown once, stored only as a hash."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.access.view import read_view
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import read_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.features.access.view import ToolView
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.model.limits import Quota
    from toolcrib.model.protocols import Store

logger = logging.getLogger("toolcrib.tokens")

SPACE = "tokens"
SIGNED_IN = "session.opened"
# The name of every session of the web page; it does not name the person.
PAGE = "web page"
MAX_NAME = 64
MAX_SECONDS = 10 * 365 * 86_400
SECRET_BYTES = 32
# How long a token that another process revoked may still be accepted.
LOOK_SECONDS = 0.05

_TOKEN = re.compile(r"crib_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_LENGTH = len("crib_") + 16 + len("_") + 43
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """An access token; times are seconds since 1970, and without `expires_at` it is valid until revoked.

    `name` says who has it; who made it is in the audit trail. With a `view` it sees only some tools, with a `quota` it may use
    only so much.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: float
    expires_at: float | None = None
    view: ToolView | None = None
    quota: Quota | None = None

    def to_json(self) -> dict[str, object]:
        """The token as the web page shows it, without its secret."""
        return {
            "id": self.id,
            "name": self.name,
            "scopes": sorted(self.scopes),
            "createdAt": self.created_at,
            "expiresAt": self.expires_at,
            "limits": None if self.view is None else self.view.to_json(),
            "quota": None if self.quota is None else self.quota.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A cached token with the stamp of its document, and when to check the stamp again."""

    token: Token
    digest: bytes
    stamp: str
    look_at: float


class Tokens:
    """The tokens in a store; many processes may share it."""

    def __init__(self, store: Store, *, record: Recorder = unrecorded, clock: Callable[[], float] = time.time) -> None:
        self.record = record
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        # Keeps a concurrent lookup from caching a token that was just revoked.
        self._revoked: set[str] = set()

    def create(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        seconds: float | None = None,
        view: ToolView | None = None,
        quota: Quota | None = None,
        signs_in: bool = False,
    ) -> tuple[Token, str]:
        """Create a token; returns it with its secret text, which is not stored. With a `view` it sees only some tools.

        With `signs_in` it is recorded as a sign-in of its own holder.
        """
        now = self._clock()
        token = Token(
            id=os.urandom(8).hex(),
            name=_checked_name(name),
            scopes=_checked_scopes(scopes, view, quota),
            created_at=now,
            expires_at=None if seconds is None else now + _checked_seconds(seconds),
            view=view,
            quota=quota,
        )
        secret = secrets.token_urlsafe(SECRET_BYTES)
        what, actor = (SIGNED_IN, (token.id, name)) if signs_in else ("token.created", None)
        with self.record(what, token.id, actor=actor, facts=token.to_json()):
            if not self._store.create(_key(token.id), _write(token, _digest(secret))):
                raise ToolError(Kind.CONFLICT, f"there is a token {token.id} already; create one again", retryable=True)
        return token, f"crib_{token.id}_{secret}"

    def check(self, text: object) -> Token | None:
        """The token of the text; None if it is unknown, expired or revoked."""
        # Fast path for every request: reject malformed tokens without a lookup.
        if not isinstance(text, str) or len(text) != _LENGTH or not (found := _TOKEN.fullmatch(text)):
            return None
        known = self._look_up(found[1])
        if known is None or not hmac.compare_digest(known.digest, _digest(found[2])):
            return None
        expires_at = known.token.expires_at
        return None if expires_at is not None and self._clock() >= expires_at else known.token

    def list(self) -> list[Token]:
        """Every token, the oldest first, including expired ones."""
        ids = [key.removeprefix(f"{SPACE}/").removesuffix(".json") for key in self._store.keys(f"{SPACE}/")]
        found = [known.token for token_id in ids if _ID.fullmatch(token_id) and (known := self._read(token_id))]
        return sorted(found, key=lambda token: (token.created_at, token.id))

    def holder(self, token_id: str) -> str:
        """The name of the token's holder; empty for an unknown id, and for a session of the web page."""
        known = self._read(token_id) if _ID.fullmatch(token_id) else None
        return "" if known is None or known.token.name == PAGE else known.token.name

    def revoke(self, token_id: str) -> bool:
        """Revoke a token, at once in this process and within 50 ms in others; False if there is none."""
        if not _ID.fullmatch(token_id) or self._store.stamp(_key(token_id)) is None:
            return False
        with self.record("token.revoked", token_id):
            self._revoked.add(token_id)
            self._known.pop(token_id, None)
            return self._store.remove(_key(token_id))

    def _look_up(self, token_id: str) -> _Known | None:
        if token_id in self._revoked:
            return None
        known, now = self._known.get(token_id), time.monotonic()
        if known is not None and now < known.look_at:
            return known
        stamp = self._store.stamp(_key(token_id))
        if known is not None and stamp == known.stamp:
            known = replace(known, look_at=now + LOOK_SECONDS)
        else:
            known = None if stamp is None else self._read(token_id, stamp, now + LOOK_SECONDS)
        if known is None:
            self._known.pop(token_id, None)
        else:
            self._known[token_id] = known
        return known

    def _read(self, token_id: str, stamp: str = "", look_at: float = 0.0) -> _Known | None:
        """Read a token from the store; None if it is missing or unreadable."""
        document = self._store.get(_key(token_id))
        if document is None:
            return None
        try:
            token, digest = _parse(token_id, document)
        except (ToolError, ValueError, KeyError, TypeError, AttributeError):
            logger.warning("token %s cannot be read and counts as revoked; revoke it, and create another", token_id)
            return None
        return _Known(token=token, digest=digest, stamp=stamp, look_at=look_at)


def _key(token_id: str) -> str:
    return f"{SPACE}/{token_id}.json"


def _digest(secret: str) -> bytes:
    # A fast hash is enough: 32 random bytes cannot be guessed.
    return hashlib.sha256(secret.encode()).digest()


def _write(token: Token, digest: bytes) -> bytes:
    document = {**token.to_json(), "sha256": digest.hex()}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _parse(token_id: str, document: bytes) -> tuple[Token, bytes]:
    """Parse a document to the token and its hash; raises ValueError, KeyError or TypeError for a foreign one."""
    found = orjson.loads(document)
    expires_at = found["expiresAt"]
    digest = bytes.fromhex(found["sha256"])
    if found["id"] != token_id or len(digest) != hashlib.sha256().digest_size:
        raise ValueError
    view, quota = read_view(found.get("limits")), read_quota(found.get("quota"))
    token = Token(
        id=token_id,
        name=_checked_name(found["name"]),
        scopes=_checked_scopes(found["scopes"], view, quota),
        created_at=float(found["createdAt"]),
        expires_at=None if expires_at is None else float(expires_at),
        view=view,
        quota=quota,
    )
    return token, digest


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name.strip()) <= len(name) <= MAX_NAME or not name.isprintable():
        raise _refusal(f"the name of a token is a text of 1 to {MAX_NAME} letters, which says who has it")
    return name


def _checked_scopes(scopes: Iterable[object], view: ToolView | None, quota: Quota | None) -> frozenset[Scope]:
    words = frozenset(map(str, scopes))
    if not words or not words <= set(Scope):
        raise _refusal(f"a token is good for some of {', '.join(Scope)}; name at least one, and no other")
    if view is not None and Scope.MANAGE in words:
        raise _refusal("a token that is limited to tools may not manage them; leave out the scope manage or the limits")
    if quota is not None and Scope.MANAGE in words:
        raise _refusal(
            "a token with a quota may not manage: it could make itself another; leave out the scope or the quota"
        )
    return frozenset(map(Scope, words))


def _checked_seconds(seconds: float) -> float:
    if not 0 < seconds <= MAX_SECONDS:
        raise _refusal("a token holds for more than 0 seconds and at most 10 years; leave the time out for no end")
    return seconds


def _refusal(message: str) -> ToolError:
    return ToolError(Kind.VALIDATION, message)
