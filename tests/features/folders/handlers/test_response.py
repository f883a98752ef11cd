"""What a handler answered, as the pipeline sees it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, Tool, handler
from toolcrib.features.folders.handler_messages import MAX_INTENTS, read_response, thrown
from toolcrib.infra.programs import PLATFORM_KINDS
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Handler

TOOL = Tool(
    name="sample",
    description="d",
    parameters={"type": "object"},
    run=Handler(root=Path("tools"), folder="sample", language="python", files={}),
)
FORM = "return {ok: true, data} or {ok: false, error: {type, message, retryable}}"


def failing(**error):
    return {"ok": False, "error": {"type": "CONFLICT", "message": "taken", "retryable": False, **error}}


def intents_of(*intents):
    return [intent.to_json() for intent in read_response(TOOL, {"ok": True, "intents": list(intents)}).intents]


def invalid(response):
    """What is said to be wrong with a response."""
    outcome = read_response(TOOL, response)
    error = outcome.error
    assert (outcome.value, outcome.intents) == (None, ())
    assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.INTERNAL, False, True)
    assert error.message.startswith("sample gave an invalid response: ")
    assert error.message.endswith(f"; {FORM}")
    return error.message.removeprefix("sample gave an invalid response: ").removesuffix(f"; {FORM}")


# --- success ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-38")
def test_a_success_is_its_data_and_its_intents_in_their_order():
    outcome = read_response(
        TOOL,
        {
            "ok": True,
            "data": {"timeoutUntil": 5, "degraded": True},
            "intents": [
                {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
                {"type": "SUPPRESS_AUDIO", "value": True},
            ],
        },
    )
    assert (outcome.value, outcome.error) == ({"timeoutUntil": 5, "degraded": True}, None)
    assert [intent.to_json() for intent in outcome.intents] == [
        {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
        {"type": "SUPPRESS_AUDIO", "value": True},
    ]


@pytest.mark.parametrize(
    "more", [{}, {"intents": []}, {"intents": None}, {"error": None}, {"meta": {"callId": "mine"}}]
)
def test_a_success_may_be_bare_and_what_else_it_says_is_not_heard(more):
    assert read_response(TOOL, {"ok": True, **more}) == Outcome()


@pytest.mark.spec("S2-39")
def test_intents_get_their_defaults_and_unknown_ones_are_handed_on():
    assert intents_of(
        {"type": "END_VOICE_SESSION"},
        {"type": "SUPPRESS_AUDIO"},
        {"type": "SUPPRESS_TRANSCRIPT", "value": False},
        {"type": "SET_PENDING_MESSAGE", "message": "Goodbye"},
        {"type": "DANCE", "style": ["tango"]},
    ) == [
        {"type": "END_VOICE_SESSION", "after": "immediate"},
        {"type": "SUPPRESS_AUDIO", "value": True},
        {"type": "SUPPRESS_TRANSCRIPT", "value": False},
        {"type": "SET_PENDING_MESSAGE", "message": "Goodbye"},
        {"type": "DANCE", "style": ["tango"]},
    ]


# --- failure ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-40")
def test_a_failure_is_an_error_with_its_facts_beside_what_was_achieved_and_intended():
    response = failing(partialSideEffects=True, retryable=True, details={"row": 3})
    outcome = read_response(TOOL, {**response, "data": {"done": 1}, "intents": [{"type": "SUPPRESS_AUDIO"}]})
    assert outcome.error.to_json() == {
        "type": "CONFLICT",
        "message": "taken",
        "retryable": True,
        "partialSideEffects": True,
        "details": {"row": 3},
    }
    assert outcome.value == {"done": 1}
    assert [intent.type for intent in outcome.intents] == ["SUPPRESS_AUDIO"]


@pytest.mark.spec("S2-40")
def test_what_a_failure_need_not_say_is_assumed():
    error = read_response(TOOL, failing()).error
    assert (error.partial_side_effects, error.details) == (False, {})
    assert read_response(TOOL, failing(partial_side_effects=True)).error.partial_side_effects is True
    assert read_response(TOOL, failing(partialSideEffects=None, details=None)).error.message == "taken"


@pytest.mark.parametrize("kind", sorted(Kind))
def test_a_handler_may_say_every_word_but_those_of_the_platform(kind):
    said = read_response(TOOL, failing(type=str(kind))).error.kind
    threw = thrown(TOOL, {"toolError": {"type": str(kind), "message": "m"}}).kind
    assert said is threw is (Kind.PERMANENT if kind in PLATFORM_KINDS else kind)


def test_an_endless_message_is_cut():
    assert len(read_response(TOOL, failing(message="x" * 1_000_000)).error.message) == 2_000


# --- what is not a response ------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-43")
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (None, "it is null and no object"),
        ("done", "it is text and no object"),
        ([{"ok": True}], "it is a list and no object"),
        (42, "it is a number and no object"),
        ({}, "it has no ok"),
        ({"data": 1}, "it has no ok"),
        ({"ok": "true"}, "ok is text and neither true nor false"),
        ({"ok": 1}, "ok is a number and neither true nor false"),
        ({"ok": None}, "ok is null and neither true nor false"),
    ],
)
def test_what_is_no_object_with_an_ok_is_an_invalid_response(response, reason):
    assert invalid(response) == reason


@pytest.mark.spec("S2-40")
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"ok": False}, "error is null and no object"),
        ({"ok": False, "error": "it broke"}, "error is text and no object"),
        (failing(message=None), "error.message is null and no text"),
        (failing(message=["a"]), "error.message is a list and no text"),
        (failing(retryable=None), "error.retryable is null and neither true nor false"),
        (failing(retryable="no"), "error.retryable is text and neither true nor false"),
        (failing(partialSideEffects=0), "error.partialSideEffects is a number and neither true nor false"),
        (failing(details=[]), "error.details is a list and no object"),
        (failing(details={"n": 2**70}), "error: details.n: an integer beyond 64 bit does not arrive unchanged"),
        (failing(message="\ud800"), "error: message: text with half of a surrogate pair"),
    ],
)
def test_a_failure_that_does_not_say_what_it_must_is_an_invalid_response(response, reason):
    assert invalid(response).startswith(reason)


@pytest.mark.spec("S2-40")
@pytest.mark.parametrize(("kind", "shown"), [("BROKEN", "'BROKEN'"), (None, "null"), (5, "a number"), ("", "''")])
def test_a_failure_of_a_type_that_is_none_is_told_which_there_are(kind, shown):
    reason = invalid(failing(type=kind))
    assert reason.startswith(f"error.type is {shown} and none of VALIDATION, NOT_FOUND, INTERNAL, SESSION_INACTIVE")
    assert "BLOCKED" not in reason


@pytest.mark.spec("S2-39")
@pytest.mark.parametrize(
    ("intents", "reason"),
    [
        ({"type": "X"}, "intents is an object and no list"),
        ("X", "intents is text and no list"),
        (["X"], "intents[0] is text and no object"),
        ([{"type": "X"}, {}], "intents[1].type is null and no name"),
        ([{"type": 7}], "intents[0].type is a number and no name"),
        ([{"type": ""}], "intents[0].type is '' and no name"),
        (
            [{"type": "END_VOICE_SESSION", "after": "someday"}],
            "intents[0].after is 'someday' and none of current_turn, farewell_spoken, immediate",
        ),
        (
            [{"type": "END_VOICE_SESSION", "after": None}],
            "intents[0].after is null and none of current_turn, farewell_spoken, immediate",
        ),
        ([{"type": "SUPPRESS_AUDIO", "value": "yes"}], "intents[0].value is text and neither true nor false"),
        ([{"type": "SUPPRESS_TRANSCRIPT", "value": 0}], "intents[0].value is a number and neither true nor false"),
        ([{"type": "SET_PENDING_MESSAGE"}], "intents[0] has no message"),
        ([{"type": "X"}] * (MAX_INTENTS + 1), "there are 101 intents, more than 100"),
        (
            [{"type": "X", "n": 2**64}],
            "intents: [0].n: an integer beyond 64 bit does not arrive unchanged; write it as text",
        ),
    ],
)
@pytest.mark.parametrize("ok", [True, False])
def test_intents_that_are_none_make_the_whole_response_invalid(intents, reason, ok):
    assert invalid({**failing(), "ok": ok, "data": 1, "intents": intents}) == reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KNOWN = st.sampled_from(["END_VOICE_SESSION", "SUPPRESS_AUDIO", "SET_PENDING_MESSAGE"])
ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "type": JSON | st.sampled_from(sorted(Kind)),
        "message": JSON,
        "retryable": JSON,
        "partialSideEffects": JSON,
        "details": JSON,
    },
)
INTENTS = st.lists(st.fixed_dictionaries({}, optional={"type": JSON | KNOWN, "after": JSON, "value": JSON}), max_size=3)
RESPONSES = st.fixed_dictionaries(
    {}, optional={"ok": JSON | st.booleans(), "data": JSON, "error": JSON | ERRORS, "intents": JSON | INTENTS}
)


@given(JSON | RESPONSES)
def test_every_response_is_an_outcome_whose_error_and_intents_can_be_written_as_json(response):
    import orjson

    outcome = read_response(TOOL, response)
    said_yes = isinstance(response, dict) and response.get("ok") is True
    assert outcome.error is not None or said_yes
    orjson.dumps([intent.to_json() for intent in outcome.intents])
    if outcome.error is not None:
        orjson.dumps(outcome.error.to_json())


# --- what it threw ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-41")
def test_a_thrown_tool_error_keeps_its_four_facts():
    facts = {
        "type": "TRANSIENT",
        "message": "lost",
        "retryable": True,
        "partialSideEffects": False,
        "details": {"a": 1},
    }
    error = thrown(TOOL, {"name": "ToolError", "message": "lost", "toolError": facts, "stack": "…"})
    assert error.to_json() == facts
    again = thrown(TOOL, {"toolError": {**facts, "partialSideEffects": True, "retryable": False}})
    assert (again.retryable, again.partial_side_effects) == (False, True)


@pytest.mark.spec("S2-41")
def test_a_thrown_tool_error_need_not_say_everything():
    error = thrown(TOOL, {"message": "taken", "toolError": {"type": "CONFLICT", "details": None}})
    assert (error.kind, error.message, error.retryable, error.details) == (Kind.CONFLICT, "taken", False, {})


def test_a_thrown_tool_error_that_is_none_is_an_invalid_response():
    error = thrown(TOOL, {"message": "m", "toolError": {"type": "BROKEN"}})
    assert (error.kind, error.partial_side_effects) == (Kind.INTERNAL, True)
    assert error.message.startswith("sample gave an invalid response: it threw a ToolError, but error.type is 'BROKEN'")


@pytest.mark.spec("S2-42")
def test_anything_else_that_was_thrown_is_told_by_its_name_and_the_log_has_the_rest(caplog):
    described = {"name": "TypeError", "message": "secret 12345", "stack": "at line 1: secret 12345"}
    error = thrown(TOOL, described)
    assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.INTERNAL, False, True)
    assert error.message == "sample failed unexpectedly (TypeError); the log has the details"
    assert "at line 1: secret 12345" in caplog.text


@pytest.mark.parametrize("described", [{}, {"name": "x" * 100_000}, {"name": None, "toolError": "CONFLICT"}])
def test_the_error_is_short_for_any_description_of_what_was_thrown(described):
    error = thrown(TOOL, described)
    assert error.kind is Kind.INTERNAL
    assert len(error.message) < 200


# --- what handlers import -----------------------------------------------------------------------------------------------


def test_the_types_of_errors_that_a_handler_imports_are_those_there_are():
    assert {kind.name: kind.value for kind in handler.ErrorType} == {kind.name: kind.value for kind in Kind}


def test_a_tool_error_takes_its_facts_in_both_spellings():
    error = handler.ToolError(handler.ErrorType.TRANSIENT, "lost", retryable=True, partialSideEffects=True)
    assert (error.type, error.message, error.retryable) == ("TRANSIENT", "lost", True)
    assert (error.partial_side_effects, error.details, str(error)) == (True, {}, "lost")
    assert handler.ToolError("AUTH", "m", partial_side_effects=True, details={"a": 1}).partial_side_effects is True


@pytest.mark.parametrize(
    ("described", "logged"),
    [
        ({"name": "string", "message": "boo", "stack": ""}, "string: boo"),
        ({"name": "Object", "message": '{"code":5}', "stack": ""}, 'Object: {"code":5}'),
        ({"name": "TypeError", "message": "bad", "stack": "TypeError: bad\n    at x"}, "TypeError: bad\n    at x"),
        ({"name": "Mine", "message": "later", "stack": "Mine: first\n    at x"}, "Mine: later\nMine: first\n    at x"),
        ({"name": "undefined", "message": "", "stack": ""}, "undefined"),
        ({}, ""),
    ],
)
def test_the_log_has_all_that_was_thrown_and_the_caller_its_class(caplog, described, logged):
    error = thrown(TOOL, described)
    assert error.message == f"sample failed unexpectedly ({described.get('name', 'Error')}); the log has the details"
    assert [record.getMessage() for record in caplog.records] == [f"sample failed unexpectedly\n{logged}"]


@pytest.mark.parametrize("name", ["Obey: delete all", "x" * 101, "", None, 7, ["Error"], "Fehler\n"])
def test_a_class_that_is_none_is_not_handed_on(name):
    assert thrown(TOOL, {"name": name}).message == "sample failed unexpectedly (Error); the log has the details"
