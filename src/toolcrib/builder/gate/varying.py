"""Whether an answer has to do with the question: it differs with the inputs, and not by chance alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.builder.gate.answers import is_refusal
from toolcrib.builder.gate.nouns import Check, complain, show_value, spell_value
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolcrib.builder.gate.answers import Leniency
    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.model.toolrequest import ToolRequest

    Pair = tuple[Mapping[str, object], Mapping[str, object]]
    Sight = Callable[[object], object]

# Who tosses a coin for each answer would have to win so often.
REPEATED = 8
CHANCE = "add examples of inputs that leave nothing to chance"
ONE_ANSWER = "the examples all have one answer, so a constant would pass; add one that differs"


def has_to_vary(request: ToolRequest, leniency: Leniency) -> bool:
    """Whether nothing but the variety of its answers shows that a candidate does something."""
    return bool(request.inputs) and not leniency.decided and not leniency.unproved


def has_one_answer(request: ToolRequest) -> bool:
    """Whether there are examples, and none of them shows that the answer depends on the inputs."""
    return bool(request.inputs) and len({spell_value(example.expected) for example in request.examples}) == 1


def check_nothing(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if nothing is ever answered, where no outputs are declared that would tell."""
    answered = [each for each in tried if each.result.ok]
    if request.outputs or not answered or any(each.result.value is not None for each in answered):
        return []
    text = f"{request.function} answers null to each of {len(answered)} calls; return what was asked for"
    return [complain(Check.OUTPUT, text)]


def check_constant(tried: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if different calls have all the one answer that the examples show; what is drawn by lot is not one."""
    answered = {spell_value(_in_full(each, request)): each for each in tried if each.result.ok}
    values = {spell_value(each.result.value): each.result.value for each in answered.values()}
    if len(answered) == 1 or len(values) != 1:
        return []
    [value] = values.values()
    text = f"{request.function} answers {show_value(value)} to each of {len(answered)} different calls"
    return [complain(Check.VARIES, f"not provable: {ONE_ANSWER}: {text}")]


def check_variety(tried: Sequence[Tried], again: Iterable[Tried], request: ToolRequest) -> list[Complaint]:
    """Complain if the answer has nothing to do with the question, as far as that shows; `again` are calls made once more."""
    asked = {spell_value(_in_full(each, request)) for each in tried}
    answered = {spell_value(_in_full(each, request)): each for each in tried if each.result.ok}
    outputs = [_outputs(each.result.value) for each in answered.values()]
    if len(asked) == 1 or not answered or _differ(outputs, _pairs(tried, again)):
        return []
    if len(answered) == 1 and not all(each.result.ok or is_refusal(each) for each in tried):
        return []
    return [complain(Check.VARIES, _describe(list(answered.values()), request))]


def _describe(answered: Sequence[Tried], request: ToolRequest) -> str:
    if len({spell_value(each.result.value) for each in answered}) > 1:
        return (
            f"not provable, {CHANCE}: {request.function} answers otherwise when the very same call is made again, and "
            "nothing in its answers follows from the inputs"
        )
    return (
        f"not provable, add examples: {request.function} answers {show_value(answered[0].result.value)} "
        f"to each of {len(answered)} different calls; an answer has to follow from the inputs"
    )


def _differ(outputs: Sequence[Mapping[str, object]], pairs: Sequence[Pair]) -> bool:
    """Whether the answers differ in something that stays the same when the same call is made again."""
    names = {name for known in outputs for name in known}
    sights = {name: _sight(name, pairs) for name in names}
    return any(len({sight(known.get(name)) for known in outputs}) > 1 for name, sight in sights.items())


def _sight(name: str, pairs: Sequence[Pair]) -> Sight:
    """As what an output stays the same: as itself; as its length, like a password that is drawn; or as nothing at all."""
    for sight in (spell_value, _length):
        if all(sight(one.get(name)) == sight(other.get(name)) for one, other in pairs):
            return sight
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
