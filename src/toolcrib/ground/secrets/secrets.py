"""Looking a secret up by name: in the environment, in the operator's file, in the project, in the keyring of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.secrets.asked import AskedSecrets
from toolcrib.ground.secrets.hiding import Masking
from toolcrib.ground.secrets.kept import KeptSecrets
from toolcrib.ground.secrets.listed import ListedSecrets
from toolcrib.ground.secrets.secret import NAME, Secret, check_name, check_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

IN_ENVIRONMENT = "the environment"
IN_PROJECT = "this project"
IN_MEMORY = "this process"


class Secrets:
    """The secrets of HTTP tools; of two by one name, that of the environment counts first, then file, project, keyring.

    `names` are the variables of the environment that are secrets, `folder` is where the project keeps its own: without one
    they last as long as the process. `keyring` is the name under which the system's keyring holds some; empty, it is not
    asked. Whatever is handed out is hidden by `hide` from then on.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        environment: Mapping[str, str],
        names: tuple[str, ...] = (),
        file: Path | None = None,
        keyring: str = "",
    ) -> None:
        self.masking = Masking()
        self._environment = environment
        self._names = names
        self._listed = None if file is None else ListedSecrets(file)
        self._kept = None if folder is None else KeptSecrets(folder)
        self._asked = AskedSecrets(keyring) if keyring else None
        self._in_memory: dict[str, str] = {}

    def get(self, name: str) -> Secret | None:
        """The secret by this name, or None; raises SettingsError if it is there and may not or cannot be read."""
        if not NAME.fullmatch(name):
            return None
        value = self._find(name)
        if value is None:
            return None
        check_value(name, value)
        self.masking.add(value)
        return Secret(name, value)

    def names(self) -> list[str]:
        """The names of all secrets but those of the keyring, which nobody can ask for them; sorted."""
        return sorted(self.places())

    def places(self) -> dict[str, str]:
        """Where each secret comes from, in words."""
        places = dict.fromkeys(self._in_memory, IN_MEMORY)
        if self._kept is not None:
            places |= dict.fromkeys(self._kept.names(), IN_PROJECT)
        if self._listed is not None:
            places |= dict.fromkeys(self._listed.values(), str(self._listed.path))
        return places | dict.fromkeys(filter(self._environment.get, self._names), IN_ENVIRONMENT)

    def set(self, name: str, value: str) -> None:
        """Keep a secret in the project, in place of the one that may be there."""
        check_name(name)
        check_value(name, value)
        self.masking.add(value)
        if self._kept is None:
            self._in_memory[name] = value
        else:
            self._kept.set(name, value)

    def remove(self, name: str) -> bool:
        """Forget a secret of the project; False if it keeps none by this name."""
        check_name(name)
        if self._kept is None:
            return self._in_memory.pop(name, None) is not None
        return self._kept.remove(name)

    def check(self) -> None:
        """Refuse, by raising SettingsError, what would keep secrets from being read: open files, a key that is lost."""
        self.places()
        if self._kept is not None:
            self._kept.check()

    def hide(self, text: str) -> str:
        """The text without any secret that was handed out."""
        return self.masking.hide(text)

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
