"""What a call came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.errors import ToolError


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """What the tool asks the host to do next."""

    type: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The intent as one flat object."""
        return {"type": self.type, **self.fields}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a runner hands back when a bare value does not say it all.

    `waited` are the seconds that passed before the tool itself began: for a place, for a process, for what it loads. A value
    that `stands_in` for one that could not be had is not held to the output schema.
    """

    value: object = None
    intents: tuple[Intent, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    error: ToolError | None = None
    waited: float = 0.0
    stands_in: bool = False


class _Draft:
    """The fields of a Result before it is frozen; see `succeed`."""

    __slots__ = ("error", "intents", "meta", "refused", "value")

    value: object
    error: ToolError | None
    intents: tuple[Intent, ...]
    meta: dict[str, object]
    refused: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(_Draft):
    """Success with a value, or an error that may stand beside a partial value; `refused` means that nothing ran."""

    value: object = None
    error: ToolError | None = None
    intents: tuple[Intent, ...] = ()
    meta: dict[str, object] = field(default_factory=dict)
    refused: bool = False

    @property
    def ok(self) -> bool:
        """Whether the call did what was asked."""
        return self.error is None

    def to_json(self) -> dict[str, object]:
        """The canonical form, which every other form is a projection of."""
        return {
            "ok": self.error is None,
            "value": self.value,
            "error": None if self.error is None else self.error.to_json(),
            "intents": [intent.to_json() for intent in self.intents],
            "meta": self.meta,
        }


def succeed(value: object, intents: tuple[Intent, ...], meta: dict[str, object]) -> Result:
    """Make a Result of a success, four times as fast as its constructor.

    A frozen dataclass writes each field through `object.__setattr__`, which alone would take as long as the two schema
    checks of a call. A draft of the same layout takes plain writes and is then declared to be a Result.
    """
    draft = _Draft()
    draft.value = value
    draft.error = None
    draft.intents = intents
    draft.meta = meta
    draft.refused = False
    draft.__class__ = Result  # same slots, so CPython allows it
    return cast("Result", draft)
