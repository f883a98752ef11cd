"""What was expected held against what came."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolcrib import Intent, Kind, Result, ToolError
from toolcrib.features.testing.cases import compare
from toolcrib.lib.comparison import SHOWN_LETTERS, differences
from toolcrib.testing import Case, FakeContext

KEYS = st.text(max_size=4)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def find(expected, got, *, exact=True):
    return list(differences(expected, got, "value", exact=exact))


def ways(value, way=()):
    """The way to every part of a value."""
    yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from ways(item, (*way, key))


def look_up(value, way):
    for step in way:
        value = value[step]
    return value


def changed(value, way, change):
    """A copy of the value with one part of it changed."""
    if not way:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[way[0]] = changed(value[way[0]], way[1:], change)
    return copy


@given(VALUES)
def test_every_value_is_as_expected_of_itself(value):
    assert find(value, value, exact=False) == []
    assert find(value, value) == []


@given(VALUES, st.data())
def test_a_key_that_is_no_longer_expected_keeps_the_match(value, data):
    objects = [way for way in ways(value) if isinstance(look_up(value, way), dict) and look_up(value, way)]
    assume(objects)
    way = data.draw(st.sampled_from(objects))
    key = data.draw(st.sampled_from(sorted(look_up(value, way))))
    part = changed(value, way, lambda found: {name: item for name, item in found.items() if name != key})
    assert find(part, value, exact=False) == []
    assert find(value, part, exact=False)
    assert len(find(part, value)) == 1


@given(VALUES, LEAVES, st.data())
def test_a_leaf_that_is_another_breaks_the_match_and_is_the_only_difference(value, leaf, data):
    leaves = [way for way in ways(value) if not isinstance(look_up(value, way), dict | list)]
    assume(leaves)
    way = data.draw(st.sampled_from(leaves))
    old = look_up(value, way)
    assume(old != leaf or isinstance(old, bool) != isinstance(leaf, bool))
    expected = changed(value, way, lambda _: leaf)
    assert find(expected, value, exact=False)
    assert len(find(expected, value)) == 1
    assert len(find(expected, value, exact=False)) == 1


@given(VALUES, st.data())
def test_an_item_more_or_less_breaks_the_match(value, data):
    lists = [way for way in ways(value) if isinstance(look_up(value, way), list)]
    assume(lists)
    way = data.draw(st.sampled_from(lists))
    longer = changed(value, way, lambda found: [*found, None])
    assert find(longer, value, exact=False)
    assert find(value, longer, exact=False)


@pytest.mark.parametrize(
    ("expected", "got", "sentences"),
    [
        ({"a": {"b": [1, {"c": "x"}]}}, {"a": {"b": [1, {"c": "y"}]}}, ['value.a.b[1].c: expected "x", got "y"']),
        ({"a": 1}, {}, ["value.a: expected 1, got nothing"]),
        ({}, {"a": 1}, ["value.a: expected nothing, got 1"]),
        ({"a b": 1}, {"a b": 2}, ['value["a b"]: expected 1, got 2']),
        ([1], [1, 2], ["value: expected 1 item, got 2 items: [1, 2]"]),
        ([1, 2], [3], ["value: expected 2 items, got 1 item: [3]", "value[0]: expected 1, got 3"]),
        ({"a": 1}, [1], ['value: expected {"a": 1}, got [1]']),
        ([], {}, ["value: expected [], got {}"]),
        (1, True, ["value: expected 1, got true"]),
        (False, 0, ["value: expected false, got 0"]),
        (1, "1", ['value: expected 1, got "1"']),
        (None, 0, ["value: expected null, got 0"]),
        (1, 1.0, []),
        ([1, 2], (1, 2), []),
        ("é", "e", ['value: expected "é", got "e"']),
    ],
)
def test_every_difference_has_its_path(expected, got, sentences):
    assert find(expected, got) == sentences


def test_a_long_value_is_shown_as_far_as_it_can_be_read():
    [sentence] = find("x", "y" * 10_000)
    assert sentence == f'value: expected "x", got "{"y" * (SHOWN_LETTERS - 1)}…'


def compared(expect, result, context=None):
    return list(compare(Case(name="a case", expect=expect), result, context or FakeContext()))


LOST = ToolError(Kind.TRANSIENT, "the line was cut", retryable=True)


@pytest.mark.parametrize(
    ("expect", "sentences"),
    [
        ({"ok": False}, []),
        ({"error": {}}, []),
        ({"error": {"type": "TRANSIENT", "retryable": True, "partialSideEffects": False}}, []),
        ({"error": {"message_contains": "line was"}}, []),
        ({"ok": True}, ["ok: expected true, got false: TRANSIENT: the line was cut"]),
        ({"sent": []}, ["ok: expected true, got false: TRANSIENT: the line was cut"]),
        (
            {"error": {"type": "CONFLICT", "retryable": False, "partialSideEffects": True}},
            [
                'error.type: expected "CONFLICT", got "TRANSIENT"',
                "error.retryable: expected false, got true",
                "error.partialSideEffects: expected true, got false",
            ],
        ),
        (
            {"error": {"message_contains": "rope"}},
            ['error.message: expected to contain "rope", got "the line was cut"'],
        ),
        ({"error": {}, "value": "half"}, []),
        ({"error": {}, "value": "all"}, ['value: expected "all", got "half"']),
    ],
)
def test_a_failure_is_held_against_what_was_expected_of_it(expect, sentences):
    assert compared(expect, Result(error=LOST, value="half")) == sentences


@pytest.mark.parametrize(
    ("expect", "sentences"),
    [
        ({"value": {"a": 1, "b": [2]}}, []),
        ({"value": {"a": 1}}, ["value.b: expected nothing, got [2]"]),
        ({"contains": {"a": 1}}, []),
        ({"contains": {"b": [3]}}, ["value.b[0]: expected 3, got 2"]),
        ({"error": {"type": "CONFLICT"}}, ['ok: expected false, got true with the value {"a": 1, "b": [2]}']),
        ({"intents": [{"type": "SUPPRESS_AUDIO"}]}, []),
        ({"intents": [{"type": "SUPPRESS_AUDIO", "value": False}]}, ["intents[0].value: expected false, got true"]),
        ({"intents": []}, ['intents: expected 0 items, got 1 item: [{"type": "SUPPRESS_AUDIO", "value": true}]']),
        ({"sent": [{"type": "hello"}]}, []),
        ({"sent": [{"type": "bye"}]}, ['sent[0].type: expected "bye", got "hello"']),
        ({"sent": []}, ['sent: expected 0 items, got 1 item: [{"type": "hello", "at": 1}]']),
        ({"audit": [{"event": "greeted"}]}, []),
        ({"audit": [{"event": "greeted", "data": {"who": "Bo"}}]}, ['audit[0].data.who: expected "Bo", got "Ada"']),
        (
            {"audit": [{"event": "greeted"}, {"event": "left"}]},
            ['audit: expected 2 items, got 1 item: [{"event": "greeted", "data": {"who": "Ada"}}]'],
        ),
    ],
)
def test_a_success_is_held_against_what_was_expected_of_it(expect, sentences):
    result = Result(value={"a": 1, "b": [2]}, intents=(Intent(type="SUPPRESS_AUDIO", fields={"value": True}),))
    context = FakeContext(sent=[{"type": "hello", "at": 1}], audited=[{"event": "greeted", "data": {"who": "Ada"}}])
    assert compared(expect, result, context) == sentences
