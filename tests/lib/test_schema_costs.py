"""Schemas and values that would keep a check busy for seconds are refused, and their ordinary likes are not."""

from __future__ import annotations

import pytest

from toolcrib import Kind, ToolError
from toolcrib.lib.schema import check_schema, compile_schema

OBJECTS = [{"a": number} for number in range(1500)]
FLOATS = [number + 0.5 for number in range(1500)]


def each(items: dict) -> dict:
    return {"type": "array", "items": items}


@pytest.mark.parametrize(
    "items",
    [
        {"enum": OBJECTS},
        {"enum": [[number] for number in range(1500)]},
        {"enum": FLOATS},
        {"enum": [*range(1500), None]},
        {"anyOf": [{"const": choice} for choice in OBJECTS]},
        {"anyOf": [{"const": choice} for choice in FLOATS]},
        {"anyOf": [{"enum": OBJECTS[:50]}, {"enum": OBJECTS[50:110]}]},
        {"dependentRequired": {f"k{number}": ["b"] for number in range(2500)}},
    ],
)
def test_a_schema_that_compares_every_item_with_many_values_is_refused(items):
    with pytest.raises(ToolError, match="compares every value with too many others; write an enum of strings"):
        check_schema(each(items), "schema")


@pytest.mark.parametrize(
    "items",
    [
        {"enum": OBJECTS[:90]},
        {"enum": FLOATS[:45]},
        {"enum": [*range(1900, 2030), None]},
        {"enum": list(range(5000))},
        {"enum": [f"s{number}" for number in range(4000)]},
        {"enum": [*(f"s{number}" for number in range(1500)), None]},
        {"anyOf": [{"const": f"s{number}"} for number in range(1500)]},
    ],
)
def test_what_is_looked_up_or_short_is_let_in(items):
    check_schema(each(items), "schema")


@pytest.mark.parametrize(
    "values",
    [
        [2**63 + number for number in range(60_000)],
        [[2**60 + number] for number in range(60_000)],
        [{"a": [2**60 + left, 2**60 + right]} for left in range(100) for right in range(100)],
        [-(2**62) - number for number in range(60_000)],
        [float(2**60), *(2**60 + number for number in range(1, 1000))],
    ],
)
def test_unique_numbers_that_the_engine_cannot_tell_apart_quickly_are_refused(values):
    schema = {"type": "object", "properties": {"ids": {"type": "array", "uniqueItems": True}}}
    check_schema(schema, "schema")
    validator = compile_schema(schema)
    with pytest.raises(ToolError) as caught:
        validator.is_valid({"ids": values})
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert "write them as text" in caught.value.message


def test_other_unique_items_are_told_apart_however_many_they_are():
    schema = {"type": "array", "uniqueItems": True}
    validator = compile_schema(schema)
    for values in [
        [[number] for number in range(60_000)],
        [{"a": number} for number in range(60_000)],
        [2**62 + number * 4096 for number in range(60_000)],
        [2**60 + number for number in range(199)],
        [str(2**60 + number) for number in range(60_000)],
    ]:
        assert validator.is_valid(values)
        assert not validator.is_valid([*values, values[0]])
