"""What stands in the slots of a request: answers of earlier ones, arguments, names of the platform, secrets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.template import ABSENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from toolcrib.ground.secrets import Secret
    from toolcrib.model.tool import Http, Tool
    from toolcrib.pure.http_template import Slot
    from toolcrib.runners.masking import Masking

PLATFORM = frozenset(
    {"request_id", "version", "tool_version", "slug", "tool_id", "bundle_id", "client_id", "now"},
)


class _Unknown(str):
    """The only one of its kind; no answer is the same object."""

    __slots__ = ()


# In place of an answer that nobody has yet, while a call is only asked about.
UNKNOWN: Final = _Unknown("-")


class SecretSource(Protocol):
    """Looks secrets up by name."""

    def get(self, name: str) -> Secret | None:
        """The secret, or None."""

    def names(self) -> Collection[str]:
        """The names that are known."""


class Names:
    """What the slots of a tool mean, as far as it can be told before anybody calls it.

    `known` are the names of the platform that mean the same at each call.
    """

    def __init__(self, tool: Tool, http: Http, *, secrets: SecretSource, version: str) -> None:
        properties = tool.parameters.get("properties")
        self.declared: frozenset[str] = frozenset(properties) if isinstance(properties, dict) else frozenset()
        self.secrets = secrets
        known = {
            "version": version,
            "tool_version": tool.version,
            "slug": tool.slug,
            "tool_id": tool.id or tool.name,
            "bundle_id": http.bundle or tool.bundle,
        }
        taken = self.declared.union(call.name for call in http.calls)
        self.known: dict[str, object] = {name: value for name, value in known.items() if name not in taken}

    def may_be_secret(self, slots: Iterable[Slot]) -> frozenset[str]:
        """The names that nobody but the operator, or a server, gives a value to."""
        return frozenset(slot.name for slot in slots) - self.declared - PLATFORM

    def refuse_secrets(self, parameters: Iterable[str]) -> None:
        """Refuse parameters that have the name of a secret: nobody could tell which of the two is meant.

        Asked at each call, because the secret may have come after the tool.
        """
        for name in parameters:
            if self.secrets.get(name) is not None:
                cure = "rename the parameter, or remove the secret"
                raise ToolError(Kind.VALIDATION, f"{name} is a parameter and the name of a secret; {cure}")


class Values:
    """What one call gives the slots; every secret that it hands out is hidden by `masking` from then on."""

    def __init__(
        self, names: Names, arguments: Mapping[str, object], *, call_id: str, caller: str, masking: Masking
    ) -> None:
        self._names = names
        self._arguments = arguments
        self._call_id = call_id
        self._caller = caller
        self._masking = masking
        self._answers: dict[str, object] = {}

    def keep(self, name: str, answer: object) -> None:
        """Let later requests speak of an answer."""
        if name:
            self._answers[name] = answer

    def __call__(self, slot: Slot) -> object:
        """What the slot stands for, or ABSENT."""
        name = slot.name
        if name in self._answers:
            answer = self._answers[name]
            return answer if answer is UNKNOWN else slot.reach(answer)
        if name in self._names.declared:
            return slot.reach(self._arguments.get(name, ABSENT))
        if name in PLATFORM:
            return slot.reach(self._platform(name))
        return slot.reach(self._further(slot))

    def _platform(self, name: str) -> object:
        if name == "request_id":
            # A call that is only asked about has no id yet.
            return self._call_id or "0"
        if name == "client_id":
            return self._caller
        if name == "now":
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return self._names.known[name]

    def _further(self, slot: Slot) -> object:
        secret = self._names.secrets.get(slot.name)
        if secret is not None:
            value = secret.reveal()
            self._masking.add(value)
            return value
        if slot.name in self._arguments:
            return self._arguments[slot.name]
        cure = f"declare the parameter {slot.name}, or let the operator set a secret of that name"
        message = f"{slot} is neither a parameter, a name of the platform nor a secret; {cure}"
        raise ToolError(Kind.VALIDATION, message, details={"name": slot.name})
