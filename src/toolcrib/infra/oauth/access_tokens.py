"""Provide access tokens: one renewal for the calls of all processes, and a new token is stored before it is used.

A renewal runs in a thread with its own event loop, independent of its callers: a caller that is cancelled, or whose loop ends,
must not lose a refresh token that the server has exchanged already.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files.locks import Locks
from toolcrib.infra.oauth import OAuthTokens, read_tokens
from toolcrib.infra.oauth.token_endpoint import Client, ask_for_tokens, check_scope
from toolcrib.infra.secrets.lookup import LOCK_FOLDER, KeptSecrets
from toolcrib.lib.http_auth.kinds import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.secrets.secret import Masking

FILE = "access_tokens.json"
# Longer than a request to an authorization server takes.
LOCK_SECONDS = 15.0
MAX_STORED = 500
# How many tokens of one grant are masked: the newest, and earlier ones that a slow server may still send back.
MAX_MASKED = 8
# How long a refusal is cached, and how long a token is not renewed after its successor was refused too.
REFUSED_SECONDS = 5.0
FRUITLESS_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The right to access tokens; `seed` is its secret: that of the client, a refresh token, or a stored login."""

    kind: str
    client: Client
    seed: str = field(repr=False)

    @property
    def key(self) -> str:
        """The name of its stored tokens. It contains the scopes only if each renewal requests them: a login has one chain of tokens."""
        scopes = sorted(self.client.scopes) if self.kind == CLIENT_CREDENTIALS else []
        parts = [self.kind, str(self.client.token_url), self.client.client_id, scopes, self.seed]
        facts = orjson.dumps([*parts, dict(sorted(self.client.parameters.items()))])
        return f"T{hashlib.sha256(facts).hexdigest()[:40]}"


class AccessTokens:
    """The access tokens of a project, shared by its calls and processes; without a `folder` those of this process."""

    def __init__(
        self,
        egress: Callable[[], Egress],
        folder: Path | None,
        masking: Masking,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._egress = egress
        self._masking = masking
        self._clock = clock
        self._kept = None if folder is None else KeptSecrets(folder, FILE)
        self._locks = None if folder is None else Locks(folder / LOCK_FOLDER)
        self._known: dict[str, OAuthTokens] = {}
        self._owed: dict[str, OAuthTokens] = {}
        self._refused: dict[str, tuple[float, ToolError]] = {}
        self._fruitless: dict[str, float] = {}
        self._renewals: dict[str, Future[OAuthTokens]] = {}
        self._masked: dict[str, deque[str]] = {}
        self._changing = threading.Lock()

    async def get(self, grant: Grant, *, seconds: float, refused: str = "") -> str:
        """A valid token other than `refused`, which a server has refused; waits at most `seconds`."""
        key = grant.key
        known = self._known.get(key)
        if known is not None and known.access_token != refused and known.is_fresh(self._clock()):
            return self._hand_out(grant, known)
        if (last := self._refused.get(key)) is not None and time.monotonic() < last[0]:
            raise last[1]
        try:
            async with asyncio.timeout(seconds):
                tokens = await self._wait(grant, key, refused)
                # A renewal that began for another caller may have returned the very token that was refused.
                if tokens.access_token == refused:
                    tokens = await self._wait(grant, key, refused)
                return self._hand_out(grant, tokens)
        except TimeoutError:
            origin = grant.client.token_url.origin
            message = f"the authorization server {origin} gave no token within {seconds:g} s; try again later"
            raise ToolError(Kind.TIMEOUT, message, retryable=True, details={"origin": origin}) from None

    async def _wait(self, grant: Grant, key: str, refused: str) -> OAuthTokens:
        return await asyncio.wrap_future(self._renewal(grant, key, refused))

    def is_renewable(self, grant: Grant) -> bool:
        """Whether a new token may help against a refusal; not if the last one did not."""
        return time.monotonic() >= self._fruitless.get(grant.key, 0.0)

    def note_fruitless(self, grant: Grant) -> None:
        """Record that a server refused a token that was just renewed."""
        self._fruitless[grant.key] = time.monotonic() + FRUITLESS_SECONDS

    async def exchange(self, client: Client, values: Mapping[str, str]) -> OAuthTokens:
        """Get the first tokens of a login for its code; the caller stores them."""
        egress = self._egress()
        tokens = await ask_for_tokens(egress, client, AUTHORIZATION_CODE, values, clock=self._clock)
        self._masking.add(*filter(None, (tokens.access_token, tokens.refresh_token)))
        return tokens

    def check_server(self, client: Client) -> None:
        """Refuse an authorization server that may not be reached, as far as that is known before connecting."""
        self._egress().check(client.token_url, client.hosts)

    def forget(self, seed: str) -> None:
        """Remove the tokens that were obtained with a secret that is no longer used."""
        if self._kept is None:
            return
        source = _source(seed)
        for name in self._kept.names():
            if (tokens := self._read(self._kept, name)) is not None and tokens.source == source:
                self._kept.remove(name)

    def keep(self, grant: Grant, tokens: OAuthTokens) -> None:
        """Store tokens, so that every process finds them."""
        self._mask(grant, tokens)
        if self._kept is not None:
            self._kept.set(grant.key, replace(tokens, source=_source(grant.seed)).to_text())
            self._forget_oldest(self._kept)
        self._known[grant.key] = tokens

    def _hand_out(self, grant: Grant, tokens: OAuthTokens) -> str:
        if tokens.scope:
            check_scope(grant.client, grant.client.scopes, tokens.scope)
        return tokens.access_token

    def _renewal(self, grant: Grant, key: str, refused: str) -> Future[OAuthTokens]:
        """The renewal that is under way in this process, or a new one."""
        with self._changing:
            found = self._renewals.get(key)
            if found is None:
                found = self._renewals[key] = Future()
                # From now on it cannot be cancelled: others wait for it, and the new token must be stored.
                found.set_running_or_notify_cancel()
                # Not a daemon: the program exits only after a new token is stored.
                threading.Thread(
                    target=self._run, args=(grant, key, refused, found), name="oauth", daemon=False
                ).start()
            return found

    def _run(self, grant: Grant, key: str, refused: str, result: Future[OAuthTokens]) -> None:
        try:
            tokens = self._renew(grant, key, refused)
        except BaseException as problem:  # noqa: BLE001 - every failure is raised in the waiting callers
            if isinstance(problem, ToolError):
                # The message of a server may contain what it was sent.
                problem = self._masking.hide_error(problem)
                if problem.kind is Kind.AUTH:
                    self._refused[key] = (time.monotonic() + REFUSED_SECONDS, problem)
            self._end(key)
            result.set_exception(problem)
        else:
            self._end(key)
            result.set_result(tokens)

    def _end(self, key: str) -> None:
        with self._changing:
            self._renewals.pop(key, None)

    def _renew(self, grant: Grant, key: str, refused: str) -> OAuthTokens:
        with self._only_one(key):
            if (owed := self._owed.get(key)) is not None:
                self._store(grant, owed)
            tokens = self._find(grant, key)
            if tokens is None or tokens.access_token == refused or not tokens.is_fresh(self._clock()):
                tokens = asyncio.run(self._ask(grant, tokens))
                self._store(grant, tokens)
            self._known[key] = tokens
            return tokens

    def _store(self, grant: Grant, tokens: OAuthTokens) -> None:
        """Store tokens before they are used; if the disk is full, memory keeps them, or the refresh token would be lost."""
        self._owed[grant.key] = tokens
        self.keep(grant, tokens)
        del self._owed[grant.key]

    def _only_one(self, key: str) -> AbstractContextManager[None]:
        """Keep other processes from renewing the same token."""
        return nullcontext() if self._locks is None else self._locks.hold(f"oauth-{key}", LOCK_SECONDS)

    def _find(self, grant: Grant, key: str) -> OAuthTokens | None:
        """The newest tokens of the grant: stored by a renewal, else those of the login."""
        tokens = self._known.get(key) if self._kept is None else self._read(self._kept, key)
        if tokens is None and grant.kind == AUTHORIZATION_CODE:
            tokens = read_tokens(grant.seed)
        if tokens is not None:
            self._mask(grant, tokens)
        return tokens

    def _mask(self, grant: Grant, tokens: OAuthTokens) -> None:
        """Mask the tokens of a grant instead of its oldest ones: a server that runs for months has had thousands."""
        values = [value for value in (tokens.access_token, tokens.refresh_token) if value and value not in grant.seed]
        self._masking.add(*values)
        masked = self._masked.setdefault(grant.key, deque())
        masked.extend(value for value in values if value not in masked)
        while len(masked) > MAX_MASKED:
            self._masking.forget(masked.popleft())

    async def _ask(self, grant: Grant, tokens: OAuthTokens | None) -> OAuthTokens:
        egress = self._egress()
        try:
            if grant.kind == CLIENT_CREDENTIALS:
                return await ask_for_tokens(egress, grant.client, CLIENT_CREDENTIALS, {}, clock=self._clock)
            token = grant.seed if tokens is None else tokens.refresh_token
            if not token:
                origin = grant.client.token_url.origin
                message = f"the token of {origin} has expired, and there is none to renew it with"
                raise ToolError(Kind.AUTH, message, cure=grant.client.cure, details={"origin": origin})
            # Without a scope: the server renews what was granted.
            client = replace(grant.client, scopes=())
            renewed = await ask_for_tokens(egress, client, REFRESH_TOKEN, {REFRESH_TOKEN: token}, clock=self._clock)
            return replace(renewed, scope=renewed.scope or (tokens.scope if tokens is not None else ""))
        finally:
            # Closes the connections of this loop, which ends with the renewal.
            await egress.close()

    def _forget_oldest(self, kept: KeptSecrets) -> None:
        """Remove the oldest tokens beyond the limit: each new secret or scope makes new ones."""
        names = kept.names()
        if len(names) <= MAX_STORED:
            return
        received = {name: tokens.received_at for name in names if (tokens := self._read(kept, name)) is not None}
        for name in sorted(names, key=lambda name: received.get(name, 0.0))[: len(names) - MAX_STORED]:
            kept.remove(name)

    def _read(self, kept: KeptSecrets, name: str) -> OAuthTokens | None:
        """Stored tokens; None if they cannot be decrypted, so that new ones are requested."""
        try:
            return read_tokens(kept.get(name) or "")
        except SettingsError:
            return None


def _source(seed: str) -> str:
    return hashlib.sha256(b"toolcrib source\0" + seed.encode()).hexdigest()[:32]
