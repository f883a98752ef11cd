"""Sign requests with AWS Signature Version 4.

Path and query are sent in the canonical encoding that AWS signs, so that a service that decodes and encodes them again gets
the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

if TYPE_CHECKING:
    from toolcrib.lib.http_auth import Message
    from toolcrib.lib.http_syntax import Url

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
# Services whose paths are encoded once and not normalised: the key of an object may contain dots and slashes.
ENCODED_ONCE = frozenset({"s3", "s3-outposts", "s3-object-lambda", "s3express"})
# Headers that proxies may change, which are not signed.
NOT_SIGNED = frozenset({"authorization", "connection", "expect", "user-agent", "x-amzn-trace-id", "transfer-encoding"})
# Headers that the signature adds itself.
OWN_HEADERS = ("Authorization", "X-Amz-Date", "X-Amz-Content-SHA256", "X-Amz-Security-Token")


@dataclass(frozen=True, kw_only=True, slots=True)
class AwsKey:
    """The key of an account, with its region and service; `session_token` belongs to temporary credentials."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""
    region: str
    service: str

    def __repr__(self) -> str:
        return f"AwsKey({self.region!r}, {self.service!r})"


def spell_target(url: Url) -> Url:
    """The URL with path and query in canonical encoding: all but unreserved characters are percent-encoded once."""
    path, mark, query = url.target.partition("?")
    target = "/".join(_encode(part) for part in path.split("/"))
    if mark:
        target += "?" + "&".join(f"{name}={value}" for name, value in _pairs(query))
    return replace(url, target=target)


def sign_aws(message: Message, key: AwsKey, *, now: float, is_body_signed: bool = True) -> tuple[str, dict[str, str]]:
    """The signature, and its headers; the URL of the message must come from `spell_target`."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    added = {"X-Amz-Date": moment}
    digest = hashlib.sha256(message.body).hexdigest() if is_body_signed else UNSIGNED
    if not is_body_signed or key.service in ENCODED_ONCE:
        added["X-Amz-Content-SHA256"] = digest
    if key.session_token:
        added["X-Amz-Security-Token"] = key.session_token
    headers = {"host": message.url.authority}
    headers |= {name.lower(): value for name, value in {**message.headers, **added}.items()}
    signed = sorted(headers.keys() - NOT_SIGNED)
    names = ";".join(signed)
    canonical = "\n".join(
        (
            message.method,
            _canonical_path(message.path, key.service),
            "&".join(f"{name}={value}" for name, value in sorted(_pairs(message.query))),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            names,
            digest,
        )
    )
    scope = f"{moment[:8]}/{key.region}/{key.service}/aws4_request"
    to_sign = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.digest(
        _signing_key(key.secret_access_key, moment[:8], key.region, key.service), to_sign.encode(), "sha256"
    ).hex()
    added["Authorization"] = (
        f"{ALGORITHM} Credential={key.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signature, added


@lru_cache(maxsize=32)  # valid for a day, and takes four rounds of HMAC
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _canonical_path(path: str, service: str) -> str:
    if service in ENCODED_ONCE:
        return path
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in {"", "."}:
            kept.append(part)
    end = "/" if kept and path.endswith("/") else ""
    return quote(f"/{'/'.join(kept)}{end}", safe="/~")


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names and values of a query in canonical encoding, in their order."""
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return [(_encode(name), _encode(value)) for name, _, value in pairs]


def _encode(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="~")
