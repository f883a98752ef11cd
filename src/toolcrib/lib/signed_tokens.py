"""Parse and verify signed tokens (JWT, RFC 7519) with public keys (JWK, RFC 7517), without network access.

Only public-key signature algorithms are accepted, neither `none` nor HMAC, so that a public key is never used as a shared
secret.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_LETTERS = 8_192
MAX_KEYS = 100
MIN_RSA_BITS, MAX_RSA_BITS = 2_048, 8_192
PARTS = 3
# Accepted values of `typ`; a provider signs other documents with the same keys.
TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
# Each algorithm with its key type, its curve, and the size of its hash.
ALGORITHMS: Mapping[str, tuple[str, str, int]] = {
    "RS256": ("RSA", "", 256),
    "RS384": ("RSA", "", 384),
    "RS512": ("RSA", "", 512),
    "PS256": ("RSA", "", 256),
    "PS384": ("RSA", "", 384),
    "PS512": ("RSA", "", 512),
    "ES256": ("EC", "P-256", 256),
    "ES384": ("EC", "P-384", 384),
    "ES512": ("EC", "P-521", 512),
    "EdDSA": ("OKP", "Ed25519", 0),
}
# The length of each half of a signature, by curve.
HALF_BYTES = {"P-256": 32, "P-384": 48, "P-521": 66}


class TokenError(ValueError):
    """A token or a key set was refused; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedToken:
    """A token that was parsed but not verified; `signed` are the bytes that its signature covers."""

    algorithm: str
    key_id: str | None
    claims: Mapping[str, object]
    signed: bytes
    signature: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicKey:
    """A key that verifies signatures; `algorithm` is the only one allowed, empty for every one of its key type."""

    id: str | None
    kind: str
    curve: str
    algorithm: str
    key: Any

    def is_for(self, algorithm: str) -> bool:
        """Whether the key may verify signatures of the algorithm."""
        kind, curve, _ = ALGORITHMS[algorithm]
        return (self.kind, self.curve) == (kind, curve) and self.algorithm in ("", algorithm)


def looks_signed(text: str) -> bool:
    """Whether a text has the form of a signed token."""
    return text.count(".") == PARTS - 1


def read_token(text: str) -> SignedToken:
    """Parse a token; raises TokenError for one whose form or algorithm is not accepted."""
    if not 0 < len(text) <= MAX_LETTERS or not text.isascii():
        raise TokenError("it is too long, or not ASCII")
    parts = text.split(".")
    if len(parts) != PARTS:
        raise TokenError("it does not have three parts")
    header, claims = (_read_object(part) for part in parts[:2])
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenError(f"its algorithm is not one of {', '.join(ALGORITHMS)}")
    if "crit" in header or "b64" in header:
        raise TokenError("it has unknown extensions")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise TokenError("it is not an access token")
    if not isinstance(key_id, str | None):
        raise TokenError("the id of its key is not a text")
    return SignedToken(
        algorithm=algorithm,
        key_id=key_id,
        claims=claims,
        signed=f"{parts[0]}.{parts[1]}".encode(),
        signature=_decode(parts[2]),
    )


def verify(token: SignedToken, key: PublicKey) -> bool:
    """Whether the token was signed with the private key, by the algorithm that the token names."""
    from cryptography.exceptions import InvalidSignature

    if not key.is_for(token.algorithm):
        return False
    try:
        _VERIFIERS[key.kind](token, key)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_keys(document: object) -> list[PublicKey]:
    """The keys of a JWK set that can verify signatures, without the others; raises TokenError if it is not a JWK set."""
    found = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(found, list) or len(found) > MAX_KEYS:
        raise TokenError(f"it is not a set of at most {MAX_KEYS} keys")
    return [key for each in found if isinstance(each, dict) and (key := _read_key(each)) is not None]


def _read_key(jwk: Mapping[str, object]) -> PublicKey | None:
    kind, curve, key_id, algorithm = (jwk.get(name) for name in ("kty", "crv", "kid", "alg"))
    operations = jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if kind not in _MAKERS or not isinstance(key_id, str | None) or not isinstance(algorithm, str | None):
        return None
    try:
        key = _MAKERS[str(kind)](jwk)
    except (ValueError, TypeError, KeyError):
        return None
    return PublicKey(
        id=key_id, kind=str(kind), curve="" if kind == "RSA" else str(curve), algorithm=algorithm or "", key=key
    )


def _make_rsa(jwk: Mapping[str, object]) -> object:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    modulus, exponent = (int.from_bytes(_decode(jwk[name]), "big") for name in ("n", "e"))
    if not MIN_RSA_BITS <= modulus.bit_length() <= MAX_RSA_BITS:
        raise ValueError
    return RSAPublicNumbers(exponent, modulus).public_key()


def _make_ec(jwk: Mapping[str, object]) -> object:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        SECP256R1,
        SECP384R1,
        SECP521R1,
        EllipticCurvePublicNumbers,
    )

    curves: dict[str, Any] = {"P-256": SECP256R1, "P-384": SECP384R1, "P-521": SECP521R1}
    x, y = (int.from_bytes(_decode(jwk[name]), "big") for name in ("x", "y"))
    return EllipticCurvePublicNumbers(x, y, curves[str(jwk["crv"])]()).public_key()


def _make_ed25519(jwk: Mapping[str, object]) -> object:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if jwk["crv"] != "Ed25519":
        raise ValueError
    return Ed25519PublicKey.from_public_bytes(_decode(jwk["x"]))


_MAKERS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "RSA": _make_rsa,
    "EC": _make_ec,
    "OKP": _make_ed25519,
}


def _verify_rsa(token: SignedToken, key: PublicKey) -> None:
    from cryptography.hazmat.primitives.asymmetric import padding

    digest = _hash(token.algorithm)
    is_pss = token.algorithm.startswith("PS")
    padded = padding.PSS(padding.MGF1(digest), digest.digest_size) if is_pss else padding.PKCS1v15()
    key.key.verify(token.signature, token.signed, padded, digest)


def _verify_ec(token: SignedToken, key: PublicKey) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    half = HALF_BYTES[key.curve]
    if len(token.signature) != 2 * half:
        raise ValueError
    first, second = (int.from_bytes(part, "big") for part in (token.signature[:half], token.signature[half:]))
    key.key.verify(encode_dss_signature(first, second), token.signed, ECDSA(_hash(token.algorithm)))


def _verify_ed25519(token: SignedToken, key: PublicKey) -> None:
    key.key.verify(token.signature, token.signed)


_VERIFIERS: dict[str, Callable[[SignedToken, PublicKey], None]] = {
    "RSA": _verify_rsa,
    "EC": _verify_ec,
    "OKP": _verify_ed25519,
}


def _hash(algorithm: str) -> Any:
    from cryptography.hazmat.primitives import hashes

    sizes: dict[int, Any] = {256: hashes.SHA256, 384: hashes.SHA384, 512: hashes.SHA512}
    return sizes[ALGORITHMS[algorithm][2]]()


def _read_object(part: str) -> dict[str, object]:
    try:
        found = orjson.loads(_decode(part))
    except orjson.JSONDecodeError:
        raise TokenError("a part of it is not JSON") from None
    if not isinstance(found, dict):
        raise TokenError("a part of it is not an object")
    return found


def _decode(text: object) -> bytes:
    """Decode base64url; only the canonical spelling without padding is accepted."""
    try:
        if not isinstance(text, str) or "=" in text:
            raise TokenError("a part of it is not base64url")
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenError("a part of it is not base64url") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise TokenError("a part of it is not base64url")
    return raw
