"""Signatures of published tools: Ed25519, by keys that the operator trusts."""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.depots.package import Signature, framed
from toolcrib.ground.files import durable
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from toolcrib.depots.package import Manifest

ALGORITHM = "ed25519"
KEY_BYTES = 32
_PURPOSE = "toolcrib depot manifest"


def new_key(path: Path) -> str:
    """Make a key of one's own, for this user's eyes only; its public half, to be given to whoever should trust it."""
    if not durable.create(path, os.urandom(KEY_BYTES)):
        raise ToolError(Kind.CONFLICT, f"{path} is there already; name another file, or show its public half with it")
    return public_half(path)


def public_half(path: Path) -> str:
    """The public half of a key."""
    return _spell(_load(path).public_key())


def sign(manifest: Manifest, path: Path) -> Manifest:
    """The manifest with a signature by the key in the file."""
    key = _load(path)
    mark = Signature(key=_spell(key.public_key()), time=datetime.now(UTC).isoformat(timespec="seconds"), value="")
    value = base64.b64encode(key.sign(_message(manifest, mark))).decode()
    return replace(manifest, signature=replace(mark, value=value))


def check_signature(manifest: Manifest, trusted: tuple[str, ...], *, required: bool) -> str:
    """Who signed the manifest, in words; refuses a signature that is false, and one that is missing where it is required."""
    mark = manifest.signature
    address = f"{manifest.name}@{manifest.version}"
    if mark is None:
        if required:
            raise _untrusted(f"{address} is not signed, and depot_signed asks for a signature")
        return "not signed"
    if not _holds(manifest, mark):
        raise _untrusted(f"{address}: its signature is false; the package was changed after it was signed")
    if mark.key in trusted:
        return f"signed by the trusted key {mark.key} at {mark.time}"
    if required:
        raise _untrusted(f"{address} is signed by {mark.key}, which is not among depot_keys; add it if you trust it")
    return f"signed by {mark.key}, which is not among depot_keys"


def _untrusted(message: str) -> ToolError:
    return ToolError(Kind.AUTH, f"{message}; nothing was installed")


def _holds(manifest: Manifest, mark: Signature) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        algorithm, _, spelled = mark.key.partition(":")
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(spelled, validate=True))
        key.verify(base64.b64decode(mark.value, validate=True), _message(manifest, mark))
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return algorithm == ALGORITHM


def _message(manifest: Manifest, mark: Signature) -> bytes:
    return framed([_PURPOSE, ALGORITHM, mark.key, mark.time, manifest.name, manifest.version, manifest.hash])


def _spell(key: Ed25519PublicKey) -> str:
    return f"{ALGORITHM}:{base64.b64encode(key.public_bytes_raw()).decode()}"


def _load(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = durable.read(path, KEY_BYTES)
    if data is None:
        raise ToolError(Kind.NOT_FOUND, f"there is no key at {path}; make one with: crib depot key {path}")
    if path.stat().st_mode & 0o077:
        raise SettingsError(
            f"{path}: others can read the key; run chmod 600 if nobody has seen it, else make a new one"
        )
    if len(data) != KEY_BYTES:
        raise SettingsError(f"{path} is no key of ours; make one with: crib depot key FILE")
    return Ed25519PrivateKey.from_private_bytes(data)
