"""Sign the requests of HTTP tools: the one place where credentials are added to a request.

A signer is made once per tool. For each attempt it looks up what it needs, masks what it derives from that, and hands the egress
what signs the request when it is sent.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections import deque
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from toolcrib.features.http_tools.slots import Slot, SlotSource
from toolcrib.infra.oauth import read_tokens
from toolcrib.infra.oauth.access_tokens import Grant
from toolcrib.infra.oauth.token_endpoint import Client
from toolcrib.lib.http_auth import Message, Reference
from toolcrib.lib.http_auth.aws import AwsKey, sign_aws, spell_target
from toolcrib.lib.http_auth.hmac_string import Attempt, decode_key, sign_string
from toolcrib.lib.http_auth.http_message import Parameters, load_key, sign_message
from toolcrib.lib.http_auth.kinds import (
    AUTHORIZATION,
    AUTHORIZATION_CODE,
    CLIENT_CREDENTIALS,
    ApiKey,
    Aws,
    Basic,
    Bearer,
    Hmac,
    HttpSignature,
    OAuth2,
)
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolcrib.features.http_tools.slots import Lookup
    from toolcrib.infra.egress import Request, Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.oauth.access_tokens import AccessTokens
    from toolcrib.infra.secrets.secret import Masking
    from toolcrib.lib.http_auth.kinds import Auth, Value
    from toolcrib.lib.http_syntax import HostList

    Sign = Callable[[Request], Request]
    # The value of a text of the author or of a reference.
    Reveal = Callable[[Value], str]

Key = TypeVar("Key")

_LETTERS = re.compile(r"[A-Za-z0-9]+")

UNAUTHORISED = 401
REFUSED = frozenset({401, 403})
# Servers refuse signatures whose time is further from their own.
MAX_SKEW_SECONDS = 60
NONCE_BYTES = 16
# Access tokens and signatures that one signer masks: the newest, and some that a slow server may still repeat.
MAX_MASKED = 64


class Credentials:
    """The credentials of one attempt; signs a request when it is called. `mask` hides a text from everything that is reported."""

    def __init__(
        self, sign: Sign, made: list[str], mask: Callable[[str], None], *, grant: Grant | None = None, token: str = ""
    ) -> None:
        self._sign = sign
        self._made = made
        self._mask = mask
        self.grant = grant
        self.token = token

    def __call__(self, request: Request) -> Request:
        """The request as it is sent now."""
        return self._sign(request)

    @property
    def texts(self) -> set[str]:
        """The signatures of this attempt, for what masks an answer before all of it is there."""
        return set(self._made)

    def hide_in(self, response: Response, *, is_stream: bool) -> Response:
        """Have the signatures of this attempt masked if the server repeats one of them.

        Every signature is another one, and masking a text costs more than signing: only one that may have come back is masked.
        The items of a stream may hold a signature in pieces, which no search of the whole finds.
        """
        if self._made:
            told = response.body.lower() + " ".join(response.headers.values()).lower().encode()
            for signature in self._made:
                if is_stream or _invariant_part(signature) in told:
                    self._mask(signature)
        return response


@dataclass(frozen=True, kw_only=True, slots=True)
class Signer:
    """Adds credentials to one request of a tool.

    `hosts` are those that the tool may reach: an authorization server is one of them. `masking` hides what is derived from
    secrets.
    """

    auth: Auth
    masking: Masking
    egress: Callable[[], Egress]
    tokens: Callable[[], AccessTokens]
    hosts: HostList | None
    clock: Callable[[], float]
    masked: deque[str] = field(default_factory=deque, repr=False)

    def check(self, lookup: Lookup) -> None:
        """Refuse what can be seen without sending: values that are missing, keys that sign nothing, a host that is not allowed."""
        if isinstance(self.auth, OAuth2):
            self.egress().check(self.auth.token_url, self.hosts)
            self._grant(self.auth, partial(_reveal, lookup))
        else:
            self._signer(self.auth, partial(_reveal, lookup), [])

    def needs(self, lookup: Lookup) -> Iterator[Callable[[], object]]:
        """The checks of what the operator provides: secrets, variables, a login, the host of an authorization server."""
        reveal = partial(_reveal, lookup)
        yield from (partial(reveal, reference) for reference in self.auth.references())
        if isinstance(self.auth, OAuth2):
            yield partial(_seed, self.auth, "", reveal)
            yield from self.egress().checks(self.auth.token_url, self.hosts)

    async def begin(self, lookup: Lookup, *, seconds: float, refused: str = "") -> Credentials:
        """The credentials of an attempt; a new access token is requested, within `seconds`, if there is only the `refused` one."""
        reveal, made = partial(_reveal, lookup), list[str]()
        if not isinstance(self.auth, OAuth2):
            return Credentials(self._signer(self.auth, reveal, made), made, self._mask)
        grant = self._grant(self.auth, reveal)
        token = await self.tokens().get(grant, seconds=seconds, refused=refused)
        self._mask(token)
        sign = _with_header(AUTHORIZATION, f"Bearer {token}")
        return Credentials(sign, made, self._mask, grant=grant, token=token)

    def _mask(self, text: str) -> None:
        """Mask a text that was derived from a secret; beyond a limit the oldest is no longer masked."""
        if text not in self.masked:
            self.masking.add(text)
            self.masked.append(text)
        if len(self.masked) > MAX_MASKED:
            self.masking.forget(self.masked.popleft())

    def may_renew(self, credentials: Credentials, status: int) -> bool:
        """Whether a refused attempt is worth another one with a new access token."""
        grant = credentials.grant
        return status == UNAUTHORISED and grant is not None and self.tokens().is_renewable(grant)

    def note_refused(self, credentials: Credentials) -> None:
        """Remember that an access token was refused that had just been renewed."""
        if credentials.grant is not None:
            self.tokens().note_fruitless(credentials.grant)

    def explain(self, error: ToolError, response: Response) -> ToolError:
        """The error with what a wrong clock explains."""
        skew = self._skew(response)
        if skew is None:
            return error
        cure = Cure(f"the clock of the server differs by {skew:.0f} s: set the clock of this machine")
        return error.replace(cure=error.cure.then(cure), details={**error.details, "clockSkewSeconds": round(skew)})

    def _skew(self, response: Response) -> float | None:
        """By how much the clocks differ, where a signature carries the time and was refused."""
        if response.status not in REFUSED or not isinstance(self.auth, Hmac | HttpSignature | Aws):
            return None
        try:
            theirs = parsedate_to_datetime(response.headers.get("date", "")).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        skew = theirs - self.clock()
        return skew if abs(skew) > MAX_SKEW_SECONDS else None

    def _signer(self, auth: Auth, reveal: Reveal, made: list[str]) -> Sign:
        """Adds the credentials to a request; `made` collects what it derives from secrets."""
        if isinstance(auth, Bearer):
            return _with_header(AUTHORIZATION, f"Bearer {_printable(auth.token, reveal(auth.token))}")
        if isinstance(auth, Basic):
            pair = base64.b64encode(f"{_user_name(auth.username, reveal)}:{reveal(auth.password)}".encode()).decode()
            self.masking.add(pair)
            return _with_header(AUTHORIZATION, f"Basic {pair}")
        if isinstance(auth, ApiKey):
            key = _printable(auth.key, reveal(auth.key))
            return _with_header(auth.header, auth.prefix + key) if auth.header else _with_query(auth.query, key)
        if isinstance(auth, Hmac):
            return self._hmac(auth, reveal, made)
        if isinstance(auth, HttpSignature):
            return self._http_signature(auth, reveal, made)
        if isinstance(auth, Aws):
            return self._aws(auth, reveal, made)
        raise ToolError(Kind.INTERNAL, "an access token signs nothing")

    def _hmac(self, auth: Hmac, reveal: Reveal, made: list[str]) -> Sign:
        key = _usable(auth.key, lambda: decode_key(reveal(auth.key), auth.key_encoding))
        key_id = reveal(auth.key_id)

        def sign(request: Request) -> Request:
            attempt = Attempt(now=self.clock(), nonce=secrets.token_urlsafe(NONCE_BYTES))
            signature, headers = sign_string(
                _message(request),
                attempt,
                key=key,
                key_id=key_id,
                algorithm=auth.algorithm,
                string=auth.string,
                encoding=auth.encoding,
                timestamp=auth.timestamp,
                headers=auth.headers,
            )
            made.append(signature)
            return _with_headers(request, headers)

        return sign

    def _http_signature(self, auth: HttpSignature, reveal: Reveal, made: list[str]) -> Sign:
        key = _usable(auth.key, lambda: load_key(reveal(auth.key), auth.algorithm))
        key_id = _printable(auth.key_id, reveal(auth.key_id))

        def sign(request: Request) -> Request:
            now = int(self.clock())
            parameters = Parameters(
                created=now,
                key_id=key_id,
                algorithm=auth.algorithm,
                expires=now + auth.expires_seconds if auth.expires_seconds else 0,
                nonce=secrets.token_urlsafe(NONCE_BYTES) if auth.nonce else "",
                tag=auth.tag,
            )
            signature, headers = sign_message(
                _message(request), key, parameters, components=auth.components, label=auth.label
            )
            made.append(signature)
            return _with_headers(request, headers)

        return sign

    def _aws(self, auth: Aws, reveal: Reveal, made: list[str]) -> Sign:
        key = AwsKey(
            access_key_id=_printable(auth.access_key_id, reveal(auth.access_key_id)),
            secret_access_key=reveal(auth.secret_access_key),
            session_token="" if auth.session_token is None else reveal(auth.session_token),
            region=auth.region,
            service=auth.service,
        )

        def sign(request: Request) -> Request:
            request = replace(request, url=spell_target(request.url))
            signature, headers = sign_aws(_message(request), key, now=self.clock(), is_body_signed=auth.is_body_signed)
            made.append(signature)
            return _with_headers(request, headers)

        return sign

    def _grant(self, auth: OAuth2, reveal: Reveal) -> Grant:
        secret = "" if auth.client_secret is None else reveal(auth.client_secret)
        client_id = reveal(auth.client_id)
        seed, cure = _seed(auth, secret, reveal)
        if auth.grant == AUTHORIZATION_CODE:
            _check_login(auth, client_id, seed)
        return Grant(
            kind=auth.grant,
            client=Client(
                token_url=auth.token_url,
                client_id=client_id,
                client_secret=secret,
                client_auth=auth.client_auth,
                scopes=auth.scopes,
                parameters=auth.parameters,
                hosts=self.hosts,
                cure=cure,
            ),
            seed=seed,
        )


def _seed(auth: OAuth2, client_secret: str, reveal: Reveal) -> tuple[str, Cure]:
    """The secret behind a grant, and what helps if the server refuses it."""
    if auth.grant == CLIENT_CREDENTIALS:
        return client_secret, Cure(f"check client_id and {auth.client_secret}")
    if auth.refresh_token is not None:
        return reveal(auth.refresh_token), Cure(f"store a new one with: crib secret set {auth.refresh_token.name}")
    cure = Cure(f"log in with: crib secret login {auth.login}")
    try:
        return reveal(Reference("secret", auth.login)), cure
    except ToolError as missing:
        if missing.kind is not Kind.VALIDATION:
            raise
        raise ToolError(Kind.AUTH, f"auth: there is no login {auth.login} yet", cure=cure) from None


def _reveal(lookup: Lookup, value: Value) -> str:
    """The text; what is looked up is masked from then on."""
    if isinstance(value, str):
        return value
    return str(lookup(Slot(value.name, source=SlotSource(value.kind), written=str(value))))


def _check_login(auth: OAuth2, client_id: str, seed: str) -> None:
    """Refuse a login that was made at another server or for another client: its tokens are not for this one."""
    tokens = read_tokens(seed)
    if tokens is None or (tokens.token_url, tokens.client_id) != (str(auth.token_url), client_id):
        what = "was not stored by a login" if tokens is None else "belongs to another client or authorization server"
        cure = Cure(f"log in with: crib secret login {auth.login}")
        raise ToolError(Kind.AUTH, f"auth: {auth.login} {what}", cure=cure)


def _message(request: Request) -> Message:
    return Message(method=request.method, url=request.url, headers=request.headers, body=request.body or b"")


def _with_header(name: str, value: str) -> Sign:
    return lambda request: _with_headers(request, {name: value})


def _with_headers(request: Request, headers: Mapping[str, str]) -> Request:
    return replace(request, headers={**request.headers, **headers})


def _with_query(name: str, value: str) -> Sign:
    field = f"{quote(name, safe='')}={quote(value, safe='')}"

    def sign(request: Request) -> Request:
        target = request.url.target
        joint = "" if target.endswith(("?", "&")) else "&" if "?" in target else "?"
        return replace(request, url=replace(request.url, target=f"{target}{joint}{field}"))

    return sign


def _printable(value: Value, text: str) -> str:
    """Refuse, without quoting it, what cannot be sent in a header."""
    if not text.isascii() or not text.isprintable() or text != text.strip():
        raise ToolError(
            Kind.AUTH, f"auth: {value} holds spaces around it, or letters that cannot be sent; store it again"
        )
    return text


def _user_name(value: Value, reveal: Reveal) -> str:
    """Refuse, without quoting it, a name with a colon: what follows it would be read as the password (RFC 7617)."""
    name = reveal(value)
    if ":" in name:
        raise ToolError(Kind.AUTH, f"auth: {value} holds a colon, which ends a user name; store it again")
    return name


def _usable(reference: Reference, load: Callable[[], Key]) -> Key:
    try:
        return load()
    except ValueError as problem:
        raise ToolError(Kind.AUTH, f"auth: {reference}: {problem}; store it again") from None


def _invariant_part(signature: str) -> bytes:
    """The longest part of a signature that all encodings of it share, apart from the case of its letters."""
    return max(_LETTERS.findall(signature), key=len, default=signature).lower().encode()
