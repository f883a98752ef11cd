"""Resolve the slots of a tool: answers of earlier requests, arguments, names of the platform, secrets, variables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from toolcrib.features.http_tools.slots import SlotSource
from toolcrib.lib.templates import ABSENT
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from toolcrib.features.http_tools.slots import Slot
    from toolcrib.infra.secrets.grants import ToolGrants
    from toolcrib.infra.secrets.secret import Secret, VariableMasking
    from toolcrib.model.tool import Http, Tool

PLATFORM = frozenset(
    {"request_id", "version", "tool_version", "slug", "tool_id", "bundle_id", "client_id", "now"},
)
# Sources whose values come from the operator or a server, never from the caller.
CONFIDENTIAL = frozenset({SlotSource.SECRET, SlotSource.VARIABLE, SlotSource.GRANTED, SlotSource.ANSWER})


class _Unknown(str):
    """The type of UNKNOWN, which no answer is identical to."""

    __slots__ = ()


# Stands for an answer that does not exist yet, while a call is only checked.
UNKNOWN: Final = _Unknown("-")


class SecretSource(Protocol):
    """Looks secrets up by name."""

    def get(self, name: str) -> Secret | None:
        """The secret, or None."""

    def names(self) -> Collection[str]:
        """The names that are known."""


class Names:
    """What the slots of a tool mean, as far as it is known before a call.

    `known` are the names of the platform that mean the same at each call.
    """

    def __init__(self, tool: Tool, http: Http, *, secrets: SecretSource, grants: ToolGrants, version: str) -> None:
        properties = tool.parameters.get("properties")
        self.declared: frozenset[str] = frozenset(properties) if isinstance(properties, dict) else frozenset()
        self.content = tool.content_hash
        self.secrets = secrets
        self.grants = grants
        self.grants_secrets = http.spelling is Spelling.BRACES
        self.platform: dict[str, object] = {
            "version": version,
            "tool_version": tool.version,
            "slug": tool.slug,
            "tool_id": tool.id or tool.name,
            "bundle_id": http.bundle or tool.bundle,
        }
        self.answers = frozenset(call.name for call in http.calls) - {""}

    def settle(self, slot: Slot) -> object:
        """The value that the slot has at each call, or ABSENT."""
        is_bare = slot.source in {SlotSource.ANY, SlotSource.NAME}
        if slot.source is not SlotSource.PLATFORM and not (is_bare and slot.name not in self.declared | self.answers):
            return ABSENT
        return slot.reach(self.platform.get(slot.name, ABSENT))

    def may_be_secret(self, slot: Slot) -> bool:
        """Whether only the operator, or a server, gives it a value."""
        if slot.source is SlotSource.ANY:
            return slot.name not in self.declared and slot.name not in PLATFORM
        return slot.source in CONFIDENTIAL

    def is_provided(self, slot: Slot) -> bool:
        """Whether the operator must provide its value: no argument and no answer stands for it."""
        if slot.source is SlotSource.ANY:
            return bool(self.declared) and slot.name not in self.answers and self.may_be_secret(slot)
        return slot.source in CONFIDENTIAL - {SlotSource.ANSWER}

    def refuse_secrets(self, parameters: Iterable[str]) -> None:
        """Refuse parameters that have the name of a secret: it would be unclear which of the two is meant.

        Asked at each call, because the secret may have come after the tool.
        """
        for name in parameters:
            if self.secrets.get(name) is not None:
                cure = "rename the parameter, or remove the secret"
                raise ToolError(Kind.VALIDATION, f"{name} is a parameter and the name of a secret; {cure}")


class Values:
    """What one call gives the slots; every secret that it hands out is hidden by `masking` from then on."""

    def __init__(
        self, names: Names, arguments: Mapping[str, object], *, call_id: str, caller: str, masking: VariableMasking
    ) -> None:
        self._names = names
        self._arguments = arguments
        self._call_id = call_id
        self._caller = caller
        self._masking = masking
        self._answers: dict[str, object] = {}

    def keep(self, name: str, answer: object) -> None:
        """Make an answer available to the slots of later requests."""
        if name:
            self._answers[name] = answer

    def __call__(self, slot: Slot) -> object:
        """What the slot stands for, or ABSENT."""
        name, source = slot.name, slot.source
        if source is SlotSource.ANSWER or (source is SlotSource.ANY and name in self._answers):
            answer = self._answers.get(name, ABSENT)
            return answer if answer is UNKNOWN else slot.reach(answer)
        if source is SlotSource.ANY or source is SlotSource.NAME:
            if name in self._names.declared:
                return slot.reach(self._arguments.get(name, ABSENT))
            return slot.reach(self._platform(slot) if name in PLATFORM else self._further(slot))
        return slot.reach(self._named(slot))

    def _named(self, slot: Slot) -> object:
        """What a slot stands for that says where its value comes from."""
        if slot.source is SlotSource.ARGUMENT:
            return self._argument(slot)
        if slot.source is SlotSource.PLATFORM:
            return self._platform(slot)
        if slot.source is SlotSource.SECRET:
            return self._secret(slot)
        grants = self._names.grants
        return self._set(slot, (grants.variable if slot.source is SlotSource.VARIABLE else grants.value)(slot.name))

    def _argument(self, slot: Slot) -> object:
        if slot.name in self._names.declared or slot.name in self._arguments:
            return self._arguments.get(slot.name, ABSENT)
        cure = f"declare the parameter {slot.name}, or write the name of one that is declared"
        raise ToolError(Kind.VALIDATION, f"{slot} is not a parameter; {cure}", details={"name": slot.name})

    def _platform(self, slot: Slot) -> object:
        name = slot.name
        if name == "request_id":
            # A call that is only checked has no id yet.
            return self._call_id or "0"
        if name == "client_id":
            return self._caller
        if name == "now":
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if name in PLATFORM:
            return self._names.platform[name]
        known = ", ".join(sorted(PLATFORM))
        raise ToolError(Kind.VALIDATION, f"{slot} is not a name of the platform; write one of {known}")

    def _further(self, slot: Slot) -> object:
        """What a bare name means that is neither declared nor the platform's."""
        if slot.source is SlotSource.ANY and (secret := self._names.secrets.get(slot.name)) is not None:
            return self._hide(secret.reveal())
        # Beside parameters that are declared, what is not is the operator's: no argument stands for a secret that is missing.
        if slot.name in self._arguments and (slot.source is SlotSource.NAME or not self._names.declared):
            return self._arguments[slot.name]
        if slot.source is SlotSource.NAME:
            cure = f"declare a parameter of that name, or write {{{{{slot.name}}}}} for the text itself"
            message = f"{slot} is neither a parameter nor a name of the platform; {cure}"
        else:
            cure = f"declare the parameter {slot.name}, or let the operator set a secret of that name"
            message = f"{slot} is neither a parameter, a name of the platform nor a secret; {cure}"
        raise ToolError(Kind.VALIDATION, message, details={"name": slot.name})

    def _secret(self, slot: Slot) -> object:
        if self._names.grants_secrets:
            self._names.grants.value(slot.name)
        secret = self._names.secrets.get(slot.name)
        if secret is None:
            message = f"{slot}: there is no secret of that name"
            there = f"store it on the page, under Access (PUT /ui/setup/secrets/{slot.name})"
            cure = Cure(f"run: crib secret set {slot.name}", "ask the operator to store it", administrator=there)
            raise ToolError(Kind.VALIDATION, message, cure=cure, details={"name": slot.name})
        return self._hide(secret.reveal())

    def _set(self, slot: Slot, value: str | None) -> str:
        """A variable as it is set on the host, or its default."""
        if value:
            if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                message = f"the variable {slot.name} holds bytes that are not UTF-8; set it to a text"
                raise ToolError(Kind.VALIDATION, message)
            return self._hide(value)
        if slot.default is not None:
            return slot.default
        if value is not None:
            return value
        cure = Cure(f"set it, or write {slot.written[:-1]}:-default}}", "ask the operator to set it")
        raise ToolError(Kind.VALIDATION, f"the variable {slot.name} is not set on the host", cure=cure)

    def _hide(self, value: str) -> str:
        self._masking.add(value)
        return value
