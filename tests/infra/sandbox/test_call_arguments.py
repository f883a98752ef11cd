"""Arguments bind by the signature of a file's function and arrive as what its hints ask for."""

import json
import time

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.model.tool import Convention


@pytest.fixture(scope="module")
def sandbox():
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def run(sandbox, tmp_path, policy):
    async def run(code, arguments, convention=Convention.KEYWORDS, entry="main"):
        job = PythonFile(
            path=tmp_path / "sample.py",
            code=code.encode(),
            entry=entry,
            arguments=arguments,
            policy=policy,
            convention=convention,
        )
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
        return json.loads(ended.result)

    return run


@pytest.mark.parametrize(
    ("code", "arguments", "value"),
    [
        ("def main(): return 1", {}, 1),
        ("def main(a, b=2): return [a, b]", {"a": 1}, [1, 2]),
        ("def main(a, /, b, *, c=3): return [a, b, c]", {"b": 2, "a": 1}, [1, 2, 3]),
        ("def main(a=1, b=2, /): return [a, b]", {"b": 5}, [1, 5]),
        ("def main(*numbers): return sum(numbers)", {"numbers": [1, 2, 3]}, 6),
        ("def main(*numbers): return list(numbers)", {}, []),
        ("def main(first, second='b', *rest, last): return [first, second, rest, last]", {"first": "a", "rest": [1], "last": 9}, ["a", "b", [1], 9]),
        ("def main(a, **more): return [a, more]", {"a": 1, "b": 2}, [1, {"b": 2}]),
        ("class A:\n    def go(self, x, /): return x\nmain = A().go", {"x": 1}, 1),
        ("class A:\n    def __call__(self, x): return x\nmain = A()", {"x": 1}, 1),
        ("import functools\nmain = functools.partial(lambda a, b: a + b, 1)", {"b": 2}, 3),
        ("async def main(x): return x", {"x": 1}, 1),
        ("async def main(x):\n    for y in x: yield y", {"x": [1, 2]}, [1, 2]),
    ],
)  # fmt: skip
async def test_arguments_bind_by_the_signature(run, code, arguments, value):
    assert await run(code, arguments) == {"value": value}


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        ("def main(a): return a", {"a": 1, "b": 2, "c": 3}, "main does not take b, c; it takes a; add it to the function"),
        ("def main(a, *, b): return a", {"a": 1}, "main needs b, which the call does not give; give it a default"),
        ("def main(*a): return a", {"a": 1}, "a: 1 is not a list"),
        ("def main(a: int): return a", {"a": "1"}, "a: '1' is not an integer"),
        ("def main(a: list[dict[str, int]]): return a", {"a": [{"b": 1}, {"b": "x"}]}, "a[1].b: 'x' is not an integer"),
        ("from datetime import date\ndef main(day: date): ...", {"day": "2026-02-30"}, "day: day is out of range for month"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\ndef main(e: E): ...", {"e": 2}, "e: 2 is none of 1"),
        ("class Thing: ...\ndef main(thing: Thing): ...", {"thing": {}}, "thing: Thing cannot be made from JSON; use a plain type"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef main(p: P): ...", {"p": {"y": 1}}, "p: P has no field y; it has x"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    def __post_init__(self): raise ValueError('too far')\ndef main(p: P): ...", {"p": {"x": 1}}, "p: too far"),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_refused_with_its_place(run, code, arguments, message):
    error = (await run(code, arguments))["error"]
    assert error["message"].startswith(message)
    assert error["in_arguments"] is True


TYPES = """
from __future__ import annotations
import collections, dataclasses, datetime as dt, decimal, enum, pathlib, typing, uuid
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union
if TYPE_CHECKING:
    from fractions import Fraction
    from ipaddress import IPv4Address

class Unit(enum.Enum):
    CELSIUS = "c"
    KELVIN = "k"

class Level(enum.IntEnum):
    LOW = 1

class Planet(enum.Enum):
    EARTH = (1, 2)

@dataclasses.dataclass
class Point:
    x: int
    when: Optional[dt.date] = None
    next: Point | None = None

class Place(TypedDict):
    city: str
    since: NotRequired[dt.date]

class Pair(NamedTuple):
    left: uuid.UUID
    right: str = "r"

UserId = typing.NewType("UserId", int)
SHOWN = []
def main(x: HINT): return repr(x)
"""
UUID_TEXT = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("hint", "written", "shown"),
    [
        ("Unit", "k", "<Unit.KELVIN: 'k'>"),
        ("Level", 1, "<Level.LOW: 1>"),
        ("Planet", "EARTH", "<Planet.EARTH: (1, 2)>"),
        ("Literal['a', 2]", 2, "2"),
        ("dt.date", "2026-01-31", "datetime.date(2026, 1, 31)"),
        ("dt.datetime", "2026-01-31T10:00:00", "datetime.datetime(2026, 1, 31, 10, 0)"),
        ("dt.datetime", "2026-01-31T10:00:00Z", "datetime.datetime(2026, 1, 31, 10, 0, tzinfo=datetime.timezone.utc)"),
        ("dt.time", "10:30", "datetime.time(10, 30)"),
        ("dt.timedelta", 90, "datetime.timedelta(seconds=90)"),
        ("pathlib.Path", "a/b", "PosixPath('a/b')"),
        ("uuid.UUID", UUID_TEXT, f"UUID('{UUID_TEXT}')"),
        ("decimal.Decimal", "1.50", "Decimal('1.50')"),
        ("decimal.Decimal", 1.1, "Decimal('1.1')"),
        ("bytes", "aGk=", "b'hi'"),
        ("bytes | str", "abcd", "'abcd'"),
        ("int", 3.0, "3"),
        ("float", 3, "3"),
        ("UserId", 3, "3"),
        ("Annotated[dt.date, 'When.']", "2026-01-31", "datetime.date(2026, 1, 31)"),
        ("set[int]", [1, 2], "{1, 2}"),
        ("tuple[int, Unit]", [1, "c"], "(1, <Unit.CELSIUS: 'c'>)"),
        ("dict[int, Unit]", {"1": "c"}, "{1: <Unit.CELSIUS: 'c'>}"),
        ("collections.deque[int]", [1], "deque([1])"),
        ("Optional[list[Unit]]", ["c"], "[<Unit.CELSIUS: 'c'>]"),
        ("Optional[list[Unit]]", None, "None"),
        ("Union[dt.date, str]", "soon", "'soon'"),
        ("Point | Pair", {"left": UUID_TEXT}, f"Pair(left=UUID('{UUID_TEXT}'), right='r')"),
        ("Point", {"x": 1, "when": "2026-01-31", "next": {"x": 2}}, "Point(x=1, when=datetime.date(2026, 1, 31), next=Point(x=2, when=None, next=None))"),
        ("Place", {"city": "Ulm", "since": "2026-01-31"}, "{'city': 'Ulm', 'since': datetime.date(2026, 1, 31)}"),
        ("IPv4Address", "127.0.0.1", "IPv4Address('127.0.0.1')"),
        ("Nowhere", {"a": 1}, "{'a': 1}"),
    ],
)  # fmt: skip
async def test_an_argument_arrives_as_what_its_hint_asks_for(run, hint, written, shown):
    assert await run(TYPES.replace("HINT", hint), {"x": written}) == {"value": shown}


DECORATED = """
import enum, functools
class Unit(enum.Enum):
    KELVIN = "k"
def forgetful(function):
    def call(*words, **named): return function(*words, **named)
    return call
def polite(function):
    @functools.wraps(function)
    def call(*words, **named): return function(*words, **named)
    return call
@forgetful
@polite
def main(x: Unit, *, y: int = 1): return repr(x)
"""


async def test_a_decorator_does_not_hide_what_the_function_asks_for(run):
    assert await run(DECORATED, {"x": "k"}) == {"value": "<Unit.KELVIN: 'k'>"}
    assert "main does not take z" in (await run(DECORATED, {"x": "k", "z": 1}))["error"]["message"]


async def test_a_default_of_none_takes_null(run):
    code = "from datetime import date\ndef main(day: date = None, n: int = None): return [day, n]"
    assert await run(code, {"day": None, "n": None}) == {"value": [None, None]}


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("def execute(params): return params", {"a": "2026-01-31"}),
        ("def execute(params, timeout=30): return timeout", 30),
        ("def execute(params, *, project_path): return type(project_path).__name__", "str"),
        ("import dataclasses, datetime\n@dataclasses.dataclass\nclass P:\n    a: datetime.date\ndef execute(params: P): return params.a.year", 2026),
        ("import datetime\ndef execute(params: dict[str, datetime.date]): return params['a'].year", 2026),
    ],
)  # fmt: skip
async def test_params_arrive_as_their_hint_asks_for(run, code, value):
    assert await run(code, {"a": "2026-01-31"}, Convention.PARAMS, "execute") == {"value": value}


async def test_a_required_project_path_is_given(run, tmp_path):
    code = "def execute(url, project_path): return [url, project_path]"
    assert await run(code, {"url": "u"}, entry="execute") == {"value": ["u", str(tmp_path)]}


RESULTS = """
import collections, dataclasses, datetime as dt, decimal, enum, pathlib, types, typing, uuid
class Unit(enum.Enum):
    KELVIN = "k"
class Planet(enum.Enum):
    EARTH = (1, 2)
@dataclasses.dataclass
class Point:
    x: int
    size: float = dataclasses.field(init=False, default=1.5)
class Pair(typing.NamedTuple):
    left: int
    right: dt.date
class Thing:
    def __init__(self): self.name, self._secret, self.parts = "n", 1, {2, 1}
class Slotted:
    __slots__ = ("a", "_b")
    def __init__(self): self.a = 1
def main(): return RESULT
"""


@pytest.mark.parametrize(
    ("result", "written"),
    [
        ("[Unit.KELVIN, Planet.EARTH]", ["k", "EARTH"]),
        ("{Unit.KELVIN: 1, 2: 3, None: 4, dt.date(2026, 1, 31): 5}", {"k": 1, "2": 3, "null": 4, "2026-01-31": 5}),
        ("[decimal.Decimal('1E+3'), uuid.UUID(int=1)]", ["1000", "00000000-0000-0000-0000-000000000001"]),
        ("[dt.datetime(2026, 1, 31, 10), dt.timedelta(minutes=1), dt.time(10)]", ["2026-01-31T10:00:00", 60.0, "10:00:00"]),
        ("[b'hi', bytearray(b'hi'), memoryview(b'hi')]", ["aGk="] * 3),
        ("[pathlib.Path('a'), {3, 1, 2}, frozenset('ba'), range(3), (n * n for n in (1, 2))]", ["a", [1, 2, 3], ["a", "b"], [0, 1, 2], [1, 4]]),
        ("[Point(1), Pair(1, dt.date(2026, 1, 31))]", [{"x": 1, "size": 1.5}, {"left": 1, "right": "2026-01-31"}]),
        ("[Thing(), Slotted(), types.SimpleNamespace(a=1)]", [{"name": "n", "parts": [1, 2]}, {"a": 1}, {"a": 1}]),
        ("[collections.Counter('aab'), collections.deque([1]), map(str, [1]), {'a': 1}.items(), types.MappingProxyType({'a': 1})]", [{"a": 2, "b": 1}, [1], ["1"], [["a", 1]], {"a": 1}]),
    ],
)  # fmt: skip
async def test_a_result_is_written_as_the_table_says(run, result, written):
    assert await run(RESULTS.replace("RESULT", result), {}) == {"value": written}
