"""Check the answers of calls: answered or refused as declared, of the declared shape, and dependent on the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.features.requests.built_package import ENVELOPE
from toolcrib.features.requests.gate import Check, complain, show_call, show_value, spell_value
from toolcrib.features.requests.gate.calls import MOST, TOO_MUCH, Reason, complain_once
from toolcrib.lib.comparison import differences
from toolcrib.model.errors import Kind
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolcrib.features.requests.gate import Complaint, Sample
    from toolcrib.features.requests.gate.calls import Tried
    from toolcrib.model.toolrequest import ToolRequest

    Pair = tuple[Mapping[str, object], Mapping[str, object]]
    View = Callable[[object], object]

SHOWN_DIFFERENCES = 3
REPORTED_BY_SHAPE = TOO_MUCH | {Kind.OUTPUT_INVALID}
EMPTY: tuple[object, ...] = (None, "", [], {})
SHAPE = "return every declared output, of its declared type, and no others"
REFUSAL = "toolcrib.ToolError(toolcrib.Kind.VALIDATION, why)"
ADD_EXAMPLES = "if that input cannot be answered, have examples added to the request, which then decide"
# So many repeated calls make it unlikely that a random answer passes for a stable one.
REPEATED = 8
CHANCE = "add examples of inputs that leave nothing to chance"
ONE_ANSWER = "the examples all have one answer, so a constant would pass; add one that differs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Leniency:
    """Which failures are not held against a candidate.

    `decided` means that examples decide what is right. `offline` means that only some calls have a recorded answer,
    `unproved` that none has.
    """

    decided: bool = False
    offline: bool = False
    unproved: bool = False

    def forgives(self, tried: Tried) -> bool:
        """Whether this failure is accepted; a timeout, an exceeded limit or a wrong shape never is."""
        if self.decided or self.unproved:
            return True
        # The tool may refuse an edge value of a type, with a VALIDATION of its own.
        return not tried.sample.plain and (self.offline or is_refusal(tried))


def check_refusals(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain of calls that the inputs do not allow and that reached the tool."""
    return [
        complain(
            Check.REFUSES,
            f"{_call(request, each.sample)} ({each.sample.about}) was not refused; the inputs do not allow it",
        )
        for each in tried
        if each.kind is not Kind.VALIDATION or not each.result.refused
    ][:MOST]


def check_shapes(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain of answers of the wrong shape, too late, or too large."""
    failed = [(each, _call(request, each.sample), Reason.of(each)) for each in tried if each.kind in REPORTED_BY_SHAPE]
    misshapen = [
        (f"{call}: {reason.text}; {SHAPE}", reason.causes)
        for each, call, reason in failed
        if each.kind is Kind.OUTPUT_INVALID
    ]
    excessive = [
        (f"{call}: {reason.text}; do less, or do it sooner", reason.causes)
        for each, call, reason in failed
        if each.kind in TOO_MUCH
    ]
    return [*complain_once(Check.OUTPUT, misshapen), *complain_once(Check.LIMITS, excessive)]


def find_failures(tried: Sequence[Tried], leniency: Leniency) -> list[Tried]:
    """The calls that failed and should not have, without those that `check_shapes` reports."""
    if leniency.offline and any(each.result.ok and each.sample.plain for each in tried):
        return []
    failed = [each for each in tried if each.kind is not None and each.kind not in REPORTED_BY_SHAPE]
    return [each for each in failed if not leniency.forgives(each)]


def find_empty(tried: Iterable[Tried], request: ToolRequest) -> list[str]:
    """The outputs that are empty in every answer, and so not proved."""
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
    return complain_once(Check.ACCEPTS, found)


def check_examples(
    tried: Iterable[tuple[Tried, object]], reasons: Mapping[int, Reason], request: ToolRequest
) -> list[Complaint]:
    """Complain of answers that differ from the examples of the request; `reasons` are those of failures, by `id`."""
    found = []
    for each, expected in tried:
        call, value = _call(request, each.sample), each.result.value
        if reason := reasons.get(id(each)):
            found.append((f"{call} fails: {reason.text}; the request shows {show_value(expected)}", reason.causes))
        wrong = differences(expected, value, "value", exact=True) if each.result.ok else iter(())
        if shown := "; ".join(islice(wrong, SHOWN_DIFFERENCES)):
            text = f"{call} answers otherwise than the request shows: {shown}; answer as shown"
            found.append((text, frozenset({_misnamed(expected, value) or text})))
    return complain_once(Check.EXAMPLES, found)


def check_defaults(bare: object, first: Tried, given: Tried | None, request: ToolRequest) -> list[Complaint]:
    """Complain if leaving inputs out is not the same as giving their defaults; not for tools with random answers.

    `bare` is what the function answered by itself, without filled-in defaults.
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
    """Whether there are others, and all have the same answer as this one."""
    return bool(others) and all(each.result.ok and not _differ(each.result.value, one.result.value) for each in others)


def is_refusal(tried: Tried) -> bool:
    """Whether the tool itself refused these values."""
    return tried.kind is Kind.VALIDATION and not tried.result.refused


def has_to_vary(request: ToolRequest, leniency: Leniency) -> bool:
    """Whether only the variety of its answers can show that a candidate works."""
    return bool(request.inputs) and not leniency.decided and not leniency.unproved


def has_one_answer(request: ToolRequest) -> bool:
    """Whether there are examples, and none of them shows that the answer depends on the inputs."""
    return bool(request.inputs) and len({spell_value(example.expected) for example in request.examples}) == 1


def check_nothing(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if every answer is null, for a request without outputs."""
    answered = [each for each in tried if each.result.ok]
    if request.outputs or not answered or any(each.result.value is not None for each in answered):
        return []
    text = f"{request.function} answers null to each of {len(answered)} calls; return what was asked for"
    return [complain(Check.OUTPUT, text)]


def check_constant(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if different calls have all the one answer that the examples show; random answers are not one."""
    answered = {spell_value(_in_full(each, request)): each for each in tried if each.result.ok}
    values = {spell_value(each.result.value): each.result.value for each in answered.values()}
    if len(answered) == 1 or len(values) != 1:
        return []
    [value] = values.values()
    text = f"{request.function} answers {show_value(value)} to each of {len(answered)} different calls"
    return [complain(Check.VARIES, f"not provable: {ONE_ANSWER}: {text}")]


def check_variety(tried: Sequence[Tried], again: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if no answer depends on the inputs; `again` are repeated calls, which show what is random."""
    asked = {spell_value(_in_full(each, request)) for each in tried}
    answered = {spell_value(_in_full(each, request)): each for each in tried if each.result.ok}
    outputs = [_outputs(each.result.value) for each in answered.values()]
    pairs = _pairs(tried, again)
    if len(asked) == 1 or not answered or _vary(outputs, pairs):
        return []
    if len(answered) == 1 and not all(each.result.ok or is_refusal(each) for each in tried):
        return []
    return [complain(Check.VARIES, _describe(list(answered.values()), pairs, request))]


def _unwrapped(value: object) -> object:
    return value["result"] if isinstance(value, dict) and value.keys() == ENVELOPE else value


def _differ(one: object, other: object) -> bool:
    return spell_value(one) != spell_value(other)


def _misnamed(expected: object, value: object) -> str:
    """Which outputs have wrong names, if that is the difference."""
    if not isinstance(expected, dict) or not isinstance(value, dict) or expected.keys() == value.keys():
        return ""
    return f"without {sorted(map(str, expected.keys() - value.keys()))}, with {sorted(map(str, value.keys() - expected.keys()))}"


def _call(request: ToolRequest, sample: Sample) -> str:
    return show_call(request.function, sample.arguments)


def _describe(answered: Sequence[Tried], pairs: Sequence[Pair], request: ToolRequest) -> str:
    # Random answers of two calls may be the same once; a repeated call shows it.
    is_random = any(_differ(one, other) for one, other in pairs)
    if is_random or len({spell_value(each.result.value) for each in answered}) > 1:
        return (
            f"not provable, {CHANCE}: {request.function} answers otherwise when the very same call is made again, and "
            "nothing in its answers follows from the inputs"
        )
    return (
        f"not provable, add examples: {request.function} answers {show_value(answered[0].result.value)} "
        f"to each of {len(answered)} different calls; an answer has to follow from the inputs"
    )


def _vary(outputs: Sequence[Mapping[str, object]], pairs: Sequence[Pair]) -> bool:
    """Whether the answers differ in something that a repeated call does not change."""
    names = {name for known in outputs for name in known}
    views = {name: _stable_view(name, pairs) for name in names}
    return any(len({view(known.get(name)) for known in outputs}) > 1 for name, view in views.items())


def _stable_view(name: str, pairs: Sequence[Pair]) -> View:
    """What of an output a repeated call does not change: itself, its length (as of a random password), or nothing."""
    for view in (spell_value, _length):
        if all(view(one.get(name)) == view(other.get(name)) for one, other in pairs):
            return view
    return _nothing


def _length(value: object) -> object:
    return len(value) if isinstance(value, str | list | dict) else None


def _nothing(_: object) -> object:
    return None


def _pairs(tried: Iterable[Tried], again: Iterable[Tried]) -> list[Pair]:
    """What the same call answered the first and the second time."""
    first = {id(each.sample): each.result.value for each in tried}
    seconds = [each for each in again if each.result.ok and id(each.sample) in first]
    return [(_outputs(first[id(each.sample)]), _outputs(each.result.value)) for each in seconds]


def _outputs(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {"": value}


def _in_full(tried: Tried, request: ToolRequest) -> dict[str, object]:
    defaults = {given.name: given.default for given in request.inputs if given.default is not MISSING}
    return {**defaults, **tried.sample.arguments}
