"""Secrets in the keyring of the system, under one name of the operator's choice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

# A keyring answers over a bus, in milliseconds; what it said holds for a while.
KEPT_SECONDS = 30.0

_CURE = "remove secrets_keyring and keep secrets with: crib secret set"


class AskedSecrets:
    """Asks the keyring by name; nobody can ask it which names it knows."""

    def __init__(self, service: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.service = service
        self._clock = clock
        self._answers: dict[str, tuple[float, str | None]] = {}

    def get(self, name: str) -> str | None:
        """The secret, if the keyring knows it."""
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
            message = "secrets_keyring needs the package keyring; install it with: pip install 'toolcrib[keyring]'"
            raise SettingsError(message) from None
        try:
            return keyring.get_password(self.service, name)
        except NoKeyringError:
            raise SettingsError(f"this system has no keyring that could be asked for {name}; {_CURE}") from None
        except KeyringError as problem:
            message = f"the keyring did not hand out {name}: {type(problem).__name__}"
            raise SettingsError(f"{message}; unlock it, or {_CURE}") from None
