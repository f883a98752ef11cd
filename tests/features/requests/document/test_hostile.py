"""Any input is a request or one clear refusal, within a moment."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request

LETTERS = "abcdefghij"
KEYS = [
    *(
        "id",
        "name",
        "description",
        "priority",
        "requested_by",
        "experiment_blocked",
        "experiment_id",
        "inputs",
        "outputs",
    ),
    *(
        "requirements",
        "example_usage",
        "capabilities",
        "hosts",
        "examples",
        "answers",
        "type",
        "schema",
        "default",
        "required",
    ),
    *(
        "optional",
        "example",
        "url",
        "method",
        "status",
        "headers",
        "body",
        "input",
        "arguments",
        "output",
        "expected",
        "x",
    ),
]
WORDS = st.sampled_from(
    [
        *(
            "req_1",
            "a_b",
            "a",
            "high",
            "fullsend",
            "string",
            "list",
            "object",
            "string | null",
            "list[dict]",
            "string (optional)",
        ),
        *("date", "net.http", "example.com", "https://example.com/", "GET", "from tools.a_b import f\nf(a=1)"),
        *("", " ", "\u202e", "\0", "x" * 300),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 600) | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in itertools.pairwise(LETTERS)),
        "a: &a {x: 1}\n" + "".join(f"b{n}: &b{n}\n  <<: [*a, *a]\n" for n in range(9)),
        "[" * 100_000,
        "{a: " * 50_000,
        "tool_request: " + "{x: " * 100_000,
        "tool_request:\n  inputs:\n" + "\n".join(" " * (4 + n) + "-" for n in range(500)),
        "tool_request:\n  description: " + "x" * 10_000_000,
        "\0" * 1_000,
        "tool_request:\n  id: \ud800\n",
        "tool_request:\n  id: x\n  id: y\n",
        "tool_request: !!python/object/apply:os.system [id]\n",
        "tool_request: {}\n---\ntool_request: {}\n",
        "tool_request: {" + ", ".join(f"k{n}: 1" for n in range(20_000)) + "}",
        "tool_request:\n  inputs: [" + ", ".join(["{}"] * 60_000) + "]",
        "tool_request:\n  outputs:\n    - name: a\n      type: object\n      schema: {"
        + ", ".join(f"k{n}: q" for n in range(250))
        + "}\n",
        "tool_request:\n  name: " + "list[" * 60 + "\n",
        "tool_request:\n  requirements: [" + ", ".join(["{a: b}"] * 100) + "]",
        "? " * 100_000,
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_hostile_document_is_one_clear_refusal(text):
    with pytest.raises(ToolError) as caught:
        read_request(text, place="request.yaml")
    error = caught.value
    assert error.kind is Kind.VALIDATION
    assert error.details["line"] >= 1
    assert len(error.message) < 40_000
    assert len(error.details["problems"]) <= 101


def test_messages_show_nothing_that_hides(compose):
    text = compose(**{"na\u202eme": 1, "priority": "\u202eurgent", "requested_by": "\u200bx"})
    with pytest.raises(ToolError) as caught:
        read_request(text, strict=True)
    assert caught.value.message.replace("\n", "").isprintable()
    with pytest.raises(ToolError) as caught:
        read_request(compose(example_usage="x = \u202e1"))
    assert caught.value.message.isprintable()


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=10))
def test_for_any_fields_there_is_a_request_or_one_refusal(outcome, fields):
    basis = {"id": "req_1", "name": "a_b", "description": "d", "priority": "low", "requested_by": "x"}
    for whole in (fields, {**basis, **fields}):
        outcome(json.dumps({"tool_request": whole}), strict=True)


@settings(max_examples=60)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "type", "description", "schema", "default", "required"]), VALUES, max_size=6
        ),
        max_size=3,
    )
)
def test_for_any_inputs_and_outputs_there_is_a_request_or_one_refusal(outcome, entries):
    basis = {"id": "req_1", "name": "a_b", "description": "d", "priority": "low", "requested_by": "x"}
    entries = [{"name": f"a{n}", "type": "object", "description": "d", **entry} for n, entry in enumerate(entries)]
    outcome(json.dumps({"tool_request": {**basis, "inputs": entries, "outputs": entries}}))


@settings(max_examples=examples(300))
@given(
    st.text(max_size=100)
    | st.text(alphabet="tool_request:idname \n-{}[]\"'|>&*!#?%@`,", max_size=100).map("tool_request:\n  ".__add__)
)
def test_for_any_text_there_is_a_request_or_one_refusal(outcome, text):
    outcome(text)
    outcome(text.encode("utf-8", "surrogatepass"))
