"""Keep secrets in one file, each sealed with the key of the project and bound to its name; keep the keys themselves."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.files import durable
from toolcrib.infra.files.disk import Stamp, settled_stamp, stamp_of
from toolcrib.infra.files.locks import Locks
from toolcrib.infra.secrets.secret import NAME
from toolcrib.model.errors import SettingsError
from toolcrib.model.protocols import LOCK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KEY_BYTES = 32
REMOVE = "remove the file and a new one is made"
FILE = "secrets.json"
KEY_FILE = "secrets.key"
LOCK_FOLDER = "locks"
LOCK = "secrets"
LAYOUT = "toolcrib secrets 1"
MAX_FILE_BYTES = 20_000_000
NONCE_BYTES = 12

# Neither a link nor a pipe may stand where the key belongs, or another user decides what the key is.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PURPOSE = b"toolcrib secret\0"


class KeptSecrets:
    """The secrets in the data folder of a project; many processes may share it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._key_path = folder / KEY_FILE
        self._read: tuple[Stamp | None, dict[str, str]] = (None, {})
        self._opened: dict[str, tuple[str, str]] = {}

    def names(self) -> list[str]:
        """The names, sorted; none of the secrets is opened."""
        return sorted(self._sealed())

    def get(self, name: str) -> str | None:
        """The secret; raises SettingsError if it cannot be opened."""
        sealed = self._sealed().get(name)
        if sealed is None:
            return None
        opened = self._opened.get(name)
        if opened is None or opened[0] != sealed:
            opened = self._opened[name] = sealed, self._open(name, sealed)
        return opened[1]

    def set(self, name: str, value: str) -> None:
        """Keep a secret, in place of the one that may be there."""
        self._change(lambda sealed: {**sealed, name: self._seal(name, value)})

    def remove(self, name: str) -> bool:
        """Forget a secret; False if there is none."""
        was_there = name in self._sealed()
        if was_there:
            self._change(lambda sealed: {other: text for other, text in sealed.items() if other != name})
        self._opened.pop(name, None)
        return was_there

    def check(self) -> None:
        """Refuse, by raising SettingsError, a file of secrets without its key, and any secret that cannot be opened."""
        for name in self.names():
            self.get(name)

    def _change(self, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        with Locks(self.path.parent / LOCK_FOLDER).hold(LOCK, LOCK_SECONDS):
            self._read = (None, {})
            sealed = change(self._sealed())
            document = {"layout": LAYOUT, "secrets": dict(sorted(sealed.items()))}
            durable.replace(self.path, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            self._read = (None, {})

    def _sealed(self) -> dict[str, str]:
        """The secrets as they lie in the file."""
        try:
            status = os.stat(self.path, follow_symlinks=False)  # noqa: PTH116 - calls wait for this
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise SettingsError(
                f"{self.path}: the secrets cannot be read: {problem.strerror}; mend the folder"
            ) from problem
        stamp, sealed = self._read
        if stamp is None or stamp != stamp_of(status):
            sealed = _parse(self.path, durable.read(self.path, MAX_FILE_BYTES) or b"")
            self._read = settled_stamp(status), sealed
        return sealed

    def _key(self) -> bytes:
        lost = f"put back the {self._key_path.name} that sealed {self.path}, or remove both and set the secrets anew"
        if not os.path.lexists(self._key_path) and self._sealed():
            raise SettingsError(f"{self._key_path}: the key of the secrets is not there; {lost}")
        return load_key(self._key_path, lost)

    def _seal(self, name: str, value: str) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        return base64.b64encode(nonce + AESGCM(self._key()).encrypt(nonce, value.encode(), _bound_to(name))).decode()

    def _open(self, name: str, sealed: str) -> str:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        cipher = AESGCM(self._key())
        try:
            data = base64.b64decode(sealed, validate=True)
            return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _bound_to(name)).decode()
        except (InvalidTag, ValueError, binascii.Error):
            message = f"{self.path}: secret {name} was changed, or sealed with another key"
            raise SettingsError(f"{message}; set it anew with: crib secret set {name}") from None


def new_key() -> bytes:
    """A key for a crib that keeps nothing on disk."""
    return os.urandom(KEY_BYTES)


def load_key(path: Path, cure: str = REMOVE) -> bytes:
    """The key of a project; made at first use, readable by this user only, by exactly one of many processes.

    `cure` is what to do about a file that is no good as a key.
    """
    if not os.path.lexists(path):
        durable.create(path, new_key())
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as problem:
        raise SettingsError(f"{path}: the key cannot be read: {problem.strerror}; {cure}") from problem
    try:
        _check(path, os.fstat(descriptor), cure)
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: the key must be {KEY_BYTES} bytes; {cure}")
    return key


def _check(path: Path, status: os.stat_result, cure: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SettingsError(f"{path}: the key must be a plain file; {cure}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise SettingsError(f"{path}: others can read the key; {cure}, or run chmod 600 if nobody has seen it")


def _bound_to(name: str) -> bytes:
    """What keeps a sealed secret from passing for one by another name."""
    return _PURPOSE + name.encode()


def _parse(path: Path, data: bytes) -> dict[str, str]:
    try:
        document = orjson.loads(data)
        secrets = document["secrets"] if document["layout"] == LAYOUT else None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        secrets = None
    if not isinstance(secrets, dict):
        raise SettingsError(f"{path} is no file of secrets of ours; put back the one that was there, or remove it")
    if strange := next((name for name in secrets if not NAME.fullmatch(name)), None):
        raise SettingsError(f"{path}: {strange[:80]!r} is no name of a secret; remove it from the file")
    # What is no text cannot be opened, and is refused when it is asked for.
    return {name: sealed if isinstance(sealed, str) else "" for name, sealed in secrets.items()}
