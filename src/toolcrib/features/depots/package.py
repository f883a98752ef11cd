"""One published version of a tool: its files, a manifest with their hashes, and its Ed25519 signature."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.infra.files import durable
from toolcrib.lib.documents import read_json
from toolcrib.model.errors import Kind, SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = 1
MAX_FILES = 200
MAX_FILE_BYTES = 4_000_000
MAX_PACKAGE_BYTES = 16_000_000
MAX_MANIFEST_BYTES = 256_000
NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
VERSION = re.compile(r"\d+\.\d+\.\d+")
# No hidden files, no `..`, no drive letters, no names that differ only in case.
PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
HASH = re.compile(r"[0-9a-f]{64}")
ALGORITHM = "ed25519"
KEY_BYTES = 32

# Where the files of a package belong: scripts with metadata, plain files, tool folders, or the bundles of the store.
SCRIPTS, TOOLS, FOLDERS, BUNDLES = "scripts", "tools", "folders", "bundles"
TREES = frozenset({SCRIPTS, TOOLS, FOLDERS, BUNDLES})

_PURPOSE = "toolcrib depot manifest"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedFile:
    """A file of a package: its path in the tree of tools, its size and its hash."""

    path: str
    size: int
    sha256: str
    executable: bool = False

    def __post_init__(self) -> None:
        if len(self.path) > 200 or not PATH.fullmatch(self.path):  # noqa: PLR2004 - a length that every system takes
            message = f"the path {self.path[:200]!r} cannot be packed; use letters, digits, '.', '-', '_' and '/'"
            raise ToolError(Kind.VALIDATION, message)
        if not 0 <= self.size <= MAX_FILE_BYTES:
            message = f"{self.path} has {self.size} bytes, and the limit of a packed file is {MAX_FILE_BYTES}"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        if not HASH.fullmatch(self.sha256):
            raise ToolError(Kind.VALIDATION, f"{self.path}: {self.sha256[:80]!r} is not a SHA-256")


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """The signature of a version: the public key (`ed25519:…`), the time, and the signature in base64."""

    key: str
    time: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The contents of one version. `main` is the file of the tool, `tree` the kind of tree it belongs to."""

    name: str
    version: str
    description: str
    requires: tuple[str, ...]
    tree: str
    main: str
    files: tuple[PackedFile, ...]
    signature: Signature | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_version(self.version)
        paths = [file.path for file in self.files]
        if not paths or len(paths) > MAX_FILES or len({path.casefold() for path in paths}) != len(paths):
            raise ToolError(
                Kind.VALIDATION, f"{self.name}: a package has 1 to {MAX_FILES} files, each under a name of its own"
            )
        if self.main not in paths or self.tree not in TREES:
            raise ToolError(Kind.VALIDATION, f"{self.name}: the manifest does not say which file is the tool")
        if sum(file.size for file in self.files) > MAX_PACKAGE_BYTES:
            message = f"{self.name}: a package has at most {MAX_PACKAGE_BYTES} bytes; leave data out"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)

    @property
    def hash(self) -> str:
        """SHA-256 over everything but the signature; each part is prefixed with its length, so that parts cannot run together."""
        facts = [self.name, self.version, self.description, *self.requires, self.tree, self.main]
        for file in sorted(self.files, key=lambda file: file.path):
            facts += [file.path, str(file.size), file.sha256, str(int(file.executable))]
        return hashlib.sha256(framed([str(len(self.requires)), *facts])).hexdigest()

    def encode(self) -> bytes:
        """The manifest as JSON."""
        document: dict[str, object] = {
            "depot": FORMAT,
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "requires": list(self.requires),
            "tree": self.tree,
            "main": self.main,
            "files": [
                {"path": file.path, "size": file.size, "sha256": file.sha256, "executable": file.executable}
                for file in self.files
            ],
            "hash": self.hash,
        }
        if self.signature is not None:
            mark = self.signature
            document["signature"] = {"key": mark.key, "time": mark.time, "value": mark.value}
        return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A manifest and the contents of its files."""

    manifest: Manifest
    contents: Mapping[str, bytes]

    def __post_init__(self) -> None:
        for file in self.manifest.files:
            check_bytes(file, self.contents[file.path], self.manifest)


def check_bytes(file: PackedFile, data: bytes, manifest: Manifest) -> None:
    """Refuse contents whose hash differs from the manifest."""
    if len(data) == file.size and hashlib.sha256(data).hexdigest() == file.sha256:
        return
    message = (
        f"{manifest.name}@{manifest.version}: {file.path} is not the file that was published (its hash differs); "
        "nothing was installed"
    )
    raise ToolError(Kind.PERMANENT, message, details={"path": file.path, "sha256": file.sha256})


def check_name(name: str) -> None:
    """Refuse a name that is not portable between file systems."""
    if len(name) > 64 or not NAME.fullmatch(name):  # noqa: PLR2004 - as names of tools
        message = f"{name[:80]!r} cannot be published; a tool in a depot is named with a-z, 0-9, '-' and '_'"
        raise ToolError(Kind.VALIDATION, message)


def check_version(version: str) -> None:
    """Refuse a version that is not X.Y.Z."""
    if len(version) > 64 or not VERSION.fullmatch(version):  # noqa: PLR2004 - as versions of tools
        raise ToolError(Kind.VALIDATION, f"version {version[:80]!r} cannot be published; write X.Y.Z")


def is_older(version: str, other: str) -> bool:
    """Whether a version X.Y.Z is older than another one; other forms of versions are never older."""
    if not (VERSION.fullmatch(version) and VERSION.fullmatch(other)):
        return False
    first, second = ([int(number) for number in one.split(".")] for one in (version, other))
    return first < second


def decode_manifest(data: bytes, place: str) -> Manifest:
    """Parse a manifest, and check its types and its hash."""
    document = read_json(data, place=place, max_bytes=MAX_MANIFEST_BYTES)
    try:
        manifest = _read(_mapping(document))
    except (KeyError, TypeError) as problem:
        raise ToolError(Kind.VALIDATION, f"{place} is not a manifest of a published tool: {problem}") from None
    if _mapping(document).get("hash") != manifest.hash:
        message = f"{place}: the hash is not that of the manifest; the depot is damaged, nothing was installed"
        raise ToolError(Kind.PERMANENT, message)
    return manifest


def framed(parts: Iterable[str]) -> bytes:
    """Concatenate the parts, each prefixed with its length."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in encoded)


def new_key(path: Path) -> str:
    """Create a private key that only this user can read; returns its public half."""
    if not durable.create(path, os.urandom(KEY_BYTES)):
        raise ToolError(Kind.CONFLICT, f"{path} is there already; name another file, or show its public half with it")
    return public_half(path)


def public_half(path: Path) -> str:
    """The public half of a key."""
    return _spell(_load(path).public_key())


def sign(manifest: Manifest, path: Path) -> Manifest:
    """Sign the manifest with the key in the file."""
    key = _load(path)
    mark = Signature(key=_spell(key.public_key()), time=datetime.now(UTC).isoformat(timespec="seconds"), value="")
    value = base64.b64encode(key.sign(_message(manifest, mark))).decode()
    return replace(manifest, signature=replace(mark, value=value))


def check_signature(manifest: Manifest, trusted: tuple[str, ...], *, required: bool) -> str:
    """A description of the signer; refuses an invalid signature, and a missing one if signatures are required."""
    mark = manifest.signature
    address = f"{manifest.name}@{manifest.version}"
    if mark is None:
        if required:
            raise _untrusted(f"{address} is not signed, and depots.signed asks for a signature")
        return "not signed"
    if not _holds(manifest, mark):
        raise _untrusted(f"{address}: its signature is false; the package was changed after it was signed")
    if mark.key in trusted:
        return f"signed by the trusted key {mark.key} at {mark.time}"
    if required:
        raise _untrusted(f"{address} is signed by {mark.key}, which is not among depots.keys; add it if you trust it")
    return f"signed by {mark.key}, which is not among depots.keys"


def _read(document: Mapping[str, object]) -> Manifest:
    if document["depot"] != FORMAT:
        raise TypeError(f"it has the format {document['depot']!r:.40}, and this Toolcrib reads {FORMAT}")
    signature = document.get("signature")
    return Manifest(
        name=_text(document["name"]),
        version=_text(document["version"]),
        description=_text(document["description"]),
        requires=tuple(_text(word) for word in _list(document["requires"])),
        tree=_text(document["tree"]),
        main=_text(document["main"]),
        files=tuple(_file(_mapping(file)) for file in _list(document["files"])),
        signature=None if signature is None else _signature(_mapping(signature)),
    )


def _file(document: Mapping[str, object]) -> PackedFile:
    size, executable = document["size"], document["executable"]
    if not isinstance(size, int) or not isinstance(executable, bool):
        raise TypeError("size is a number, executable true or false")
    return PackedFile(path=_text(document["path"]), size=size, sha256=_text(document["sha256"]), executable=executable)


def _signature(document: Mapping[str, object]) -> Signature:
    return Signature(key=_text(document["key"]), time=_text(document["time"]), value=_text(document["value"]))


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"an object is expected, not {value!r:.40}")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"a list is expected, not {value!r:.40}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is expected, not {value!r:.40}")
    return value


def _untrusted(message: str) -> ToolError:
    return ToolError(Kind.AUTH, f"{message}; nothing was installed")


def _holds(manifest: Manifest, mark: Signature) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        algorithm, _, spelled = mark.key.partition(":")
        key = Ed25519PublicKey.from_public_bytes(_decode(spelled))
        key.verify(_decode(mark.value), _message(manifest, mark))
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return algorithm == ALGORITHM


def _decode(text: str) -> bytes:
    """Decode base64; raises ValueError for a non-canonical spelling."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("not the canonical spelling")
    return data


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
            f"{path}: others can read the key; run chmod 600 if no other user has read it, else make a new one"
        )
    if len(data) != KEY_BYTES:
        raise SettingsError(f"{path} is not a key of ours; make one with: crib depot key FILE")
    return Ed25519PrivateKey.from_private_bytes(data)
