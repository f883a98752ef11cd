"""The kinds of authentication that a tool can declare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.lib.http_auth import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.http_auth.hmac_string import Pieces
    from toolcrib.lib.http_syntax import Url

CLIENT_CREDENTIALS, REFRESH_TOKEN, AUTHORIZATION_CODE = "client_credentials", "refresh_token", "authorization_code"
GRANTS = (CLIENT_CREDENTIALS, REFRESH_TOKEN, AUTHORIZATION_CODE)
BASIC, BODY = "basic", "body"
AUTHORIZATION = "Authorization"

# A literal text, or a reference to a secret or variable.
Value = str | Reference


@dataclass(frozen=True, kw_only=True, slots=True)
class Bearer:
    """A bearer token (RFC 6750)."""

    token: Reference

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return (self.token,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Basic:
    """A user name and a password (RFC 7617)."""

    username: Value
    password: Reference

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return _references(self.username, self.password)


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """An API key in a header or in the query, after `prefix`."""

    key: Reference
    header: str = ""
    query: str = ""
    prefix: str = ""

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return (self.key,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hmac:
    """A signature with a shared key over a declared string."""

    key: Reference
    key_encoding: str
    key_id: Value
    algorithm: str
    encoding: str
    timestamp: str
    string: Pieces
    headers: Mapping[str, Pieces]

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return _references(self.key, self.key_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpSignature:
    """A signature by RFC 9421; `expires_seconds` 0 means without an expiry."""

    key: Reference
    key_id: Value
    algorithm: str
    components: tuple[str, ...]
    label: str
    tag: str
    expires_seconds: int
    nonce: bool

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return _references(self.key, self.key_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Aws:
    """An AWS Signature Version 4."""

    access_key_id: Value
    secret_access_key: Reference
    session_token: Reference | None
    region: str
    service: str
    is_body_signed: bool

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs."""
        return _references(self.access_key_id, self.secret_access_key, self.session_token)


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuth2:
    """Access tokens of an authorization server (RFC 6749); `login` is the name under which `crib secret login` stores one."""

    grant: str
    token_url: Url
    client_id: Value
    client_secret: Reference | None = None
    client_auth: str = BASIC
    scopes: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    refresh_token: Reference | None = None
    login: str = ""
    authorization_url: Url | None = None
    redirect_url: Url | None = None
    issuer: str = ""

    def references(self) -> tuple[Reference, ...]:
        """The secrets and variables that it needs, without those that a login stores."""
        return _references(self.client_id, self.client_secret, self.refresh_token)


Auth = Bearer | Basic | ApiKey | Hmac | HttpSignature | Aws | OAuth2


def _references(*values: Value | None) -> tuple[Reference, ...]:
    return tuple(value for value in values if isinstance(value, Reference))
