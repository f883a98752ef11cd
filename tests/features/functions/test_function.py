from __future__ import annotations

import datetime as dt
import functools
import inspect
import math
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

import pytest

from toolcrib import Context, Cost, Crib, Kind, Limits, RetryPolicy, ToolError, tool, tool_of
from toolcrib.features.functions.decorators import is_tool
from toolcrib.lib.schema import check_parameters, compile_schema
from toolcrib.model.tool import Function

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


class Extra(TypedDict, total=False):
    unit: Literal["c", "f"]


@dataclass
class Tree:
    leaf: int
    next: Tree | None = None
    last: Tree = None  # type: ignore[assignment] # hosts write such


@dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            message = f"{self.number} is not positive"
            raise ValueError(message)


def forecast(city: str, days: Annotated[int, "How many days."] = 3, *, verbose: bool = False) -> dict[str, float]:
    """Look up the
    weather.

    It asks a station nearby.

    Args:
        city: The city.
        days: Not this text.
    """
    return {city: float(days)}


def run_of(function: object) -> Function:
    run = tool_of(function).run
    assert isinstance(run, Function)
    return run


def refusal(function: object) -> str:
    with pytest.raises(ToolError) as caught:
        tool_of(function)
    assert caught.value.kind is Kind.VALIDATION
    return caught.value.message


def test_a_plain_function_is_a_tool_by_its_signature_and_docstring():
    made = tool_of(forecast)
    assert made.name == "forecast"
    assert made.version == "1.0.0"
    assert made.bundle == "host"
    assert made.description == "Look up the weather."
    assert made.documentation == "It asks a station nearby."
    assert made.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "description": "How many days.", "default": 3},
            "verbose": {"type": "boolean", "default": False},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert made.output_schema == {"type": "object", "additionalProperties": {"type": "number"}}
    assert made.warnings == ()
    assert made.origin is not None
    assert made.origin.place == __file__
    assert made.origin.line == inspect.getsourcelines(forecast)[1]
    assert made.run == Function(call=forecast, is_async=False)


def test_a_decorated_function_stays_the_function_it_was():
    decorated = tool(forecast)
    try:
        assert decorated is forecast
        assert is_tool(decorated)
        assert decorated("Ulm", 2) == {"Ulm": 2.0}
    finally:
        del forecast.__toolcrib__  # type: ignore[attr-defined]
    assert not is_tool(forecast)
    assert not is_tool(Positive)
    assert not is_tool("text")


def test_everything_that_can_be_declared_is_declared():
    @tool(
        name="send-mail",
        description="Send it.",
        version="2.1.0",
        bundle="mail",
        timeout=1.5,
        idempotent=True,
        side_effects="writes",
        requires=["net.smtp"],
        confirm=True,
        modes=["text"],
        tags=["mail"],
        latency_budget_ms=200,
        calls_per_minute=6,
        retry=RetryPolicy(max_attempts=2),
        cost=Cost(per_invocation=0.01),
    )
    def send(to: str) -> None:
        """Not this text."""

    made = tool_of(send)
    assert (made.name, made.description, made.version, made.bundle) == ("send-mail", "Send it.", "2.1.0", "mail")
    assert made.side_effects == "writes"
    assert made.idempotent
    assert made.requires_confirmation
    assert made.requires == {"net.smtp"}
    assert made.modes == {"text"}
    assert made.tags == ("mail",)
    assert made.limits == Limits(
        timeout_ms=1500, latency_budget_ms=200, calls_per_minute=6, retry=RetryPolicy(max_attempts=2)
    )
    assert made.cost == Cost(per_invocation=0.01)
    assert made.output_schema == {"type": "null"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modes": ["sms"]}, "write one or more of text, voice"),
        ({"modes": []}, "write one or more of text, voice"),
        ({"modes": "text"}, r"modes is a list of words; write \['text'\]"),
        ({"requires": "fs.read"}, r"requires is a list of words; write \['fs.read'\]"),
        ({"side_effects": "some"}, "'some' is not a valid SideEffects"),
        ({"timeout": 0}, "timeout_ms must be greater than 0"),
        ({"timeout": math.inf}, "cannot convert float infinity"),
        ({"timeout": math.nan}, "cannot convert float NaN"),
        ({"calls_per_minute": -1}, "calls_per_minute must be greater than 0"),
        ({"cost": "cheap"}, r"@tool\(cost='cheap'\): write the price of one call in USD, such as 0.01, or Cost\("),
        ({"cost": {"per_call": 1}}, r"write the price of one call in USD"),
        ({"cost": -1}, "cost must be numbers that are not negative"),
        ({"cost": math.nan}, "cost must be numbers that are not negative"),
        ({"retry": 3}, r"@tool\(retry=3\): write RetryPolicy\(max_attempts=3\)"),
        ({"confirm": "no"}, r"@tool\(confirm='no'\): write True or False"),
        ({"timeout": "soon"}, r"@tool\(timeout='soon'\): write seconds, such as 30"),
        ({"calls_per_minute": True}, r"@tool\(calls_per_minute=True\): write a whole number"),
        ({"tags": [1]}, r"@tool\(tags=\[1\]\): write a list of words"),
        ({"name": "no spaces please"}, "use 1 to 64 letters"),
        ({"version": "1 0"}, "version '1 0'"),
        ({"parameters": {"type": "array"}}, 'must say "type": "object"'),
        ({"parameters": {"type": "object", "properties": {"a": {"type": "int"}}}}, "#/properties/a/type"),
        ({"output_schema": {"$ref": "http://x"}}, "is not local"),
    ],
)
def test_a_wrong_declaration_is_refused_with_function_file_and_cure(options, words):
    @tool(**options)
    def sample() -> None:
        """A sample."""

    with pytest.raises(ToolError, match=words) as caught:
        tool_of(sample)
    assert f"({__file__}:" in caught.value.message


@pytest.mark.parametrize("cost", [0.01, {"per_invocation": 0.01}, Cost(per_invocation=0.01)])
def test_a_number_is_the_price_of_one_call(cost: Any):
    @tool(cost=cost)
    def sample() -> int:
        """A sample."""
        return 1

    with Crib(tools=[sample]) as crib:
        assert crib.call_sync("sample").meta["cost"] == {"amount": 0.01, "currency": "USD"}
        assert crib.list_tools()


def test_an_option_that_does_not_exist_is_refused_at_once():
    with pytest.raises(TypeError, match="does not take timeout_ms; it takes name, title, description, "):
        tool(timeout_ms=5)  # type: ignore[call-overload]


def test_a_plain_function_gets_a_thread_only_if_it_asks_for_one_or_has_a_time_limit():
    def quick() -> None:
        """Be quick."""

    assert not run_of(tool()(quick)).thread
    assert run_of(tool(thread=True)(quick)).thread
    assert run_of(tool(timeout=2)(quick)).thread

    async def waiting() -> None:
        """Wait."""

    assert not run_of(tool(timeout=2)(waiting)).thread
    assert "thread=True is for plain functions" in refusal(tool(thread=True)(waiting))


def test_everything_that_can_be_awaited_is_async():
    async def coroutine() -> int:
        """Wait."""
        return 1

    def hands_on() -> Awaitable[int]:
        """Wait."""
        return coroutine()

    class Waits:
        """Wait."""

        async def __call__(self) -> int:
            return 1

    for function in (coroutine, hands_on, Waits(), functools.partial(coroutine)):
        assert run_of(function).is_async
        assert tool_of(function).output_schema == {"type": "integer"}
    assert not run_of(forecast).is_async


def test_the_context_is_given_by_the_platform_and_not_by_the_model():
    def plain(text: str, context: Context) -> None:
        """Say."""

    def maybe(text: str, *, ctx: Context | None = None) -> None:
        """Say."""

    for function, name in ((plain, "context"), (maybe, "ctx")):
        assert run_of(function).context_parameter == name
        assert list(tool_of(function).parameters["properties"]) == ["text"]  # type: ignore[call-overload]
        assert tool_of(function).parameters["required"] == ["text"]


def test_a_context_imported_for_type_checkers_only_is_understood():
    namespace: dict[str, object] = {}
    exec("def say(text: 'str', ctx: 'Context | None' = None) -> 'list[str]':\n    'Say.'", namespace)
    assert run_of(namespace["say"]).context_parameter == "ctx"


def test_an_undefined_hint_is_named_with_function_file_and_parameter():
    def lost(a: int, b: list[Missing]) -> None:
        """Get lost."""

    message = refusal(lost)
    line = lost.__code__.co_firstlineno
    assert message.startswith(f"lost ({__file__}:{line}): the hint of b cannot be read: name 'Missing' is not defined")


def test_a_hint_without_json_is_named_with_its_parameter():
    def strange(shape: dict[str, list[complex]]) -> None:
        """Be strange."""

    assert "parameter shape: complex cannot be written as JSON; use a plain type" in refusal(strange)

    def answers() -> complex:
        """Be strange."""
        return 1j

    assert "the answer: complex cannot be written as JSON" in refusal(answers)


def test_parameters_that_cannot_be_given_by_name_are_refused_with_the_cure():
    def many(*words: str) -> None:
        """Say."""

    def placed(word: str, /) -> None:
        """Say."""

    assert "*words cannot be given by name; write words: list[…] instead" in refusal(many)
    assert "word cannot be given by name; remove the '/'" in refusal(placed)
    assert "pass a function" in refusal(Positive)
    assert "pass a function" in refusal(7)
    assert "signature cannot be read" in refusal(iter)
    assert "use 1 to 64 letters" in refusal(lambda: None)


def test_other_named_arguments_leave_the_schema_open_as_far_as_their_hint():
    def anything(a: int = 1, **others) -> None:
        """Take all."""

    def days(**others: dt.date) -> None:
        """Take days."""

    def listed(**others: Unpack[Extra]) -> None:
        """Take these."""

    assert tool_of(anything).parameters["additionalProperties"] is True
    assert tool_of(days).parameters["additionalProperties"] == {"type": "string", "format": "date"}
    revive = run_of(days).revive
    assert revive is not None
    assert revive({"x": "2026-01-31"}) == {"x": dt.date(2026, 1, 31)}
    assert tool_of(listed).parameters["properties"] == {"unit": {"type": "string", "enum": ["c", "f"]}}
    assert tool_of(listed).parameters["additionalProperties"] is False


def test_what_is_not_hinted_accepts_any_value_and_warns():
    def loose(a, b=2):
        """Be loose."""

    made = tool_of(loose)
    assert made.parameters["properties"] == {"a": {}, "b": {"default": 2}}
    assert made.output_schema is None
    assert [warning.partition(": ")[2] for warning in made.warnings] == [
        "parameter a has no type hint, so any value is accepted; add one",
        "parameter b has no type hint, so any value is accepted; add one",
    ]


def test_a_function_without_a_docstring_is_described_by_its_name_and_warns():
    def count_words(text: str) -> int:
        return len(text.split())

    made = tool_of(count_words)
    assert made.description == "Count words"
    assert made.warnings[0].endswith("nothing describes it; write a docstring")


def test_a_default_that_is_no_json_is_left_to_python():
    def sample(key: object = object(), count: int = "three", at: Path = Path("x"), gone: str = None) -> None:  # type: ignore[assignment] # noqa: RUF013 - hosts write such
        """Try."""

    properties = tool_of(sample).parameters["properties"]
    assert properties == {
        "key": {},
        "count": {"type": "integer"},
        "at": {"type": "string", "default": "x"},
        "gone": {"type": ["string", "null"], "default": None},
    }


def test_arguments_become_the_objects_that_the_signature_asks_for():
    def sample(day: dt.date, at: Path, plain: list[int]) -> list[Path]:
        """Try."""
        return [at / day.isoformat()]

    run = run_of(sample)
    given = {"day": "2026-01-31", "at": "a", "plain": [1]}
    assert run.revive is not None
    assert run.flatten is not None
    revived = run.revive(given)
    assert revived == {"day": dt.date(2026, 1, 31), "at": Path("a"), "plain": [1]}
    assert given == {"day": "2026-01-31", "at": "a", "plain": [1]}
    assert run.flatten(sample(**revived)) == ["a/2026-01-31"]
    assert run_of(forecast).revive is None
    assert run_of(forecast).flatten is None


def test_a_class_that_refuses_what_the_schema_let_in_gives_a_validation_error():
    def take(positive: Positive, day: dt.datetime | None = None, blob: bytes = b"") -> None:
        """Take."""

    revive = run_of(take).revive
    assert revive is not None
    for arguments, words in (
        ({"positive": {"number": 0}}, "positive: 0 is not positive"),
        ({"positive": {"number": 1}, "day": "2016-12-31T23:59:60Z"}, "day: second must be in 0..59"),
        ({"positive": {"number": 1}, "blob": "*"}, "blob: "),
    ):
        with pytest.raises(ToolError, match=words) as caught:
            revive(arguments)
        assert caught.value.kind is Kind.VALIDATION


def test_a_schema_written_by_hand_is_taken_as_it_is_and_the_function_gets_its_json():
    parameters = {"type": "object", "properties": {"day": {"type": "string"}}}

    @tool(parameters=parameters, output_schema={"type": "string"})
    def sample(day: complex, ctx: Context) -> complex:
        """Try."""
        return day

    made = tool_of(sample)
    assert made.parameters is parameters
    assert made.output_schema == {"type": "string"}
    run = run_of(sample)
    assert run.revive is None
    assert run.context_parameter == "ctx"


def test_a_generator_gives_a_list():
    def count(to: int) -> Iterator[Path]:
        """Count."""
        yield from (Path(str(number)) for number in range(to))

    def bare(to: int):
        """Count."""
        yield to

    assert tool_of(count).output_schema == {"type": "array", "items": {"type": "string"}}
    for function, expected in ((count, ["0", "1"]), (bare, [2])):
        flatten = run_of(function).flatten
        assert flatten is not None
        assert flatten(function(2)) == expected


class Station:
    """A station that answers."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool(description="Measure here.", version="3.0")
    def measure(self, depth: int) -> str:
        return f"{self.name} {depth}"

    def __call__(self, question: str) -> str:
        return question


def test_a_bound_method_is_a_tool_with_the_options_of_its_decorator():
    station = Station("north")
    made = tool_of(station.measure)
    assert (made.name, made.description, made.version) == ("measure", "Measure here.", "3.0")
    assert list(made.parameters["properties"]) == ["depth"]  # type: ignore[call-overload]
    assert run_of(station.measure).call(depth=4) == "north 4"


def test_a_callable_object_is_a_tool():
    made = tool_of(Station("north"))
    assert (made.name, made.description) == ("Station", "A station that answers.")
    assert list(made.parameters["properties"]) == ["question"]  # type: ignore[call-overload]


def test_what_a_partial_binds_is_hidden_from_the_model():
    def ask(question: str, api_key: str, days: int = 1) -> str:
        """Ask."""
        return f"{question} {api_key} {days}"

    bound = functools.partial(functools.partial(ask, api_key="secret"), days=2)
    made = tool_of(bound)
    assert made.name == "ask"
    assert made.parameters["properties"] == {"question": {"type": "string"}}
    assert "secret" not in str(made.parameters)
    assert run_of(bound).call(question="why") == "why secret 2"
    assert tool_of(functools.partial(tool(version="4.0")(ask), days=2)).version == "4.0"
    first = functools.partial(ask, "why")
    assert list(tool_of(first).parameters["properties"]) == ["api_key", "days"]  # type: ignore[call-overload]


def test_a_wrapped_function_keeps_its_signature():
    @functools.wraps(forecast)
    def wrapper(*args, **kwargs):
        return forecast(*args, **kwargs)

    assert tool_of(wrapper).parameters == tool_of(forecast).parameters


def test_a_recursive_class_is_defined_beside_the_parameters():
    def grow(tree: Tree) -> Tree:
        """Grow."""
        return Tree(leaf=0, next=tree)

    made = tool_of(grow)
    check_parameters(made.parameters, "grow")
    assert made.parameters["$defs"] == {
        "Tree": {
            "type": "object",
            "properties": {
                "leaf": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None},
                "last": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None},
            },
            "required": ["leaf"],
            "additionalProperties": False,
        }
    }
    run = run_of(grow)
    assert run.revive is not None
    assert run.flatten is not None
    written = {"leaf": 1, "next": {"leaf": 2, "next": None, "last": None}, "last": None}
    assert run.revive({"tree": written}) == {"tree": Tree(1, Tree(2))}
    assert run.flatten(Tree(1, Tree(2))) == written


def test_integers_are_strict():
    validator = compile_schema(tool_of(forecast).parameters)
    assert validator.is_valid({"city": "Ulm", "days": 3})
    for wrong in (True, 3.5, "3", None):
        assert not validator.is_valid({"city": "Ulm", "days": wrong})
    assert not validator.is_valid({"city": "Ulm", "unknown": 1})
