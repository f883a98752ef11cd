"""One result in the forms of the four documents."""

import pytest

from toolcrib import Intent, Kind, Result, ToolError
from toolcrib.lib.presentation import to_builder, to_handler, to_platform, to_text

META: dict[str, object] = {"callId": "1"}
INTENT = Intent(type="NAVIGATE", fields={"to": "/"})
SUCCESS = Result(value={"a": 1}, intents=(INTENT,), meta=META)
ERROR = ToolError(Kind.TRANSIENT, "try again", retryable=True, details={"a": 1})
FAILURE = Result(error=ERROR, meta=META)
PARTIAL = Result(value=[1], error=ERROR, intents=(INTENT,), meta=META)
ERROR_JSON = {
    "type": "TRANSIENT",
    "message": "try again",
    "retryable": True,
    "partialSideEffects": False,
    "details": {"a": 1},
}
INTENTS = [{"type": "NAVIGATE", "to": "/"}]


def test_the_platform_sees_a_value_or_an_error_and_never_both():
    assert to_platform(SUCCESS) == {"ok": True, "value": {"a": 1}, "intents": INTENTS, "meta": META}
    assert to_platform(FAILURE) == {"ok": False, "error": ERROR_JSON, "intents": [], "meta": META}
    partial = {**ERROR_JSON, "details": {"a": 1, "partialValue": [1]}}
    assert to_platform(PARTIAL) == {"ok": False, "error": partial, "intents": INTENTS, "meta": META}
    # The error itself is as it was.
    assert ERROR.details == {"a": 1}


def test_agents_see_data_and_intents_or_an_error():
    assert to_handler(SUCCESS) == {"ok": True, "data": {"a": 1}, "intents": INTENTS, "meta": META}
    assert to_handler(PARTIAL) == {"ok": False, "error": ERROR_JSON, "meta": META}


def test_built_packages_see_a_result_beside_the_error():
    assert to_builder(SUCCESS) == {"result": {"a": 1}, "success": True, "error": None}
    assert to_builder(PARTIAL) == {"result": [1], "success": False, "error": "try again"}
    assert to_builder(FAILURE) == {"result": None, "success": False, "error": "try again"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("", ""),
        ("text", "text"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({"ü": [1, None]}, '{"ü":[1,null]}'),
        ({1: 2}, '{"1":2}'),
        (2**70, str(2**70)),
        ({"ü": 2**70}, f'{{"ü":{2**70}}}'),
        ({1}, "{1}"),
    ],
)
def test_a_model_reads_a_value_as_text(value, text):
    assert to_text(value) == text
