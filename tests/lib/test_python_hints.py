"""A hint in a file means what the same hint means for a function of the host."""

from __future__ import annotations

import ast
import sys
import types

import pytest

from toolcrib.features.functions.hints import HintReader
from toolcrib.lib.python_hints import SyntaxHints
from toolcrib.lib.schema import check_schema, compile_schema
from toolcrib.lib.schema_problems import explain_problems

MODULE = '''
import collections
import dataclasses
import datetime
import datetime as dt
import decimal
import enum
import ipaddress
import os
import pathlib
import typing as t
import uuid
from collections import Counter, OrderedDict, deque, namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import *
from typing import Annotated, ClassVar, Literal, NamedTuple, NewType, NotRequired, Optional, Required, TypedDict, TypeVar, Union
from uuid import UUID

from annotated_types import Ge, MaxLen
from pydantic import Field

class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"
    ROUGE = "red"

class Level(enum.IntEnum):
    LOW = 1
    HIGH = enum.auto()

class Word(str, enum.Enum):
    A = "a"

class Lower(enum.StrEnum):
    ONE_TWO = enum.auto()

class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()

class Planet(enum.Enum):
    EARTH = (1.0, 2.0)
    MARS = (3.0, 4.0)
    def __init__(self, mass, radius): self.mass = mass

class Computed(enum.Enum):
    A = len("abc")
    B = frozenset()

Made = enum.Enum("Made", "ONE TWO")

@dataclass
class Point:
    """A point.

    Attributes:
        x: To the right.
    """

    x: int
    y: int = field(default=0, metadata={"description": "Upwards."})
    tags: list[str] = field(default_factory=list)
    count: ClassVar[int] = 3
    size: float = field(init=False, default=1.0)
    _: KW_ONLY
    colour: Colour = Colour.RED

@dataclass
class Point3(Point):
    z: "int | None" = None

@dataclass
class Node:
    value: Colour
    children: list["Node"] = field(default_factory=list)

class Place(TypedDict):
    city: str
    since: NotRequired[dt.date]

class Half(TypedDict, total=False):
    a: Required[int]
    b: str

class Both(Place, Half, TypedDict):
    c: list[Half]

class Pair(NamedTuple):
    left: int
    right: str = "r"

Old = namedtuple("Old", "a b", defaults=(1,))
Loose = TypedDict("Loose", {"a": int, "b-c": NotRequired[str]})
UserId = NewType("UserId", int)
Bounded = TypeVar("Bounded", bound=str)
Alias = dict[str, list[Point]]
'''
HINTS = [
    *("str", "int", "float", "bool", "None", "Any", "object", "list", "dict", "tuple", "set", "t.Any"),
    *("list[str]", "t.List[int]", "Sequence[int]", "Iterable[str]", "Iterator[int]", "deque[int]", "tuple[int, str]"),
    *("tuple[int, ...]", "set[int]", "frozenset[str]", "dict[str, int]", "Mapping[str, Any]"),
    *("dict[int, str]", "Counter[str]", "OrderedDict[str, int]", "dict[Colour, int]", "dict[UUID, Path]"),
    *("Optional[int]", "Union[int, str, None]", "int | str | None", "list[int] | None", "Literal['a', 1, True, None]"),
    *("Literal[Colour.RED]", "Colour", "Level", "Word", "Lower", "Bits", "Planet", "Made"),
    *("Point", "Point3", "Node", "list[Node]", "Place", "Half", "Both", "Pair", "Old", "Loose", "Alias"),
    *("UserId", "Bounded", "Annotated[int, 'How many.']", "Annotated[int, Ge(1), Field(le=9, description='A number.')]"),
    *("Annotated[str, MaxLen(9)]", "Annotated[list[int], Field(min_length=1)]", "Annotated[Path, 'Where.']"),
    *("datetime.datetime", "dt.date", "dt.time", "dt.timedelta", "UUID", "Decimal", "decimal.Decimal", "bytes"),
    *("Path", "pathlib.PurePosixPath", "os.PathLike[str]", "ipaddress.IPv4Address", "dt.date | str", "list[Point | Pair]"),
]  # fmt: skip


@pytest.fixture(scope="module")
def module():
    made = types.ModuleType("module_of_hints")
    sys.modules[made.__name__] = made  # where the hints of its classes are looked up
    exec(MODULE, made.__dict__)
    yield made
    del sys.modules[made.__name__]


@pytest.mark.parametrize("is_result", [False, True], ids=["argument", "result"])
@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_has_the_same_schema_in_a_file_and_in_the_host(module, hint, is_result):
    host = HintReader("serialization" if is_result else "validation")
    file = SyntaxHints(ast.parse(MODULE))
    file.of_results = is_result
    shape = host.read(eval(hint, module.__dict__))
    schema = file.read(ast.parse(hint, mode="eval").body)
    assert (schema, file.definitions, file.warnings) == (shape.schema, host.definitions, [])
    check_schema({**schema, "$defs": file.definitions}, "hint")
    assert file.converts or shape.plain


def test_members_whose_values_only_running_code_knows_are_offered_by_name(module):
    file = SyntaxHints(ast.parse(MODULE))
    assert file.read(ast.Name("Computed")) == {"type": "string", "enum": ["A", "B"]}


def test_a_pydantic_model_is_read_from_its_fields():
    text = '''
from datetime import timedelta
from typing import ClassVar, Optional
from pydantic import BaseModel, Field, PositiveInt

class Base(BaseModel):
    """A base.

    Attributes:
        name: Its name.
    """
    name: str
    _private: int = 1
    kinds: ClassVar[list] = []

class Order(Base):
    count: PositiveInt = Field(1, description="How many.")
    price: float = Field(..., gt=0, alias="unitPrice")
    note: Optional[str] = None
    wait: timedelta = Field(default_factory=timedelta)
    parts: list["Order"] = []
'''
    file = SyntaxHints(ast.parse(text))
    assert file.read(ast.Name("Order")) == {"$ref": "#/$defs/Order"}
    assert file.definitions["Order"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer", "exclusiveMinimum": 0, "description": "How many.", "default": 1},
            "unitPrice": {"type": "number", "exclusiveMinimum": 0},
            "note": {"type": ["string", "null"], "default": None},
            "wait": {"type": ["number", "string"]},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Order"}, "default": []},
        },
        "required": ["name", "unitPrice"],
    }


def test_imports_for_type_checkers_and_of_what_may_be_missing_are_known():
    text = (
        "if TYPE_CHECKING:\n    from datetime import date\ntry:\n    from uuid import UUID\nexcept ImportError: ...\n"
    )
    file = SyntaxHints(ast.parse(text))
    assert file.read(ast.parse("dict[UUID, date]", mode="eval").body)["additionalProperties"]["format"] == "date"
    assert file.warnings == []


def test_a_name_of_another_module_is_not_taken_for_one_of_pythons():
    file = SyntaxHints(ast.parse("from .types import List\nfrom mine import Path, Optional"))
    for hint in ("List[int]", "Path", "Optional[int]"):
        assert file.read(ast.parse(hint, mode="eval").body) == {}
    assert len(file.warnings) == 3


def test_a_key_that_is_no_number_is_named_in_the_refusal():
    schema = SyntaxHints(ast.parse("")).read(ast.parse("dict[int, str]", mode="eval").body)
    assert explain_problems(compile_schema(schema), {"first": "a"}, schema) == [
        "first: the name is not one that is allowed"
    ]
