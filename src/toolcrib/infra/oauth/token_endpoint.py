"""Request tokens from an authorization server, and validate its response strictly.

oauthlib writes the requests. Responses are parsed here, because oauthlib accepts a form instead of JSON and any type of token,
and environment variables change what it checks.
"""

from __future__ import annotations

import base64
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.infra.egress import Request, is_json, read_media_type
from toolcrib.infra.oauth import OAuthTokens
from toolcrib.lib.documents import read_json
from toolcrib.lib.http_auth.kinds import BASIC, REFRESH_TOKEN
from toolcrib.lib.http_syntax import read_retry_after
from toolcrib.model.errors import RETRY_AFTER, Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.lib.http_syntax import HostList, Url

SECONDS = 10.0
MAX_BYTES = 65_536
MAX_TOKEN = 16_384
# A longer lifetime is cut to this.
MAX_LIFE_SECONDS = 366 * 86_400
LONGEST_NUMBER = 20
SHOWN = 200
OK = 200
SERVER_ERRORS = range(500, 600)
BUSY = frozenset({408, 429})
# The statuses of permanent errors, whose body names the error (RFC 6749, 5.2).
REFUSALS = frozenset({400, 401, 403})

_TOKEN = re.compile(r"[\x21-\x7e]+")
_WORD = re.compile(r"[a-z_]{1,60}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """The client of an authorization server, and the tokens that it requests; `cure` is the cure of a refusal."""

    token_url: Url
    client_id: str
    client_secret: str = field(default="", repr=False)
    client_auth: str = BASIC
    scopes: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    hosts: HostList | None = None
    cure: Cure


async def ask_for_tokens(
    egress: Egress, client: Client, grant: str, values: Mapping[str, str], *, clock: Callable[[], float]
) -> OAuthTokens:
    """Send a token request; raises ToolError: AUTH for a refusal, a retryable one for a server that does not answer."""
    started = clock()
    response = await egress.fetch(
        _write(client, grant, values),
        hosts=client.hosts,
        max_bytes=MAX_BYTES,
        timeout=SECONDS,
        follows=False,
    )
    if response.location is not None:
        raise _useless(client, response, "it answers with a redirect, which would carry credentials elsewhere")
    document = _read(client, response)
    if response.status != OK or "error" in document:
        raise _refusal(client, response, document)
    # The lifetime of a token begins before its response arrives.
    return _tokens(client, response, document, values.get(REFRESH_TOKEN, ""), started)


def _write(client: Client, grant: str, values: Mapping[str, str]) -> Request:
    from oauthlib.oauth2.rfc6749.parameters import prepare_token_request

    given = {**client.parameters, **values}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if client.client_secret and client.client_auth == BASIC:
        # Both are encoded before they are joined (RFC 6749, 2.3.1): a colon in a name must not end it.
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        body = prepare_token_request(grant, include_client_id=False, scope=list(client.scopes) or None, **given)
    else:
        if client.client_secret:
            given["client_secret"] = client.client_secret
        body = prepare_token_request(
            grant, include_client_id=True, client_id=client.client_id, scope=list(client.scopes) or None, **given
        )
    return Request(url=client.token_url, method="POST", headers=headers, body=body.encode())


def _read(client: Client, response: Response) -> Mapping[str, object]:
    """The members of the response; raises a retryable ToolError for a server that is broken or busy."""
    if response.status in SERVER_ERRORS or response.status in BUSY:
        message = f"{_name(client)} answered with status {response.status}; try again later"
        details = _details(client, response)
        if (wait := read_retry_after(response.headers.get("retry-after", ""), time.time())) is not None:
            details[RETRY_AFTER] = wait
        raise ToolError(Kind.TRANSIENT, message, retryable=True, details=details)
    if not is_json(read_media_type(response.headers.get("content-type", ""))):
        raise _useless(client, response, "its answer is not JSON")
    try:
        document = read_json(response.body, place="its answer", max_bytes=MAX_BYTES)
    except ToolError as problem:
        raise _useless(client, response, problem.message) from None
    if not isinstance(document, dict):
        raise _useless(client, response, "its answer is not an object")
    return document


def _tokens(
    client: Client, response: Response, document: Mapping[str, object], before: str, started: float
) -> OAuthTokens:
    kind = document.get("token_type", "bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _useless(client, response, "it gives tokens of a type other than bearer")
    access = _token(client, response, document, "access_token")
    if not access:
        raise _useless(client, response, "its answer holds no access token")
    scope = document.get("scope", "")
    if not isinstance(scope, str) or len(scope) > MAX_TOKEN:
        raise _useless(client, response, "its scope is not text")
    if scope:
        check_scope(client, client.scopes, scope)
    life = _seconds(document.get("expires_in"))
    return OAuthTokens(
        access_token=access,
        # Without a new refresh token the old one stays valid (RFC 6749, 6).
        refresh_token=_token(client, response, document, REFRESH_TOKEN) or before,
        received_at=started,
        expires_at=None if life is None else started + life,
        scope=scope or " ".join(client.scopes),
        token_url=str(client.token_url),
        client_id=client.client_id,
    )


def _seconds(life: object) -> float | None:
    """The lifetime of a token; None if the server does not say."""
    if isinstance(life, str) and life.isdecimal() and len(life) <= LONGEST_NUMBER:
        life = int(life)  # some servers write the number as text
    if isinstance(life, bool) or not isinstance(life, int | float):
        return None
    return float(min(max(0, life), MAX_LIFE_SECONDS))


def check_scope(client: Client, wanted: tuple[str, ...], granted: str) -> None:
    """Raise ToolError if fewer scopes were granted than requested."""
    missing = [scope for scope in wanted if scope not in granted.replace(",", " ").split()]
    if missing:
        message = f"{_name(client)} did not grant the scope {' '.join(missing)[:SHOWN]}"
        raise ToolError(Kind.AUTH, message, cure=client.cure, details={"origin": client.token_url.origin})


def _token(client: Client, response: Response, document: Mapping[str, object], name: str) -> str:
    token = document.get(name)
    if token is None:
        return ""
    if not isinstance(token, str) or len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise _useless(client, response, f"its {name} cannot be sent in a header")
    return token


def _refusal(client: Client, response: Response, document: Mapping[str, object]) -> ToolError:
    if response.status not in REFUSALS and response.status != OK:
        return _useless(client, response, f"it answered with status {response.status}")
    word, text = document.get("error"), document.get("error_description")
    reason = word if isinstance(word, str) and _WORD.fullmatch(word) else f"status {response.status}"
    if isinstance(text, str) and text.isprintable():
        reason = f"{reason} ({text[:SHOWN]})"
    details = {**_details(client, response), "error": reason.partition(" ")[0]}
    return ToolError(Kind.AUTH, f"{_name(client)} gave no token: {reason}", cure=client.cure, details=details)


def _useless(client: Client, response: Response, reason: str) -> ToolError:
    cure = Cure("check token_url of auth")
    return ToolError(Kind.AUTH, f"{_name(client)}: {reason}", cure=cure, details=_details(client, response))


def _name(client: Client) -> str:
    return f"the authorization server {client.token_url.origin}"


def _details(client: Client, response: Response) -> dict[str, object]:
    return {"origin": client.token_url.origin, "status": response.status}
