"""Every row of the page about types holds, for functions of the host; files use the same conversion."""

from __future__ import annotations

import ast
import json
import re
import sys
import types
from pathlib import Path

import pytest

from toolcrib.features.functions.hints import HintReader
from toolcrib.lib.python_hints import SyntaxHints
from toolcrib.lib.schema import compile_schema
from toolcrib.values import ConversionError, to_json

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
CODE = re.compile(r"`([^`]*)`")


MODULE = """
import collections
import dataclasses
import datetime as dt
import enum
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import pydantic

class Colour(enum.Enum):
    RED = "red"


class Planet(enum.Enum):
    EARTH = (1, 2)


@dataclasses.dataclass
class Point:
    x: int
    when: dt.date | None = None


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Place(TypedDict):
    city: str
    since: NotRequired[dt.date]


class Order(pydantic.BaseModel):
    day: dt.date
    count: int = 1
"""


@pytest.fixture(scope="module")
def names():
    made = types.ModuleType("module_of_types")
    sys.modules[made.__name__] = made  # where the hints of its classes are looked up
    exec(MODULE, made.__dict__)
    yield made.__dict__
    del sys.modules[made.__name__]


def rows(heading: str, column: str, end: str = "## Values of other packages") -> list[list[str]]:
    """The cells of the tables whose first row begins and ends so."""
    found, is_wanted = [], False
    for line in PAGE.read_text("utf-8").partition(end)[0].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.replace("\\|", "\x00"))][1:-1]
        if not cells:
            is_wanted = False
        elif cells[0] == heading and cells[-1] == column:
            is_wanted = True
        elif is_wanted and not set(line) <= set("|-"):
            found.append([CODE.search(cell)[1].replace("\x00", "|") for cell in cells])  # type: ignore[index]
    assert found
    return found


@pytest.mark.parametrize(("hint", "written", "shown"), rows("Hint", "arrives as"))
def test_an_argument_arrives_as_the_page_says(names, hint, written, shown):
    reader = HintReader()
    shape = reader.read(eval(hint, names))
    value = json.loads(written)
    assert compile_schema({**shape.schema, "$defs": reader.definitions}).is_valid(value)
    assert repr(value if shape.revive is None else shape.revive(value)) == shown


@pytest.mark.parametrize(("hint", "written", "shown"), rows("Hint", "arrives as"))
def test_a_file_takes_the_same_json(hint, written, shown):
    reader = SyntaxHints(ast.parse(MODULE))
    schema = reader.read(ast.parse(hint, mode="eval").body)
    assert reader.warnings == []
    assert compile_schema(schema).is_valid(json.loads(written))


@pytest.mark.parametrize(("returned", "written"), rows("Returned", "JSON"))
def test_a_result_is_written_as_the_page_says(names, returned, written):
    assert to_json(eval(returned, names)) == json.loads(written)


@pytest.mark.parametrize(("returned", "message"), rows("Returned", "Error"))
def test_what_has_no_json_form_fails_as_the_page_says(names, returned, message):
    with pytest.raises(ConversionError) as caught:
        to_json(eval(returned, names))
    assert str(caught.value).startswith(message)
