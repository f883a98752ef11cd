"""Whether calls came to what the request asks for: answered, refused, and in the declared shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.builder.gate.calls import TOO_MUCH
from toolcrib.builder.gate.nouns import Check, complain, show_call, show_value, spell_value
from toolcrib.cases.comparing import differences
from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Complaint, Sample
    from toolcrib.model.toolrequest import ToolRequest

MOST = 5
SHOWN_DIFFERENCES = 3
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
    complaints = []
    for each in _one_of_each(tried):
        call = _call(request, each.sample)
        if each.kind is Kind.OUTPUT_INVALID:
            complaints.append(complain(Check.OUTPUT, f"{call}: {_message(each)}; {SHAPE}"))
        elif each.kind in TOO_MUCH:
            complaints.append(complain(Check.LIMITS, f"{call}: {_message(each)}; do less, or do it sooner"))
    return complaints[:MOST]


def find_failures(tried: Sequence[Tried], leniency: Leniency) -> list[Tried]:
    """The calls that failed although they should not have, one for each way of failing."""
    failed = [each for each in tried if each.kind is not None and each.kind not in TOO_MUCH]
    failed = [each for each in failed if each.kind is not Kind.OUTPUT_INVALID and not leniency.forgives(each)]
    if leniency.offline and any(each.result.ok and each.sample.plain for each in tried):
        return []
    return list(islice(_one_of_each(failed), MOST))


def find_empty(tried: Iterable[Tried], request: ToolRequest) -> list[str]:
    """The outputs that hold nothing in any answer, of which therefore nothing is proved."""
    values = [each.result.value for each in tried if each.result.ok and isinstance(each.result.value, dict)]
    names = [output.name for output in request.outputs or ()] if values else []
    return [name for name in names if all(value.get(name) in EMPTY for value in values)]


def complain_of_failure(failed: Tried, raised: str, request: ToolRequest) -> Complaint:
    """Say that a call should have been answered; `raised` is what the candidate itself said, if that is known."""
    said = raised or _message(failed)
    cure = "answer it" if failed.sample.plain else f"answer it, or refuse it with {REFUSAL}"
    call = f"{_call(request, failed.sample)} ({failed.sample.about})"
    return complain(Check.ACCEPTS, f"{call} fails: {said}; the inputs allow it, so {cure}; {ADD_EXAMPLES}")


def check_examples(
    tried: Iterable[tuple[Tried, object]], raised: Mapping[int, str], request: ToolRequest
) -> list[Complaint]:
    """Complain of calls that came to something else than the request shows; `raised` is what the candidate itself said, by `id`."""
    texts = []
    for each, expected in tried:
        call = _call(request, each.sample)
        if not each.result.ok:
            said = raised.get(id(each)) or _message(each)
            texts.append(f"{call} fails: {said}; the request shows {show_value(expected)}")
            continue
        wrong = list(islice(differences(expected, each.result.value, "value", exact=True), SHOWN_DIFFERENCES))
        if wrong:
            texts.append(f"{call} answers otherwise than the request shows: {'; '.join(wrong)}; answer as shown")
    return [complain(Check.EXAMPLES, text) for text in texts[:MOST]]


def check_defaults(
    bare: object, first: Tried, again: Tried, given: Tried | None, request: ToolRequest
) -> list[Complaint]:
    """Complain if leaving inputs out is not the same as giving their defaults; said of tools that answer the same twice.

    `bare` is what the function answered by itself, without anybody filling in defaults.
    """
    if not (first.result.ok and again.result.ok) or _differ(first.result.value, again.result.value):
        return []
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


def check_partial(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain of what was achieved and got lost when the network failed; a success that is complete is as good."""
    return [
        complain(
            Check.PARTIAL,
            f"{_call(request, each.sample)} loses what it had when the network fails ({_message(each)}); catch the "
            'failure and return {"result": what there is, "success": False, "error": why}',
        )
        for each in tried
        if not each.result.ok and each.result.value is None
    ]


def is_refusal(tried: Tried) -> bool:
    """Whether the tool itself says that it does not take these values."""
    return tried.kind is Kind.VALIDATION and not tried.result.refused


def _unwrapped(value: object) -> object:
    return value["result"] if isinstance(value, dict) and value.keys() == ENVELOPE else value


def _differ(one: object, other: object) -> bool:
    return spell_value(one) != spell_value(other)


def _one_of_each(tried: Iterable[Tried]) -> Iterator[Tried]:
    """The failed calls, one for each thing that was said."""
    seen: set[str] = set()
    for each in tried:
        if each.kind is not None and _message(each) not in seen:
            seen.add(_message(each))
            yield each


def _message(tried: Tried) -> str:
    error = tried.result.error
    return "" if error is None else f"{error.kind}: {error.message}"


def _call(request: ToolRequest, sample: Sample) -> str:
    return show_call(request.function, sample.arguments)
