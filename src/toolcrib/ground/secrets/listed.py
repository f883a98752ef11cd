"""Secrets in a file of the operator's: one NAME=value in each line, for the owner's eyes only."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import read_at_most
from toolcrib.ground.files.stamps import Stamp, settled_stamp, stamp_of
from toolcrib.ground.secrets.secret import NAME
from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 1_000_000

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ListedSecrets:
    """The secrets of a file, read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: tuple[Stamp | None, dict[str, str]] = (None, {})

    def values(self) -> dict[str, str]:
        """What the file says now; a file that others can read, or that cannot be understood, is refused."""
        try:
            descriptor = os.open(self.path, _OPEN)
        except OSError as problem:
            message = f"{self.path}: the file of secrets cannot be opened: {problem.strerror}"
            raise SettingsError(f"{message}; name a plain file of yours in secrets_file") from problem
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
        raise SettingsError(f"{path}: the file of secrets must be a plain file; name another in secrets_file")
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
        # Not as its cause: it carries everything that was read.
        raise SettingsError(f"{path}: not UTF-8 at byte {problem.start}; save it as UTF-8") from None


def _parse(path: Path, text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        place = f"{path}, line {number}"
        # Never quoted: what is no NAME=value may be a secret.
        if not equals or not NAME.fullmatch(name):
            raise SettingsError(f"{place}: write NAME=value, the name in letters, digits and '_', no space around it")
        if name in values:
            raise SettingsError(f"{place}: {name} is there twice; remove one of them")
        values[name] = value
    return values
