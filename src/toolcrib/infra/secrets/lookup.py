"""Look up a secret by name: in the environment, the operator's file, the project, the system keyring."""

from __future__ import annotations

import base64
import binascii
import os
import stat
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import orjson

from toolcrib.infra.files import Stamp, durable, read_at_most, settled_stamp, stamp_of
from toolcrib.infra.files.locks import Locks
from toolcrib.infra.secrets.secret import NAME, Masking, Secret, check_name, check_value
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.model.errors import SettingsError, ToolError
from toolcrib.model.protocols import LOCK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolcrib.lib.audit_trail import Recorder

T = TypeVar("T")

# A keyring lookup takes milliseconds; its answer is cached this long.
KEPT_SECONDS = 30.0
MAX_FILE_BYTES = 1_000_000
IN_ENVIRONMENT = "the environment"
IN_PROJECT = "this project"
IN_MEMORY = "this process"

_CURE = "remove secrets.keyring and keep secrets with: crib secret set"
# The file must be neither a link nor a pipe, or another user would decide its content.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Secrets:
    """The secrets of HTTP tools, looked up in the environment first, then in the file, the project and the keyring.

    `names` are the environment variables that are secrets, `folder` is where the project stores its own: without one
    they last as long as the process. `keyring` is the service name in the system keyring; empty means that it is not
    used. `masking` masks every stored secret, and those of the keyring once they were handed out.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        environment: Mapping[str, str],
        names: tuple[str, ...] = (),
        file: Path | None = None,
        keyring: str = "",
        record: Recorder = unrecorded,
    ) -> None:
        self.masking = Masking(self._find_stored)
        self._record = record
        self._environment = environment
        self._names = names
        self._listed = None if file is None else ListedSecrets(file)
        self._kept = None if folder is None else KeptSecrets(folder)
        self._asked = AskedSecrets(keyring) if keyring else None
        self._in_memory: dict[str, str] = {}
        self._stored: tuple[dict[str, str] | None, dict[str, str] | None, dict[str, str], frozenset[str]] | None = None

    def get(self, name: str) -> Secret | None:
        """The secret of this name, or None; raises SettingsError if it exists but cannot be read."""
        if not NAME.fullmatch(name):
            return None
        value = self._find(name)
        if value is None:
            return None
        check_value(name, value)
        self.masking.add(value)
        return Secret(name, value)

    def names(self) -> list[str]:
        """The names of all secrets except those in the keyring, which cannot be listed; sorted."""
        return sorted(self.places())

    def places(self) -> dict[str, str]:
        """The place of each secret, in words."""
        places = dict.fromkeys(self._in_memory, IN_MEMORY)
        if self._kept is not None:
            places |= dict.fromkeys(self._kept.names(), IN_PROJECT)
        if self._listed is not None:
            places |= dict.fromkeys(self._listed.values(), str(self._listed.path))
        return places | dict.fromkeys(filter(self._environment.get, self._names), IN_ENVIRONMENT)

    def set(self, name: str, value: str) -> None:
        """Store a secret in the project, replacing the one of this name."""
        check_name(name)
        check_value(name, value)
        self.masking.add(value)
        with self._record("secret.set", name):
            if self._kept is None:
                self._in_memory = {**self._in_memory, name: value}
            else:
                self._kept.set(name, value)

    def remove(self, name: str) -> bool:
        """Remove a secret of the project; False if there is none of this name."""
        check_name(name)
        if name not in (self._in_memory if self._kept is None else self._kept.sealed()):
            return False
        with self._record("secret.removed", name):
            return self._in_memory.pop(name, None) is not None if self._kept is None else self._kept.remove(name)

    def check(self) -> None:
        """Raise SettingsError for what would prevent secrets from being read: readable files, a lost key."""
        self.places()
        if self._kept is not None:
            self._kept.check()

    def hide(self, text: str) -> str:
        """The text with every stored secret masked, and every one that was handed out."""
        return self.masking.hide(text)

    def _find_stored(self) -> frozenset[str]:
        """All stored secrets; one that cannot be read cannot be revealed here either."""
        listed = None if self._listed is None else _try(self._listed.values)
        kept = None if self._kept is None else _try(self._kept.sealed)
        held, stored = self._in_memory, self._stored
        # What has not changed is the same object again.
        if stored is None or stored[0] is not listed or stored[1] is not kept or stored[2] is not held:
            opened = () if self._kept is None else (_try(partial(self._kept.get, name)) for name in kept or ())
            found = (*map(self._environment.get, self._names), *(listed or {}).values(), *opened, *held.values())
            stored = self._stored = listed, kept, held, frozenset(filter(None, found))
        return stored[3]

    def _find(self, name: str) -> str | None:
        if name in self._names and (value := self._environment.get(name)):
            return value
        if self._listed is not None and (value := self._listed.values().get(name)) is not None:
            return value
        if self._kept is not None and (value := self._kept.get(name)) is not None:
            return value
        if name in self._in_memory:
            return self._in_memory[name]
        return None if self._asked is None else self._asked.get(name)


def _try(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except ToolError:
        return None


class AskedSecrets:
    """Looks secrets up in the keyring; its names cannot be listed."""

    def __init__(self, service: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.service = service
        self._clock = clock
        self._answers: dict[str, tuple[float, str | None]] = {}

    def get(self, name: str) -> str | None:
        """The secret, if the keyring has it."""
        asked_at, value = self._answers.get(name, (float("-inf"), None))
        if self._clock() - asked_at > KEPT_SECONDS:
            value = self._ask(name)
            self._answers[name] = self._clock(), value
        return value

    def _ask(self, name: str) -> str | None:
        try:
            import keyring
            from keyring.errors import KeyringError, NoKeyringError
        except ImportError:
            message = "secrets.keyring needs the package keyring; install it with: pip install 'toolcrib[keyring]'"
            raise SettingsError(message) from None
        try:
            return keyring.get_password(self.service, name)
        except NoKeyringError:
            raise SettingsError(f"this system has no keyring that could be asked for {name}; {_CURE}") from None
        except KeyringError as problem:
            message = f"the keyring did not hand out {name}: {type(problem).__name__}"
            raise SettingsError(f"{message}; unlock it, or {_CURE}") from None


class ListedSecrets:
    """The secrets of a file, read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: tuple[Stamp | None, dict[str, str]] = (None, {})

    def values(self) -> dict[str, str]:
        """The current values; a file that others can read, or that is malformed, is refused."""
        try:
            descriptor = os.open(self.path, _OPEN)
        except OSError as problem:
            message = f"{self.path}: the file of secrets cannot be opened: {problem.strerror}"
            raise SettingsError(f"{message}; name a plain file of yours in secrets.file") from problem
        try:
            status = os.fstat(descriptor)
            stamp, values = self._read
            if stamp is None or stamp != stamp_of(status):
                _check(self.path, status)
                values = _parse(self.path, _decode(self.path, read_at_most(descriptor, MAX_FILE_BYTES + 1)))
                self._read = settled_stamp(status), values
        finally:
            os.close(descriptor)
        return values


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SettingsError(f"{path}: the file of secrets must be a plain file; name another in secrets.file")
    if status.st_uid != os.geteuid():
        raise SettingsError(f"{path}: the file of secrets belongs to another user; make it yours, with chown")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise SettingsError(f"{path}: others can read these secrets; run chmod 600, and change those that were seen")


def _decode(path: Path, data: bytes) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(f"{path}: a file of secrets has at most {MAX_FILE_BYTES} bytes; keep only secrets in it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        # Not as its cause: it contains everything that was read.
        raise SettingsError(f"{path}: not UTF-8 at byte {problem.start}; save it as UTF-8") from None


def _parse(path: Path, text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        place = f"{path}, line {number}"
        # Never quoted: a malformed line may be a secret.
        if not equals or not NAME.fullmatch(name):
            raise SettingsError(f"{place}: write NAME=value, the name in letters, digits and '_', no space around it")
        if name in values:
            raise SettingsError(f"{place}: {name} is there twice; remove one of them")
        values[name] = value
    return values


# The secrets of a project: one file, each sealed with the project key and bound to its name.

KEY_BYTES = 32
REMOVE = "remove the file and a new one is made"
FILE = "secrets.json"
KEY_SUFFIX = ".key"
LOCK_FOLDER = "locks"
LOCK = "secrets"
LAYOUT = "toolcrib secrets 1"
MAX_SEALED_BYTES = 20_000_000
NONCE_BYTES = 12

_PURPOSE = b"toolcrib secret\0"


class KeptSecrets:
    """The secrets in a file of the data folder of a project, shared by its processes."""

    def __init__(self, folder: Path, file: str = FILE) -> None:
        self.path = folder / file
        # One key for each file: what is lost with one does not concern the other.
        self._key_path = self.path.with_suffix(KEY_SUFFIX)
        self._read: tuple[Stamp | None, dict[str, str]] = (None, {})
        self._opened: dict[str, tuple[str, str]] = {}
        self._none: dict[str, str] = {}

    def names(self) -> list[str]:
        """The names, sorted; no secret is decrypted."""
        return sorted(self.sealed())

    def get(self, name: str) -> str | None:
        """The secret; raises SettingsError if it cannot be decrypted."""
        sealed = self.sealed().get(name)
        if sealed is None:
            return None
        opened = self._opened.get(name)
        if opened is None or opened[0] != sealed:
            opened = self._opened[name] = sealed, self._open(name, sealed)
        return opened[1]

    def set(self, name: str, value: str) -> None:
        """Store a secret, replacing the one of this name."""
        self._change(lambda sealed: {**sealed, name: self._seal(name, value)})

    def remove(self, name: str) -> bool:
        """Remove a secret; False if there is none."""
        was_there = name in self.sealed()
        if was_there:
            self._change(lambda sealed: {other: text for other, text in sealed.items() if other != name})
        self._opened.pop(name, None)
        return was_there

    def check(self) -> None:
        """Raise SettingsError for a file of secrets without its key, and for any secret that cannot be decrypted."""
        for name in self.names():
            self.get(name)

    def _change(self, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        with Locks(self.path.parent / LOCK_FOLDER).hold(LOCK, LOCK_SECONDS):
            self._read = (None, {})
            sealed = change(self.sealed())
            document = {"layout": LAYOUT, "secrets": dict(sorted(sealed.items()))}
            durable.replace(self.path, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            self._read = (None, {})

    def sealed(self) -> dict[str, str]:
        """The encrypted secrets of the file."""
        try:
            status = os.stat(self.path, follow_symlinks=False)  # noqa: PTH116 - every call waits for this
        except FileNotFoundError:
            return self._none
        except OSError as problem:
            raise SettingsError(
                f"{self.path}: the secrets cannot be read: {problem.strerror}; mend the folder"
            ) from problem
        stamp, sealed = self._read
        if stamp is None or stamp != stamp_of(status):
            sealed = _parse_sealed(self.path, durable.read(self.path, MAX_SEALED_BYTES) or b"")
            self._read = settled_stamp(status), sealed
        return sealed

    def _key(self) -> bytes:
        lost = f"put back the {self._key_path.name} that sealed {self.path}, or remove both and set the secrets again"
        if not os.path.lexists(self._key_path) and self.sealed():
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
            raise SettingsError(f"{message}; set it again with: crib secret set {name}") from None


def new_key() -> bytes:
    """A key for a crib without data on disk."""
    return os.urandom(KEY_BYTES)


def load_key(path: Path, cure: str = REMOVE) -> bytes:
    """The key of a project; created at first use, readable by this user only, by exactly one of many processes.

    `cure` is what to do about an invalid key file.
    """
    if not os.path.lexists(path):
        durable.create(path, new_key())
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as problem:
        raise SettingsError(f"{path}: the key cannot be read: {problem.strerror}; {cure}") from problem
    try:
        _check_key(path, os.fstat(descriptor), cure)
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: the key must be {KEY_BYTES} bytes; {cure}")
    return key


def _check_key(path: Path, status: os.stat_result, cure: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SettingsError(f"{path}: the key must be a plain file; {cure}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise SettingsError(f"{path}: others can read the key; {cure}, or run chmod 600 if no other user has read it")


def _bound_to(name: str) -> bytes:
    """Associated data that binds a sealed secret to its name."""
    return _PURPOSE + name.encode()


def _parse_sealed(path: Path, data: bytes) -> dict[str, str]:
    try:
        document = orjson.loads(data)
        secrets = document["secrets"] if document["layout"] == LAYOUT else None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        secrets = None
    if not isinstance(secrets, dict):
        raise SettingsError(f"{path} is not a file of secrets of ours; put back the one that was there, or remove it")
    if strange := next((name for name in secrets if not NAME.fullmatch(name)), None):
        raise SettingsError(f"{path}: {strange[:80]!r} is not a name of a secret; remove it from the file")
    # A value that is not a string cannot be decrypted, and is refused when it is requested.
    return {name: sealed if isinstance(sealed, str) else "" for name, sealed in secrets.items()}
