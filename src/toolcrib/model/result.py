"""The result of a call, the verdict of a rule, and the explanation of what each gate decides."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, overload

from toolcrib.model.errors import SETTING_READERS, Cure, Kind, Reader, ToolError, cure_of
from toolcrib.values import ConversionError
from toolcrib.values.hint_values import REFUSALS, HintConverter, UnreadableHintError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


@record
class Intent:
    """What the tool asks the host to do next."""

    type: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The intent as one flat object."""
        return {"type": self.type, **self.fields}


@record
class Outcome:
    """The return value of a runner when a bare value is not enough.

    `waited` are the seconds before the tool itself began: for a slot, for a process, for imports. A value that `stands_in`
    replaces that of a failed request; it is not validated against the output schema.
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


@record
class Result(_Draft):
    """Success with a value, or an error, perhaps with a partial value; `refused` means that the tool did not run.

    A Result is true if the call succeeded: `if result: …`.
    """

    value: object = None
    error: ToolError | None = None
    intents: tuple[Intent, ...] = ()
    meta: dict[str, object] = field(default_factory=dict)
    refused: bool = False

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    def __bool__(self) -> bool:
        return self.error is None

    def unwrap(self) -> object:
        """The value; raises the ToolError of a call that failed."""
        if self.error is not None:
            raise self.error
        return self.value

    def told_to(self, reader: Reader) -> Result:
        """The result; the error of a failed call has a cure that this reader can follow."""
        return self if self.error is None else replace(self, error=self.error.told_to(reader))

    @overload
    def value_as(self, kind: type[T]) -> T: ...

    @overload
    def value_as(self, kind: object) -> Any: ...  # a union, which type checkers do not accept as a type

    def value_as(self, kind: Any) -> Any:
        """The value as an object of a type: `result.value_as(Forecast)`, `result.value_as(list[int])`.

        A dataclass, a TypedDict, a NamedTuple, an Enum, a pydantic model, a date, a union, or a container of these. Raises the
        ToolError of a call that failed, and OUTPUT_INVALID, with the path to what is wrong, for a value of another shape.
        """
        value = self.unwrap()
        name = kind.__name__ if isinstance(kind, type) else str(kind)
        try:
            make = HintConverter(checks=True).read(kind)
        except UnreadableHintError as problem:
            raise TypeError(f"value_as({name}): {problem}") from None
        try:
            return value if make is None else make(value)
        except (ConversionError, *REFUSALS) as problem:
            message = f"the value is not of the type {name}: {problem}"
            raise ToolError(Kind.OUTPUT_INVALID, message, cure="read result.value, or ask for another type") from None

    def to_json(self) -> dict[str, object]:
        """The canonical form, from which every other form is derived."""
        return {
            "ok": self.error is None,
            "value": self.value,
            "error": None if self.error is None else self.error.to_json(),
            "intents": [intent.to_json() for intent in self.intents],
            "meta": self.meta,
        }


def succeed(value: object, intents: tuple[Intent, ...], meta: dict[str, object]) -> Result:
    """Make the Result of a successful call, four times as fast as its constructor.

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
    return draft  # type: ignore[return-value]  # see above; `cast` would be one more call


class Decision(StrEnum):
    """What a rule or a gate decides about a call."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"


@record
class Verdict:
    """A decision with its reason. `rule` names the rule that decided, `where` its setting, `cure` what would allow the call."""

    decision: Decision
    reason: str = ""
    rule: str = ""
    where: str = ""
    cure: Cure | str = ""
    kind: Kind = Kind.BLOCKED
    details: Mapping[str, object] = field(default_factory=dict)
    retryable: bool = False

    def to_error(self, gate: str) -> ToolError:
        """The verdict as the error that the caller gets."""
        grounds = {"gate": gate, "rule": self.rule, "where": self.where}
        details = {**{name: text for name, text in grounds.items() if text}, **self.details}
        return ToolError(self.kind, self.reason, cure=self.cure, retryable=self.retryable, details=details)


ALLOW = Verdict(decision=Decision.ALLOW)


def deny(
    reason: str,
    *,
    rule: str = "",
    where: str = "",
    cure: Cure | str = "",
    kind: Kind = Kind.BLOCKED,
    details: Mapping[str, object] | None = None,
    retryable: bool = False,
) -> Verdict:
    """Refuse the call."""
    return Verdict(
        decision=Decision.DENY,
        reason=reason,
        rule=rule,
        where=where,
        cure=cure,
        kind=kind,
        details=details or {},
        retryable=retryable,
    )


def confirm(reason: str, *, rule: str = "", where: str = "", cure: Cure | str = "", plainly: str = "") -> Verdict:
    """Let the call run once a person has confirmed it; `plainly` is the reason alone, for that person."""
    kind, details = Kind.CONFIRMATION_REQUIRED, {"reason": plainly} if plainly else {}
    return Verdict(
        decision=Decision.CONFIRM, reason=reason, rule=rule, where=where, cure=cure, kind=kind, details=details
    )


@record
class Finding:
    """What one gate says about a call; `verdict` is None where an earlier gate leaves it nothing to judge.

    `note` is what a gate has to say besides, such as how many calls are left. `granted` names the settings that allow the call, for
    the operator alone.
    """

    gate: str
    verdict: Verdict | None
    note: str = ""
    granted: str = ""

    def to_json(self, reader: Reader = Reader.OPERATOR) -> dict[str, object]:
        """The finding as every interface shows it, with a cure that the reader can follow."""
        if self.verdict is None:
            return {"gate": self.gate, "decision": "not reached"}
        grounds = {"reason": self.verdict.reason, "rule": self.verdict.rule}
        if reader in SETTING_READERS:
            grounds |= {"where": self.verdict.where, "granted": self.granted}
        grounds |= {"cure": cure_of(self.verdict.cure).words_for(reader), "note": self.note}
        decision = {"gate": self.gate, "decision": str(self.verdict.decision)}
        return {**decision, **{name: text for name, text in grounds.items() if text}}


@record
class Explanation:
    """The findings of all gates, in the order of the pipeline, for a call that was not made."""

    tool: str
    findings: tuple[Finding, ...]

    @property
    def refusal(self) -> Finding | None:
        """The finding of the first gate that stops the call; the error of the call would name this gate."""
        for finding in self.findings:
            if finding.verdict is not None and finding.verdict.decision is not Decision.ALLOW:
                return finding
        return None

    @property
    def allowed(self) -> bool:
        """Whether the call would run."""
        return self.refusal is None

    def to_json(self, reader: Reader = Reader.OPERATOR) -> dict[str, object]:
        """The explanation as every interface shows it, with cures that the reader can follow."""
        findings = [finding.to_json(reader) for finding in self.findings]
        return {"tool": self.tool, "allowed": self.allowed, "findings": findings}


@record
class Piece:
    """A part of a stored result: the text from `offset`, and where the next part begins (None at the end)."""

    text: str
    offset: int
    total: int
    next: int | None
