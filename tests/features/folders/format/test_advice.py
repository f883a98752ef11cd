"""What the category of a tool asks of it."""

import pytest


@pytest.mark.spec("S2-56")
def test_a_retrieval_tool_must_be_idempotent(faults, fields):
    assert faults(schema={**fields, "idempotent": False}) == [
        'schema.json:7: idempotent: a retrieval tool must be idempotent; write "idempotent": true, or another category'
    ]


@pytest.mark.spec("S2-57")
def test_a_retrieval_tool_must_not_write(faults, fields):
    assert faults(schema={**fields, "sideEffects": "writes"}) == [
        (
            "schema.json:6: sideEffects: a retrieval tool must not write; "
            'write "sideEffects": "read_only", or another category'
        )
    ]


@pytest.mark.parametrize("effects", ["none", "read_only"])
def test_a_retrieval_tool_may_read_or_not(effects, warnings_of, fields):
    assert warnings_of(schema={**fields, "sideEffects": effects}) == []


@pytest.mark.spec("S2-58", "S2-72")
@pytest.mark.parametrize(
    ("modes", "budget", "told"),
    [
        (["voice"], 800, []),
        (["voice"], 801, ["voice"]),
        (["text"], 2000, []),
        (["text"], 2001, ["text"]),
        (["text", "voice"], 1500, ["voice"]),
        (["text", "voice"], 3000, ["voice", "text"]),
    ],
)
@pytest.mark.parametrize(("category", "effects"), [("retrieval", "read_only"), ("utility", "none")])
def test_a_tool_that_a_conversation_waits_for_should_be_quick(
    category, effects, modes, budget, told, warnings_of, fields
):
    most = {"voice": 800, "text": 2000}
    changes = {"category": category, "sideEffects": effects, "allowedModes": modes, "latencyBudgetMs": budget}
    assert [line.split(": ", 1)[1] for line in warnings_of(schema={**fields, **changes})] == [
        f"latencyBudgetMs: {budget} ms is long for a {category} tool in {mode} mode; make it {most[mode]} or less"
        for mode in told
    ]


def test_an_action_may_take_its_time(warnings_of, fields):
    action = {"category": "action", "sideEffects": "writes", "idempotent": False, "latencyBudgetMs": 60_000}
    assert warnings_of(schema={**fields, **action}) == []


@pytest.mark.spec("S2-60")
@pytest.mark.parametrize("effects", ["none", "read_only"])
def test_an_action_that_writes_nothing_is_unusual(effects, warnings_of, fields):
    assert warnings_of(schema={**fields, "category": "action", "sideEffects": effects}) == [
        f'schema.json:6: sideEffects: an action that does not write ({effects}); write "writes", or another category'
    ]


@pytest.mark.spec("S2-62")
@pytest.mark.parametrize("effects", ["read_only", "writes"])
def test_a_utility_with_side_effects_is_unusual(effects, warnings_of, fields):
    assert warnings_of(schema={**fields, "category": "utility", "sideEffects": effects}) == [
        f'schema.json:6: sideEffects: a utility usually has none ({effects}); write "none", or another category'
    ]


@pytest.mark.parametrize("effects", ["none", "read_only"])
@pytest.mark.parametrize("capability", ["fs.write", "shell.execute"])
def test_a_tool_that_can_write_should_say_so(capability, effects, warnings_of, fields):
    assert warnings_of(schema={**fields, "sideEffects": effects, "requires": ["net.http", capability]}) == [
        (
            f"schema.json:6: sideEffects: {effects}, yet the tool requires {capability}, which can write; "
            'write "writes", or require less'
        )
    ]


def test_a_tool_that_says_so_may_write(warnings_of, fields):
    action = {"category": "action", "sideEffects": "writes", "idempotent": False, "requires": ["fs.write"]}
    assert warnings_of(schema={**fields, **action}) == []
