"""The value of a result as an object of a type, and what is said where it has another shape."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import NamedTuple, TypedDict

import pydantic
import pytest

from toolcrib import Crib, Kind, Result, ToolError, tool


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date | None = None


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Place(TypedDict):
    city: str


class Colour(enum.Enum):
    RED = "red"


class Order(pydantic.BaseModel):
    count: int
    places: list[str] = []


def test_a_value_is_made_into_an_object_of_the_type():
    assert Result(value={"x": 1, "when": "2026-01-02"}).value_as(Point) == Point(1, dt.date(2026, 1, 2))
    assert Result(value=[{"x": 1}, {"x": 2}]).value_as(list[Point]) == [Point(1), Point(2)]
    assert Result(value={"a": [1, 2]}).value_as(dict[str, tuple[int, int]]) == {"a": (1, 2)}
    assert Result(value={"left": 1}).value_as(Pair) == Pair(1)
    assert Result(value={"city": "Oslo"}).value_as(Place)["city"] == "Oslo"
    assert Result(value="red").value_as(Colour) is Colour.RED
    assert Result(value={"count": 2, "places": ["Oslo"]}).value_as(Order).places == ["Oslo"]
    assert Result(value=None).value_as(str | None) is None
    assert Result(value=5).value_as(int) + 1 == 6


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("5", int, "the value is not of the type int: '5' is not an integer"),
        (True, int, "is not an integer"),
        ({"x": "1"}, Point, "the value is not of the type Point: x: '1' is not an integer"),
        ({"x": 1, "y": 2}, Point, "Point has no field y; it has x, when"),
        ([{"x": 1}, {"x": None}], list[Point], r"list\[.*Point\]: \[1\].x: None is not an integer"),
        ([1, "a"], list[int], r"\[1\]: 'a' is not an integer"),
        (1, dict[str, int], "1 is not an object"),
        ({}, Place, "city is missing"),
        ("blue", Colour, "blue"),
        ({"count": "many"}, Order, "count"),
        ({"x": 1, "when": "soon"}, Point, "when: "),
        (None, Point, "None is not an object"),
        ("a" * 10_000, int, "is not an integer"),
    ],
)
def test_a_value_of_another_shape_is_refused_with_the_path(value, kind, message):
    with pytest.raises(ToolError, match=message) as raised:
        Result(value=value).value_as(kind)
    assert raised.value.kind is Kind.OUTPUT_INVALID
    assert len(raised.value.message) < 2_000


def test_a_failed_call_has_no_value_of_any_type():
    with pytest.raises(ToolError, match="too late"):
        Result(value=1, error=ToolError(Kind.TIMEOUT, "too late")).value_as(int)


def test_a_type_that_nothing_can_be_made_into_is_a_mistake_of_the_program():
    with pytest.raises(TypeError, match=r"value_as\(function\): .* use a plain type, a dataclass"):
        Result(value=1).value_as(type(lambda: 1))


async def test_the_value_of_a_call_is_typed():
    @tool
    def forecast(city: str) -> Point:
        """Tell the weather."""
        return Point(len(city), dt.date(2026, 1, 2))

    async with Crib(tools=[forecast]) as crib:
        point = (await crib.call("forecast", city="Oslo")).value_as(Point)
    assert point == Point(4, dt.date(2026, 1, 2))
