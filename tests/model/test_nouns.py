"""The nouns are frozen, named and hashed as the documents want them."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys

import pytest

from toolcrib import Bundle, Call, Cost, Intent, Kind, Limits, Result, RetryPolicy, SettingsError, Tool, ToolError
from toolcrib.model.call import plain_call
from toolcrib.model.result import succeed
from toolcrib.model.tool import Backoff, Function, Script


def nothing() -> None:
    """Do nothing."""


def a_tool(**changes) -> Tool:
    facts = {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "run": Function(call=nothing, is_async=False),
        "bundle": "host",
    }
    return Tool(**{**facts, **changes})


@pytest.mark.parametrize(
    ("fact", "field"),
    [
        (a_tool(), "name"),
        (Bundle(id="", slug="b"), "slug"),
        (Call(name="x"), "name"),
        (plain_call("x", {}, "me"), "name"),
        (Result(value=1), "value"),
        (succeed(1, (), {}), "value"),
        (Intent(type="X"), "type"),
        (Limits(), "timeout_ms"),
        (ToolError(Kind.INTERNAL, "x"), "message"),
    ],
)
def test_a_fact_cannot_be_changed(fact, field):
    with pytest.raises(AttributeError):
        setattr(fact, field, "other")


def test_the_quick_makers_make_the_same_facts_as_the_constructors():
    assert succeed(3, (), {"a": 1}) == Result(value=3, meta={"a": 1})
    assert plain_call("x", {"a": 1}, "me") == Call(name="x", arguments={"a": 1}, caller="me")
    assert {field.name for field in dataclasses.fields(Call)} == set(Call.__mro__[1].__slots__)
    assert {field.name for field in dataclasses.fields(Result)} == set(Result.__mro__[1].__slots__)


def test_a_result_is_true_exactly_if_the_call_did_what_was_asked():
    assert succeed(None, (), {})
    assert Result(value=0)
    assert not Result(value="half", error=ToolError(Kind.TRANSIENT, "the line broke"))


def test_unwrap_gives_the_value_or_raises_the_error():
    assert Result(value=0).unwrap() == 0
    broken = ToolError(Kind.TRANSIENT, "the line broke")
    with pytest.raises(ToolError) as raised:
        Result(value="half", error=broken).unwrap()
    assert raised.value is broken


def test_a_tool_error_lets_tracebacks_be_set_and_survives_copying():
    error = ToolError(Kind.CONFLICT, "taken", retryable=True, details={"a": 1}, value=[1])
    error.__traceback__ = None
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert other.to_json() == error.to_json()
        assert other.value == [1]
    assert pickle.loads(pickle.dumps(SettingsError("bad"))).message == "bad"


@pytest.mark.parametrize("name", ["weather", "größe", "天気", "a-1", "kb_search", "Weather", "x" * 64])
def test_names_of_letters_digits_and_dashes_are_taken(name):
    assert a_tool(name=name).slug == name.replace("_", "-")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\\b", "a.b", "😀", "a\n", "x" * 65, "a@b", "a\x00"])
def test_other_names_are_refused_with_the_rule(name):
    with pytest.raises(ToolError, match="letters, digits"):
        a_tool(name=name)


@pytest.mark.parametrize(
    ("version", "fits"), [("1.0.0", True), ("v10", True), ("xyz", True), ("1 0", False), ("", False)]
)
def test_a_version_is_an_opaque_label(version, fits):
    if fits:
        assert a_tool(version=version).version == version
    else:
        with pytest.raises(ToolError, match="version"):
            a_tool(version=version)


def test_the_content_hash_does_not_depend_on_the_order_of_keys():
    one = a_tool(parameters={"type": "object", "properties": {"a": {}, "b": {}}})
    two = a_tool(parameters={"properties": {"b": {}, "a": {}}, "type": "object"})
    assert one.content_hash == two.content_hash


@pytest.mark.parametrize(
    "change",
    [
        {"name": "weather2"},
        {"version": "1.0.1"},
        {"description": "Tells the weather!"},
        {"display_name": "Weather"},
        {"documentation": "More."},
        {"parameters": {"type": "object"}},
        {"output_schema": {"type": "string"}},
        {"category": "x"},
        {"idempotent": True},
        {"requires_confirmation": True},
        {"modes": frozenset({"text"})},
        {"requires": frozenset({"net.http"})},
        {"limits": Limits(timeout_ms=1)},
        {"limits": Limits(retry=RetryPolicy(max_attempts=2))},
        {"cost": Cost(per_invocation=1)},
        {"tags": ("a",)},
        {"deprecated": True},
        {"run": Function(call=lambda: 1, is_async=False)},
        {"run": Function(call=nothing, is_async=False, thread=True)},
    ],
)
def test_the_content_hash_changes_with_everything_that_matters(change):
    assert a_tool(**change).content_hash != a_tool().content_hash


def test_the_content_hash_does_not_change_with_where_a_tool_lies(tmp_path):
    scripts = [
        Script(path=tmp_path / name / "x.py", code=b"def x(): ...", language="python", entry="x") for name in ("a", "b")
    ]
    hashes = {a_tool(run=script, bundle=str(number)).content_hash for number, script in enumerate(scripts)}
    assert len(hashes) == 1


FIXED = """
from pathlib import Path
from toolcrib import Cost, Limits, RetryPolicy
from toolcrib import Tool
from toolcrib.model.tool import Behaviour, Script, SideEffects

tool = Tool(
    name="wetter_größe",
    description="Tells the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string", "maximum": 2**70}}},
    run=Script(path=Path("x.py"), code=b"def weather(city): ...", language="python", entry="weather"),
    behaviour=Behaviour.RETRIEVAL,
    side_effects=SideEffects.NONE,
    modes=frozenset({"text", "voice"}),
    requires=frozenset({"net.http", "fs.read", "fs.write", "mail.send", "a.b", "c.d"}),
    limits=Limits(timeout_ms=5, retry=RetryPolicy(max_attempts=2, initial_delay=0.1)),
    cost=Cost(per_invocation=0.1),
    tags=("b", "a"),
)
print(tool.content_hash)
"""


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_content_hash_is_the_same_on_every_machine(seed):
    # Written out: approvals and lock files hold it, so a change of it is a change of what was promised.
    ended = subprocess.run(
        [sys.executable, "-c", FIXED],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert ended.stdout.strip() == "238929ee3e313f5c6da7e9099b76ea0fe0901fdd76a2910a69ef0a8aa0036f55"


def test_two_closures_of_one_text_are_two_tools():
    def make(number):
        def weather() -> int:
            return number

        return a_tool(run=Function(call=weather, is_async=False))

    one, two = make(1), make(2)
    assert one.content_hash == two.content_hash
    assert one != two


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (RetryPolicy(max_attempts=4, initial_delay=1, max_delay=3, multiplier=2), [1, 2, 3]),
        (RetryPolicy(max_attempts=4, backoff=Backoff.LINEAR, initial_delay=2, max_delay=5), [2, 4, 5]),
        (RetryPolicy(max_attempts=4, backoff=Backoff.CONSTANT, initial_delay=2), [2, 2, 2]),
    ],
)
def test_waits_grow_as_the_policy_says(policy, delays):
    assert [policy.delay_after(attempt) for attempt in (1, 2, 3)] == delays


def test_a_pause_that_would_be_longer_than_numbers_go_is_the_longest_one():
    assert RetryPolicy(max_attempts=9, multiplier=1e300, max_delay=7).delay_after(8) == 7


def test_limits_that_cannot_be_kept_are_refused():
    for make in (
        lambda: RetryPolicy(max_attempts=0),
        lambda: RetryPolicy(initial_delay=-1),
        lambda: Limits(timeout_ms=0),
        lambda: Limits(latency_budget_ms=-5),
        lambda: Cost(per_minute=-0.1),
    ):
        with pytest.raises(ValueError, match="must"):
            make()


@pytest.mark.spec("S3-36")
def test_a_cost_can_be_estimated_before_and_told_after():
    cost = Cost(per_invocation=0.01, per_minute=0.05, estimated_duration=60, currency="USD")
    assert cost.estimate() == 0.06
    assert cost.of(120) == 0.11
