"""Whether calls came to what the request asks for: answered, refused, and in the declared shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.builder.gate.calls import TOO_MUCH
from toolcrib.builder.gate.causes import MOST, Reason, tell_once
from toolcrib.builder.gate.nouns import Check, complain, show_call, show_value, spell_value
from toolcrib.cases.comparing import differences
from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Complaint, Sample
    from toolcrib.model.toolrequest import ToolRequest

SHOWN_DIFFERENCES = 3
TOLD_BY_SHAPE = TOO_MUCH | {Kind.OUTPUT_INVALID}
ENVELOPE = {"result", "success", "error"}
EMPTY: tuple[object, ...] = (None, "", [], {})
SHAPE = "return every declared output, of its declared type, and no others"
REFUSAL = "toolcrib.ToolError(toolcrib.Kind.VALIDATION, why)"
ADD_EXAMPLES = "if that input cannot be answered, have examples added to the request, which then decide"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leniency:
    """Which failures say nothing against a candidate.

    `decided` means that examples decide what is right. `offline` means that only some questions have a recorded answer,
    `unproved` that none has.
    """

    decided: bool = False
    offline: bool = False
    unproved: bool = False

    def forgives(self, tried: Tried) -> bool:
        """Whether this failure may be; one that is too long, too large or of the wrong shape never may."""
        if self.decided or self.unproved:
            return True
        # A value at the edge of what a type allows may be one that the tool refuses, if it says so.
        return not tried.sample.plain and (self.offline or is_refusal(tried))


def check_refusals(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain of calls that the inputs do not allow and that were made all the same."""
    return [
        complain(
            Check.REFUSES,
            f"{_call(request, each.sample)} ({each.sample.about}) was not refused; the inputs do not allow it",
        )
        for each in tried
        if each.kind is not Kind.VALIDATION or not each.result.refused
    ][:MOST]


def check_shapes(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain of answers that are no answers: of the wrong shape, too late, too large."""
    told = [(each, _call(request, each.sample), Reason.of(each)) for each in tried if each.kind in TOLD_BY_SHAPE]
    misshapen = [
        (f"{call}: {reason.text}; {SHAPE}", reason.causes)
        for each, call, reason in told
        if each.kind is Kind.OUTPUT_INVALID
    ]
    excessive = [
        (f"{call}: {reason.text}; do less, or do it sooner", reason.causes)
        for each, call, reason in told
        if each.kind in TOO_MUCH
    ]
    return [*tell_once(Check.OUTPUT, misshapen), *tell_once(Check.LIMITS, excessive)]


def find_failures(tried: Sequence[Tried], leniency: Leniency) -> list[Tried]:
    """The calls that failed although they should not have, and not by what `check_shapes` tells."""
    if leniency.offline and any(each.result.ok and each.sample.plain for each in tried):
        return []
    failed = [each for each in tried if each.kind is not None and each.kind not in TOLD_BY_SHAPE]
    return [each for each in failed if not leniency.forgives(each)]


def find_empty(tried: Iterable[Tried], request: ToolRequest) -> list[str]:
    """The outputs that hold nothing in any answer, of which therefore nothing is proved."""
    values = [each.result.value for each in tried if each.result.ok and isinstance(each.result.value, dict)]
    names = [output.name for output in request.outputs or ()] if values else []
    return [name for name in names if all(value.get(name) in EMPTY for value in values)]


def check_failures(failures: Iterable[Tried], reasons: Mapping[int, Reason], request: ToolRequest) -> list[Complaint]:
    """Complain of calls that should have been answered; `reasons` are theirs, by `id`."""
    found = []
    for failed in failures:
        reason = reasons.get(id(failed))
        if reason is None:
            continue
        cure = "answer it" if failed.sample.plain else f"answer it, or refuse it with {REFUSAL}"
        call = f"{_call(request, failed.sample)} ({failed.sample.about})"
        text = f"{call} fails: {reason.text}; the inputs allow it, so {cure}; {ADD_EXAMPLES}"
        found.append((text, reason.causes))
    return tell_once(Check.ACCEPTS, found)


def check_examples(
    tried: Iterable[tuple[Tried, object]], reasons: Mapping[int, Reason], request: ToolRequest
) -> list[Complaint]:
    """Complain of calls that came to something else than the request shows; `reasons` are those of failures, by `id`."""
    found = []
    for each, expected in tried:
        call, value = _call(request, each.sample), each.result.value
        if reason := reasons.get(id(each)):
            found.append((f"{call} fails: {reason.text}; the request shows {show_value(expected)}", reason.causes))
        wrong = differences(expected, value, "value", exact=True) if each.result.ok else iter(())
        if shown := "; ".join(islice(wrong, SHOWN_DIFFERENCES)):
            text = f"{call} answers otherwise than the request shows: {shown}; answer as shown"
            found.append((text, frozenset({_misnamed(expected, value) or text})))
    return tell_once(Check.EXAMPLES, found)


def check_defaults(bare: object, first: Tried, given: Tried | None, request: ToolRequest) -> list[Complaint]:
    """Complain if leaving inputs out is not the same as giving their defaults; not to be said of tools that draw lots.

    `bare` is what the function answered by itself, without anybody filling in defaults.
    """
    answers = {"by itself": _unwrapped(bare)}
    if given is not None and given.result.ok:
        answers["with every default given"] = given.result.value
    call = _call(request, first.sample)
    return [
        complain(
            Check.DEFAULTS,
            f"{call} {how} answers {show_value(value)}, and otherwise {show_value(first.result.value)}; "
            "use the defaults of the request",
        )
        for how, value in answers.items()
        if _differ(value, first.result.value)
    ]


def are_same(one: Tried, others: Sequence[Tried]) -> bool:
    """Whether there are others, and all of them were answered as this one was."""
    return bool(others) and all(each.result.ok and not _differ(each.result.value, one.result.value) for each in others)


def is_refusal(tried: Tried) -> bool:
    """Whether the tool itself says that it does not take these values."""
    return tried.kind is Kind.VALIDATION and not tried.result.refused


def _unwrapped(value: object) -> object:
    return value["result"] if isinstance(value, dict) and value.keys() == ENVELOPE else value


def _differ(one: object, other: object) -> bool:
    return spell_value(one) != spell_value(other)


def _misnamed(expected: object, value: object) -> str:
    """Which outputs have other names than they should, if that is what is wrong."""
    if not isinstance(expected, dict) or not isinstance(value, dict) or expected.keys() == value.keys():
        return ""
    return f"without {sorted(map(str, expected.keys() - value.keys()))}, with {sorted(map(str, value.keys() - expected.keys()))}"


def _call(request: ToolRequest, sample: Sample) -> str:
    return show_call(request.function, sample.arguments)
