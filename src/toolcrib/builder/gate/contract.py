"""What a request asks for, as a contract: calls that have to be answered and calls that have to be refused.

It follows from the request alone, and is the same every time.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.builder.gate.nouns import Contract, Sample, show_value, spell_value
from toolcrib.builder.gate.samples import edge_values, ordinary_value
from toolcrib.model.toolrequest import MISSING
from toolcrib.pure.schema import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.model.toolrequest import Input, ToolRequest

# Each of these runs in a process of its own; those that are refused cost nothing.
MAX_ACCEPTED = 16
MAX_REFUSED = 200
# What is of another type than each of these, in the words of the request's own types.
WRONG: tuple[object, ...] = (3.5, True, "true", 7, "text", ["text"], {"key": "value"}, None)
UNKNOWN = "no_such_input"


def derive_contract(request: ToolRequest) -> Contract:
    """The contract of a request."""
    least = Sample(about="only what is required", arguments=_ordinary(request, required=True))
    left_out = [given for given in request.inputs if given.default is not MISSING and not given.required]
    defaults = {given.name: given.default for given in left_out}
    filled = Sample(about="every default given", arguments={**least.arguments, **defaults})
    return Contract(
        file=f"{request.name}.py",
        function=request.function,
        least=least,
        filled=filled,
        accepted=tuple(islice(_once(_accepted(request, least, filled)), MAX_ACCEPTED)),
        refused=tuple(islice(_refused(request), MAX_REFUSED)),
        examples=request.examples,
    )


def _ordinary(request: ToolRequest, *, required: bool = False) -> dict[str, object]:
    inputs = [given for given in request.inputs if given.required or not required]
    return {given.name: ordinary_value(given, request) for given in inputs}


def _accepted(request: ToolRequest, least: Sample, filled: Sample) -> Iterator[Sample]:
    """Ordinary calls first, then each input at its edges, all inputs in turn."""
    fits = compile_schema(request.parameters).is_valid
    samples = [least, Sample(about="every input given", arguments=_ordinary(request)), filled]
    if request.shown:
        samples.append(Sample(about="the call of example_usage", arguments={**least.arguments, **request.shown}))
    yield from (sample for sample in (*samples, *_edges(request)) if fits(sample.arguments))


def _edges(request: ToolRequest) -> Iterator[Sample]:
    base = _ordinary(request)
    waiting = [(given, iter(edge_values(given, request))) for given in request.inputs]
    while waiting:
        for given, values in list(waiting):
            value = next(values, MISSING)
            if value is MISSING:
                waiting.remove((given, values))
            elif not _is_same(value, base[given.name]):
                about = f"{given.name} = {show_value(value)}"
                yield Sample(about=about, arguments={**base, given.name: value}, plain=False)


def _refused(request: ToolRequest) -> Iterator[Sample]:
    base = _ordinary(request)
    for given in request.inputs:
        if given.required and given.default is MISSING:
            rest = {name: value for name, value in base.items() if name != given.name}
            yield Sample(about=f"without {given.name}", arguments=rest)
        yield from _wrong_types(given, base)
    yield Sample(about="an input that nobody declared", arguments={**base, _unknown_name(request): "value"})


def _wrong_types(given: Input, base: dict[str, object]) -> Iterator[Sample]:
    fits = compile_schema({name: rule for name, rule in given.schema.items() if name != "default"}).is_valid
    for value in WRONG:
        if not fits(value):
            yield Sample(about=f"{given.name} = {show_value(value)}", arguments={**base, given.name: value})


def _unknown_name(request: ToolRequest) -> str:
    taken = {given.name for given in request.inputs}
    name = UNKNOWN
    while name in taken:
        name += "_"
    return name


def _is_same(value: object, other: object) -> bool:
    return spell_value(value) == spell_value(other)


def _once(samples: Iterable[Sample]) -> Iterator[Sample]:
    seen: set[str] = set()
    for sample in samples:
        key = spell_value(sample.arguments)
        if key not in seen:
            seen.add(key)
            yield sample
