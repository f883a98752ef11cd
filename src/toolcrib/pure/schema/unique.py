"""Lists whose items must differ: the engine sorts numbers by the nearest float, and compares those with the same one by one.

Beyond 2^53 as many as two thousand integers share a float, and lists of them share it in any number: a few kilobytes of them
would take minutes. All else it tells apart in a time that grows with the list alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.pure.schema.check import Validator

EXACT = 2**53
MAX_COMPARED = 200


class UniqueValidator:
    """A compiled schema that asks for items that differ; it raises rather than compare too many."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def is_valid(self, instance: object) -> bool:
        """Whether the schema accepts the value."""
        vast = list(_vast_numbers(instance))
        if len(vast) > MAX_COMPARED and _share_a_float(vast):
            message = (
                f"more than {MAX_COMPARED} numbers beyond 2^53, some next to each other, where the items of a list must differ; "
                "send fewer, or write them as text"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        return self._validator.is_valid(instance)


def _share_a_float(numbers: list[int | float]) -> bool:
    known: dict[float, int | float] = {}
    return any(known.setdefault(_nearest(number), number) != number for number in numbers)


def _nearest(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _vast_numbers(value: object) -> Iterator[int | float]:
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, int | float):
            if not -EXACT <= found <= EXACT:
                yield found
        elif isinstance(found, Mapping | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            waiting.extend(found.values() if isinstance(found, Mapping) else found)
