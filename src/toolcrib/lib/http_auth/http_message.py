"""Sign components of requests by RFC 9421 (HTTP Message Signatures), with a shared or a private key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from toolcrib.lib.http_auth import Message
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SHARED = "hmac-sha256"
ALGORITHMS = (
    *("ed25519", SHARED, "ecdsa-p256-sha256", "ecdsa-p384-sha384"),
    *("rsa-pss-sha512", "rsa-v1_5-sha256"),
)
COMPONENTS = ("@method", "@target-uri", "@authority", "content-digest")
DIGEST = "content-digest"
DIGEST_HEADER = "Content-Digest"
MIN_RSA_BITS = 2_048

_DERIVED: Mapping[str, Callable[[Message], str]] = {
    "@method": lambda message: message.method,
    "@target-uri": lambda message: str(message.url),
    "@authority": lambda message: message.url.authority,
    "@scheme": lambda message: message.url.scheme,
    "@request-target": lambda message: message.url.target,
    "@path": lambda message: message.path,
    "@query": lambda message: f"?{message.query}",
}
_QUERY_PARAM = re.compile(r'@query-param;name="([A-Za-z0-9%*._-]{1,100})"')
_FIELD = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PRINTABLE = re.compile(r"[\x20-\x7e\t]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """The parameters of a signature; an empty text or 0 is omitted."""

    created: int
    key_id: str
    algorithm: str
    expires: int = 0
    nonce: str = ""
    tag: str = ""


def check_component(component: str) -> None:
    """Refuse a component that cannot be signed."""
    if component in _DERIVED or _QUERY_PARAM.fullmatch(component):
        return
    if component.startswith("@") or not _FIELD.fullmatch(component):
        known = ", ".join([*_DERIVED, '@query-param;name="NAME"'])
        cure = f"write one of {known}, or the name of a header in small letters"
        raise ToolError(Kind.VALIDATION, f"{component[:60]!r} is not part of a request; {cure}")


@lru_cache(maxsize=32)  # parsing PEM takes longer than signing
def load_key(text: str, algorithm: str) -> Any:
    """The signing key: bytes of a shared key, or a private key from PEM; raises ValueError without quoting the key."""
    if algorithm == SHARED:
        return text.encode()
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(text.encode(), password=None)
    except Exception:  # noqa: BLE001 - the library raises many types, and their messages may quote the key
        message = "the key is not a private key in PEM without a passphrase"
        raise ValueError(message) from None
    curves = {"ecdsa-p256-sha256": "secp256r1", "ecdsa-p384-sha384": "secp384r1"}
    suits = (
        (isinstance(key, ed25519.Ed25519PrivateKey) and algorithm == "ed25519")
        or (isinstance(key, ec.EllipticCurvePrivateKey) and curves.get(algorithm) == key.curve.name)
        or (isinstance(key, rsa.RSAPrivateKey) and algorithm.startswith("rsa-") and key.key_size >= MIN_RSA_BITS)
    )
    if not suits:
        message = f"the key is not one for {algorithm}"
        raise ValueError(message)
    return key


def sign_message(
    message: Message, key: Any, parameters: Parameters, *, components: tuple[str, ...], label: str
) -> tuple[str, dict[str, str]]:
    """The signature, and its headers; a signed `content-digest` that the request lacks is added."""
    added: dict[str, str] = {}
    if DIGEST in components and not any(name.lower() == DIGEST for name in message.headers):
        digest = base64.b64encode(hashlib.sha256(message.body).digest()).decode()
        added[DIGEST_HEADER] = f"sha-256=:{digest}:"
        message = Message(
            method=message.method, url=message.url, headers={**message.headers, **added}, body=message.body
        )
    described = f"({' '.join(map(_identifier, components))}){_describe(parameters)}"
    base = signature_base(message, components, described)
    signature = base64.b64encode(_sign(base.encode("ascii"), key, parameters.algorithm)).decode()
    added["Signature-Input"] = f"{label}={described}"
    added["Signature"] = f"{label}=:{signature}:"
    return signature, added


def signature_base(message: Message, components: tuple[str, ...], described: str) -> str:
    """The signature base: a line for each component, and one for the signature parameters."""
    lines = [f"{_identifier(component)}: {_value(component, message)}" for component in components]
    return "\n".join([*lines, f'"@signature-params": {described}'])


def _identifier(component: str) -> str:
    parameter = _QUERY_PARAM.fullmatch(component)
    return f'"@query-param";name="{parameter[1]}"' if parameter else f'"{component}"'


def _value(component: str, message: Message) -> str:
    parameter = _QUERY_PARAM.fullmatch(component)
    if parameter:
        return _query_value(parameter[1], message.query)
    value = _DERIVED[component](message) if component in _DERIVED else message.header(component)
    if not _PRINTABLE.fullmatch(value):
        raise ToolError(
            Kind.VALIDATION, f"auth signs {component}, which holds letters beyond ASCII; give another value"
        )
    return value


def _query_value(name: str, query: str) -> str:
    """The value of a query parameter that occurs once, in the encoding of RFC 9421."""
    found = [value for known, value in parse_qsl(query, keep_blank_values=True) if quote(known, safe="*-._") == name]
    if len(found) != 1:
        raise ToolError(
            Kind.VALIDATION, f"auth signs the query parameter {name}, which is there {len(found)} times; send it once"
        )
    return quote(found[0], safe="*-._")


def _describe(parameters: Parameters) -> str:
    described = f";created={parameters.created}"
    if parameters.expires:
        described += f";expires={parameters.expires}"
    texts = (
        ("nonce", parameters.nonce),
        ("alg", parameters.algorithm),
        ("keyid", parameters.key_id),
        ("tag", parameters.tag),
    )
    return described + "".join(f";{name}={_string(text)}" for name, text in texts if text)


def _string(text: str) -> str:
    """A string of structured fields (RFC 8941); other characters are refused when the declaration is parsed."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _sign(base: bytes, key: Any, algorithm: str) -> bytes:
    if algorithm == SHARED:
        return hmac.digest(key, base, "sha256")
    if algorithm == "ed25519":
        return bytes(key.sign(base))
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    if algorithm == "rsa-pss-sha512":
        pss = padding.PSS(mgf=padding.MGF1(hashes.SHA512()), salt_length=64)
        return bytes(key.sign(base, pss, hashes.SHA512()))
    if algorithm == "rsa-v1_5-sha256":
        return bytes(key.sign(base, padding.PKCS1v15(), hashes.SHA256()))
    is_256 = algorithm == "ecdsa-p256-sha256"
    halves = decode_dss_signature(key.sign(base, ec.ECDSA(hashes.SHA256() if is_256 else hashes.SHA384())))
    return b"".join(half.to_bytes(32 if is_256 else 48, "big") for half in halves)
