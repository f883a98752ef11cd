"""Each call of a hostile reply of a model is answered in words, and the others still run."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

GOOD = ("good", "add", {"a": 1, "b": 2})


@pytest.mark.parametrize("name", ["rm", "", "add ", "ADD", "__class__", "add\u200b", "ädd", "x" * 100_000, "\udc80"])
async def test_a_name_that_was_not_offered_is_answered_and_the_others_run(shape, crib, name):
    wrong, good = shape.read(await shape.adapter(crib, tools=["add"]).answer(shape.wire(("bad", name, {}), GOOD)))
    assert (wrong.id, wrong.value["type"]) == ("bad", "NOT_FOUND")
    assert len(wrong.value["message"]) < 200
    assert good.value == 3


async def test_a_model_learns_nothing_of_tools_that_it_was_not_offered(shape, crib):
    for name in ("wipe", "wip", "greet@1.0.0", "/add@1.0.0", "add@1.0.0"):
        (told,) = shape.read(await shape.adapter(crib, tools=["add"]).answer(shape.reply(("1", name, {}))))
        assert told.value["type"] == "NOT_FOUND"
        assert told.value["message"] in {
            f"there is no tool {name!r} here; call one of the tools that you were given",
            f"there is no tool {name!r} here; did you mean add?",
        }


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('{"a": 1, "b": 2', "correct the JSON there"),
        ("{'a': 1}", "correct the JSON there"),
        ('[{"a": 1, "b": 2}]', "must be a JSON object"),
        ("3", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('{"a": 1, "a": 2, "b": 3}', "the key 'a' stands twice"),
        ('{"a": NaN, "b": 1}', "NaN is not a JSON value"),
        ('{"a": Infinity, "b": 1}', "Infinity is not a JSON value"),
        ('{"a": 1e999, "b": 1}', "is too large"),
        ('{"a": 18446744073709551616, "b": 1}', "beyond 64 bit"),
        ('{"a": "\\ud800", "b": 1}', "half of a surrogate pair"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper than 64 levels"),
        ('{"a": ' + "9" * 10_000 + "}", "is too long"),
        ("\udc80", "is not UTF-8"),
    ],
)
async def test_arguments_that_cannot_be_read_are_answered_in_words(text_shape, crib, written, problem):
    wrong, good = text_shape.read(await text_shape.adapter(crib).answer(text_shape.wire(("1", "add", written), GOOD)))
    assert wrong.value["type"] == "VALIDATION"
    assert problem in wrong.value["message"]
    assert good.value == 3


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([1, 2], "must be a JSON object"),
        ("a=1", "correct the JSON there"),
        (3, "must be a JSON object"),
        ({"a": float("nan"), "b": 1}, "nan is not a JSON value"),
        ({"a": float("inf"), "b": 1}, "inf is not a JSON value"),
        ({"a": 2**64, "b": 1}, "beyond 64 bit"),
        ({"a": "\ud800", "b": 1}, "half of a surrogate pair"),
        ({"a": {1, 2}, "b": 1}, "a set is not a JSON value"),
        ({1: 2}, "the key '1' is not text"),
    ],
)
async def test_arguments_that_are_no_json_are_answered_in_words(object_shape, crib, given, problem):
    wrong, good = object_shape.read(
        await object_shape.adapter(crib).answer(object_shape.wire(("1", "add", given), GOOD))
    )
    assert wrong.value["type"] == "VALIDATION"
    assert problem in wrong.value["message"]
    assert good.value == 3


async def test_arguments_that_hold_themselves_are_refused(object_shape, crib):
    loop: dict = {"a": 1}
    loop["b"] = loop
    (told,) = object_shape.read(await object_shape.adapter(crib).answer(object_shape.wire(("1", "add", loop))))
    assert "nested deeper than 64 levels" in told.value["message"]


async def test_arguments_that_are_too_large_are_refused_before_they_are_checked(shape, crib):
    wire = shape.wire(("1", "greet", {"name": "x" * 1_000_001}), GOOD)
    large, good = shape.read(await shape.adapter(crib).answer(wire))
    assert large.value["type"] == "LIMIT_EXCEEDED"
    assert "the limit is 1000000" in large.value["message"]
    assert good.value == 3


async def test_no_arguments_at_all_are_none(shape, crib):
    told = shape.read(await shape.adapter(crib).answer(shape.wire(("1", "nothing", None))))
    assert told[0].ok
    if shape.takes_text:
        told = shape.read(await shape.adapter(crib).answer(shape.wire(("1", "nothing", ""), ("2", "nothing", " \n"))))
        assert [each.ok for each in told] == [True, True]


async def test_past_the_bound_each_call_is_answered_and_none_is_made(shape, crib, bench):
    calls = [(f"c{number}", "add", {"a": number, "b": 0}) for number in range(1_000)]
    told = shape.read(await shape.adapter(crib).answer(shape.reply(*calls)))
    assert [each.id for each in told] == [id for id, _, _ in calls]
    assert [each.value for each in told[:64]] == list(range(64))
    assert {(each.value["type"], each.value["retryable"]) for each in told[64:]} == {("LIMIT_EXCEEDED", True)}
    assert len(bench.done) == 64
    assert len(shape.adapter(crib).calls(shape.reply(*calls))) == 64


async def test_all_arguments_of_a_reply_together_are_bounded(text_shape, crib):
    calls = [(str(number), "greet", {"name": "x" * 900_000}) for number in range(6)]
    told = text_shape.read(await text_shape.adapter(crib).answer(text_shape.wire(*calls, GOOD)))
    assert [each.ok for each in told] == [True] * 4 + [False] * 3
    assert {each.value["message"] for each in told[4:]} == {
        "a reply may ask for 64 calls at most, with arguments of 4000000 letters in all; ask for this one again in the next"
    }


async def test_calls_under_one_id_are_answered_each(shape, crib):
    told = shape.read(await shape.adapter(crib).answer(shape.reply(GOOD, ("good", "add", {"a": 2, "b": 2}))))
    assert [(each.id, each.value) for each in told] == [("good", 3), ("good", 4)]


async def test_a_call_without_an_id_is_made_and_answered_without_one(shape, crib):
    wire = shape.wire((None, "add", {"a": 1, "b": 2}))
    for reply in (wire, _without(wire, {"id", "call_id"})):
        (told,) = shape.read(await shape.adapter(crib).answer(reply))
        assert (told.id, told.value) == (shape.no_id, 3)


async def test_a_call_without_a_name_is_answered(shape, crib):
    wire = _without(shape.wire(("1", "add", {"a": 1, "b": 2})), {"name"})
    (told,) = shape.read(await shape.adapter(crib).answer(wire))
    assert (told.id, told.value["type"]) == ("1", "NOT_FOUND")


async def test_a_call_of_another_type_is_answered_where_the_vendor_demands_it(shapes, crib):
    calls = [{"id": "1", "type": "custom", "custom": {"name": "add", "input": "1+2"}}]
    (told,) = shapes["openai-chat"].read(await shapes["openai-chat"].adapter(crib).answer(calls))
    assert (told.id, told.value["type"]) == ("1", "NOT_FOUND")


async def test_what_vendors_run_themselves_is_left_to_them(shapes, crib):
    items = [{"type": "web_search_call", "id": "w"}, {"type": "mcp_call", "id": "m", "name": "add", "arguments": "{}"}]
    assert await shapes["openai-responses"].adapter(crib).answer({"output": items}) == []
    blocks = [{"type": "server_tool_use", "id": "s", "name": "add", "input": {"a": 1, "b": 2}}]
    assert await shapes["anthropic"].adapter(crib).answer({"role": "assistant", "content": blocks}) == []


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MARKS = ["choices", "message", "role", "tool_calls", "output", "candidates", "content", "parts"]
FIELDS = ["function", "functionCall", "function_call", "id", "call_id", "type", "name", "arguments", "args", "input"]
KEYS = [*MARKS, *FIELDS]
REPLIES = some.recursive(
    JSON | some.sampled_from(["add", "greet", "tool_use", "function_call", '{"a": 1, "b": 2}']),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reply=some.dictionaries(some.sampled_from(KEYS), REPLIES, max_size=5) | some.lists(REPLIES, max_size=4))
async def test_no_reply_makes_an_adapter_fail(shape, crib, reply):
    adapter = shape.adapter(crib)
    if not isinstance(reply, list) and not set(reply) & set(adapter.marks):
        return
    answer = await adapter.answer(reply)
    json.dumps(answer)
    shape.read(answer)


def _without(thing, keys):
    """A reply without these keys, wherever they stand."""
    if isinstance(thing, list):
        return [_without(each, keys) for each in thing]
    if isinstance(thing, dict):
        return {key: _without(each, keys) for key, each in thing.items() if key not in keys}
    return thing
