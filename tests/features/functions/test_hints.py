from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.functions.hints import HintReader, UnsupportedHintError
from toolcrib.features.functions.values import NotJSON, as_default, write_answer
from toolcrib.lib.python_declarations import CLASSES
from toolcrib.lib.schema import check_schema, compile_schema
from toolcrib.model.result import Outcome
from toolcrib.values import to_json

UserId = NewType("UserId", int)
Bounded = TypeVar("Bounded", bound=str)
Free = TypeVar("Free")


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    A = (1, 2)
    B = (3, 4)


@dataclass
class Point:
    """A point.

    Attributes:
        x: To the right.
    """

    x: int
    y: int = field(default=0, metadata={"description": "Upwards."})


@dataclass
class Node:
    value: Colour
    children: list[Node] = field(default_factory=list)


class Place(TypedDict):
    city: str
    since: NotRequired[dt.date]


class Half(TypedDict, total=False):
    a: Required[int]
    b: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Order(pydantic.BaseModel):
    """An order."""

    day: dt.date
    count: int = pydantic.Field(default=1, ge=1, description="How many.")
    next: Order | None = None


class Strange:
    pass


def read(hint: object) -> tuple[dict[str, object], Any]:
    reader = HintReader()
    shape = reader.read(hint)
    schema = {**shape.schema, "$defs": reader.definitions} if reader.definitions else shape.schema
    check_schema(schema, "hint")
    return schema, shape


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "To the right."},
        "y": {"type": "integer", "description": "Upwards.", "default": 0},
    },
    "required": ["x"],
    "additionalProperties": False,
}

PLAIN_HINTS = [
    (str, STRING),
    (int, INTEGER),
    (float, NUMBER),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (Outcome, {}),
    (list, {"type": "array"}),
    (list[str], {"type": "array", "items": STRING}),
    (Sequence[int], {"type": "array", "items": INTEGER}),
    (Iterable[int], {"type": "array", "items": INTEGER}),
    (dict, {"type": "object"}),
    (dict[str, Any], {"type": "object"}),
    (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
    (dict[Literal["a"], int], {"type": "object", "propertyNames": {"type": "string", "enum": ["a"]}, "additionalProperties": INTEGER}),
    (Optional[int], {"type": ["integer", "null"]}),  # noqa: UP045 - both spellings are read
    (Union[int, str, None], {"type": ["integer", "string", "null"]}),  # noqa: UP007 - both spellings are read
    (int | str, {"type": ["integer", "string"]}),
    (int | Any, {}),
    (list[int] | None, {"anyOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1, True], {"enum": ["a", 1, True]}),
    (UserId, INTEGER),
    (Bounded, STRING),
    (Free, {}),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    (Annotated[str, pydantic.Field(description="A word.", min_length=1, max_length=9, pattern="^a")], {"type": "string", "description": "A word.", "minLength": 1, "maxLength": 9, "pattern": "^a"}),
    (Annotated[int, pydantic.Field(ge=1, lt=9, multiple_of=2)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2}),
    (Annotated[list[int], pydantic.Field(min_length=1)], {"type": "array", "items": INTEGER, "minItems": 1}),
    (Half, {"type": "object", "properties": {"a": INTEGER, "b": STRING}, "required": ["a"], "additionalProperties": False}),
]  # fmt: skip

# hint, schema, JSON, object
OBJECT_HINTS = [
    (Colour, {"type": "string", "enum": ["red", "green"]}, "red", Colour.RED),
    (Level, {"type": "integer", "enum": [1, 2], "description": "1: LOW, 2: HIGH"}, 2, Level.HIGH),
    (Odd, {"type": "string", "enum": ["A", "B"]}, "B", Odd.B),
    (Literal[Colour.RED], {"type": "string", "enum": ["red"]}, "red", Colour.RED),
    (Point, POINT, {"x": 1, "y": 2}, Point(1, 2)),
    (list[Point], {"type": "array", "items": POINT}, [{"x": 1, "y": 2}], [Point(1, 2)]),
    (Point | None, {"anyOf": [POINT, {"type": "null"}]}, {"x": 1, "y": 0}, Point(1)),
    (dict[str, Point], {"type": "object", "additionalProperties": POINT}, {"a": {"x": 1, "y": 0}}, {"a": Point(1)}),
    (dict[Colour, int], {"type": "object", "propertyNames": {"type": "string", "enum": ["red", "green"]}, "additionalProperties": INTEGER}, {"red": 1}, {Colour.RED: 1}),
    (dict[int, str], {"type": "object", "propertyNames": {"pattern": "^-?\\d+$"}, "additionalProperties": STRING}, {"-1": "a"}, {-1: "a"}),
    (collections.Counter[str], {"type": "object", "additionalProperties": INTEGER}, {"a": 2}, collections.Counter(a=2)),
    (Place, None, {"city": "Ulm", "since": "2026-01-31"}, {"city": "Ulm", "since": dt.date(2026, 1, 31)}),
    (Pair, {"type": "object", "properties": {"left": INTEGER, "right": {"type": "string", "default": "r"}}, "required": ["left"], "additionalProperties": False}, {"left": 1, "right": "x"}, Pair(1, "x")),
    (dt.datetime, CLASSES["datetime.datetime"], "2026-01-31T10:00:00", dt.datetime(2026, 1, 31, 10)),
    (dt.datetime, CLASSES["datetime.datetime"], "2026-01-31T10:00:00+01:00", dt.datetime(2026, 1, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    (dt.date, {"type": "string", "format": "date"}, "2026-01-31", dt.date(2026, 1, 31)),
    (dt.time, None, "10:30:00", dt.time(10, 30)),
    (dt.timedelta, {"type": "number", "description": "seconds"}, 90.5, dt.timedelta(seconds=90.5)),
    (UUID, CLASSES["uuid.UUID"], "3f2504e0-4f89-41d3-9a0c-0305e82c3301", UUID("3f2504e0-4f89-41d3-9a0c-0305e82c3301")),
    (Decimal, None, "1.50", Decimal("1.50")),
    (Path, STRING, "a/b", Path("a/b")),
    (PurePosixPath, STRING, "a/b", PurePosixPath("a/b")),
    (bytes, {"type": "string", "contentEncoding": "base64"}, "aGk=", b"hi"),
    (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [1, 2], {1, 2}),
    (frozenset[str], {"type": "array", "items": STRING, "uniqueItems": True}, ["a"], frozenset({"a"})),
    (collections.deque[int], {"type": "array", "items": INTEGER}, [1], collections.deque([1])),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [1, 2], (1, 2)),
    (tuple[int, Colour], {"type": "array", "prefixItems": [INTEGER, {"type": "string", "enum": ["red", "green"]}], "minItems": 2, "items": False}, [1, "red"], (1, Colour.RED)),
    (Literal[b"x"], {"type": "string", "enum": ["eA=="]}, "eA==", b"x"),
    (Annotated[Path, "Where."], {"type": "string", "description": "Where."}, "a", Path("a")),
    (dt.date | str, {"anyOf": [{"type": "string", "format": "date"}, STRING]}, "2026-01-31", dt.date(2026, 1, 31)),
    (dt.date | str, None, "soon", "soon"),
    (Point | Pair, None, {"left": 3, "right": "x"}, Pair(3, "x")),
    (Node, None, {"value": "red", "children": [{"value": "green", "children": []}]}, Node(Colour.RED, [Node(Colour.GREEN)])),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "schema"), PLAIN_HINTS)
def test_a_hint_of_plain_json_needs_no_conversion(hint, schema):
    found, shape = read(hint)
    assert found == schema
    assert shape.revive is None
    assert shape.plain


@pytest.mark.parametrize(("hint", "schema", "written", "wanted"), OBJECT_HINTS)
def test_a_hint_of_a_class_is_made_of_its_json_and_written_back(hint, schema, written, wanted):
    found, shape = read(hint)
    assert schema is None or found == schema
    assert compile_schema(found).is_valid(written)
    revived = shape.revive(written)
    assert revived == wanted
    assert type(revived) is type(wanted)
    assert not shape.plain
    assert to_json(revived) == written


def test_a_class_that_contains_itself_is_defined_once():
    schema, _ = read(list[Node])
    assert schema["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["children"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}


def test_two_classes_of_one_name_get_two_definitions():
    first, second = (
        Node,
        dataclasses.make_dataclass("Node", [("own", "list[Node]")], namespace={"__module__": __name__}),
    )
    second.__annotations__["own"] = list[second]
    schema, shape = read(tuple[first, second])
    assert set(schema["$defs"]) == {"Node", "Node2"}
    assert shape.revive([{"value": "red"}, {"own": [{"own": []}]}]) == (Node(Colour.RED), second([second([])]))


def test_a_pydantic_model_checks_and_writes_itself():
    schema, shape = read(dict[str, Order])
    written = {"a": {"day": "2026-01-31", "count": 2, "next": {"day": "2026-02-01", "count": 1, "next": None}}}
    assert compile_schema(schema).is_valid(written)
    assert not compile_schema(schema).is_valid({"a": {"day": "2026-01-31", "count": 0}})
    revived = shape.revive(written)
    assert revived["a"].next == Order(day=dt.date(2026, 2, 1))
    assert to_json(revived) == written


def test_two_pydantic_models_of_one_name_do_not_mix():
    other = pydantic.create_model("Order", inner=(Level, ...))
    schema, _ = read(tuple[Order, other])
    assert compile_schema(schema).is_valid([{"day": "2026-01-31"}, {"inner": 1}])
    assert not compile_schema(schema).is_valid([{"day": "2026-01-31"}, {"inner": 3}])


def test_pydantic_is_never_imported_by_us(monkeypatch):
    monkeypatch.delitem(sys.modules, "pydantic")
    with pytest.raises(UnsupportedHintError, match="cannot be written as JSON"):
        HintReader().read(Order)
    assert "pydantic" not in sys.modules


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Strange, "Strange cannot be written as JSON; use a plain type"),
        (list[Strange], "Strange cannot be written as JSON"),
        (Callable[[int], int], "cannot be written as JSON"),
        (complex, "complex cannot be written as JSON"),
        (type, "type cannot be written as JSON"),
        (dict[bool, str], "the keys of a JSON object are text; use dict"),
    ],
)
def test_a_hint_without_json_is_refused_with_the_cure(hint, words):
    with pytest.raises(UnsupportedHintError, match=words):
        HintReader().read(hint)


def test_a_ladder_of_classes_is_refused():
    kind: type = int
    for number in range(12):
        kind = dataclasses.make_dataclass(f"C{number}", [("a", kind), ("b", kind), ("c", kind)])
    with pytest.raises(UnsupportedHintError, match="unfolds to more than 2,000 types"):
        HintReader().read(kind)


def test_a_field_with_an_undefined_hint_is_named():
    kind = dataclasses.make_dataclass("Broken", [("x", "Nowhere")])
    with pytest.raises(UnsupportedHintError, match="Broken: name 'Nowhere' is not defined"):
        HintReader().read(kind)


def test_typed_dicts_know_their_marks_behind_postponed_annotations():
    schema, _ = read(Place)
    assert schema["required"] == ["city"]


def test_a_generator_and_an_outcome_are_written():
    assert to_json(Path(name) for name in "ab") == ["a", "b"]
    assert write_answer(Outcome(value=[Colour.RED])) == Outcome(value=["red"])


def test_an_answer_without_json_is_refused_with_its_place():
    with pytest.raises(
        ToolError, match=r"no JSON form: a\[1\]: a Strange has no JSON form; return plain values"
    ) as caught:
        write_answer({"a": [1, Strange()]})
    assert caught.value.kind is Kind.OUTPUT_INVALID


def test_a_large_decimal_is_written_without_an_exponent():
    assert to_json(Decimal("1E+3")) == "1000"


def test_a_set_is_written_in_one_order():
    assert to_json({"b", "a", "c"}) == ["a", "b", "c"]


@pytest.mark.parametrize("default", [Strange(), float("nan"), "\ud800", 2**80, [Strange()]])
def test_a_default_that_a_schema_cannot_hold_is_left_to_python(default):
    assert as_default(default) is NotJSON


TIMES = st.datetimes(timezones=st.just(dt.UTC)).map(lambda time: time.isoformat())
LEAVES: list[tuple[object, st.SearchStrategy[object]]] = [
    (str, st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    (int, st.integers(-(2**60), 2**60)),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (type(None), st.none()),
    (Literal["a", 2], st.sampled_from(["a", 2])),
    (Colour, st.sampled_from(["red", "green"])),
    (Level, st.sampled_from([1, 2])),
    (dt.datetime, TIMES),
    (dt.date, st.dates().map(dt.date.isoformat)),
    (UUID, st.uuids().map(str)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str)),
    (bytes, st.binary(max_size=5).map(to_json)),
    (Point, st.fixed_dictionaries({"x": st.integers(-9, 9), "y": st.integers(-9, 9)})),
    (Pair, st.fixed_dictionaries({"left": st.integers(-9, 9), "right": st.text("ab", max_size=3)})),
    (Place, st.fixed_dictionaries({"city": st.text("ab", max_size=3)}, optional={"since": st.dates().map(dt.date.isoformat)})),
]  # fmt: skip


def _wrap(hinted):
    hint, written = hinted
    return st.sampled_from(
        [
            (list[hint], st.lists(written, max_size=3)),
            (dict[str, hint], st.dictionaries(st.text("ab", max_size=2), written, max_size=3)),
            (tuple[hint, int], st.tuples(written, st.integers(0, 5)).map(list)),
            (tuple[hint, ...], st.lists(written, max_size=3)),
            (Optional[hint], st.none() | written),  # noqa: UP045 - `hint | None` fails for a Literal inside of a list
            (Annotated[hint, "text"], written),
        ]
    )


HINTS = st.recursive(st.sampled_from(LEAVES), lambda inner: inner.flatmap(_wrap), max_leaves=4)


@given(HINTS.flatmap(lambda hinted: st.tuples(st.just(hinted[0]), hinted[1])))
@settings(max_examples=examples(300))
def test_the_json_of_any_hint_is_accepted_revived_and_written_back_the_same(case):
    hint, written = case
    schema, shape = read(hint)
    assert compile_schema(schema).is_valid(written)
    revived = written if shape.revive is None else shape.revive(written)
    assert to_json(revived) == written
    if shape.plain:
        assert shape.revive is None


def test_iterators_can_be_asked_for_and_given():
    schema, shape = read(Iterator[dt.date])
    assert schema == {"type": "array", "items": {"type": "string", "format": "date"}}
    assert list(shape.revive(["2026-01-31"])) == [dt.date(2026, 1, 31)]


def test_every_alias_of_typing_means_what_it_stands_for():
    assert read(typing.List[int])[0] == {"type": "array", "items": INTEGER}  # noqa: UP006 - the old spelling is read too
    assert read(typing.Dict[str, int])[0] == {"type": "object", "additionalProperties": INTEGER}  # noqa: UP006
    assert read(typing.Tuple[int, ...])[0] == {"type": "array", "items": INTEGER}  # noqa: UP006
