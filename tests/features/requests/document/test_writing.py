"""A request that is written reads back as what it was made from."""

import json
import keyword

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import write_request
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.toolrequest import MISSING

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}_[a-z0-9]{1,8}", fullmatch=True)
WORDS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda word: not keyword.iskeyword(word))
# Line breaks and tabs, but no control characters, which no text of a request holds.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\r\x85"), min_size=1, max_size=60
).filter(str.strip)
TRICKY = st.sampled_from(
    [
        *(
            "yes",
            "no",
            "null",
            "~",
            "true",
            "1",
            "1.0",
            "0x1F",
            "- a",
            "a: b",
            "a #b",
            "# a",
            "'",
            '"',
            "\\",
            "|",
            ">",
            "%",
            "@",
        ),
        *(
            "*a",
            "&a",
            "!a",
            "{",
            "[",
            "? a",
            "---",
            "...",
            "<<",
            "key:",
            "a:b",
            "=",
            "-",
            "a, b",
            "a (b)",
            "multi word text",
        ),
        *("a\nb", "a\n\n b\n", " a", "a ", "\ta", "a\n\tb", "a\n  \nb", "a\r\nb", "a\nb\n\n", "\na", "a\x85b\nc"),
        *("\u2028a\nb", "\ufeffa\nb", "e\u0301", "😀"),
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | TRICKY,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXTS | TRICKY | st.just(""), children, max_size=3),
    max_leaves=10,
)  # fmt: skip
DEFAULTS = {
    "string": TEXTS | TRICKY | st.just(""),
    "integer": st.integers(-(2**63), 2**64 - 1),
    "boolean": st.booleans(),
    "list": st.lists(ANYTHING, max_size=3),
    "object": st.dictionaries(TEXTS | TRICKY, ANYTHING, max_size=3),
}


@st.composite
def inputs(draw):
    kind = draw(st.sampled_from(sorted(DEFAULTS)))
    entry = {"name": draw(WORDS), "type": kind, "description": draw(TEXTS | TRICKY)}
    return {**entry, **draw(st.fixed_dictionaries({}, optional={"required": st.booleans(), "default": DEFAULTS[kind]}))}


FIELDS = st.fixed_dictionaries(
    {"name": NAMES, "description": TEXTS | TRICKY},
    optional={
        "priority": st.sampled_from(["high", "medium", "low"]),
        "requested_by": st.sampled_from(["fullsend", "no", "a: b", "#1"]),
        "experiment_blocked": st.sampled_from(["exp_1", "null", "1", "a # b", "exp: 1"]),
        "inputs": st.lists(inputs(), max_size=4, unique_by=lambda entry: entry["name"]),
        "outputs": st.lists(
            st.builds(
                lambda name, kind: {"name": name, "type": kind} | ({"schema": {"no": "string | null", "é b": "integer"}} if kind[-1] == "t" else {}),
                WORDS,
                st.sampled_from(["list", "object", "string", "string | null"]),
            ),
            max_size=3,
            unique_by=lambda entry: entry["name"],
        ),
        "requirements": st.lists(TEXTS | TRICKY, max_size=4),
        "example_usage": (TEXTS | TRICKY).map(lambda text: "".join(f"# {line}\n" for line in text.splitlines())),
        "notes": ANYTHING,
    },
)  # fmt: skip


@settings(max_examples=examples(300))
@given(FIELDS)
def test_what_is_written_reads_back_the_same(fields):
    try:
        text = write_request(fields)
    except ToolError as error:
        # Nothing but letters that a request refuses wherever it comes from.
        assume("control character" not in error.message)
        raise
    request = read_request(text, numbered=False)
    assert (request.name, request.description) == (fields["name"], fields["description"])
    assert request.experiment == fields.get("experiment_blocked", "")
    assert request.requested_by == fields.get("requested_by", "fullsend")
    assert request.priority == fields.get("priority", "high" if "experiment_blocked" in fields else "medium")
    assert request.requirements == tuple(fields.get("requirements", []))
    assert request.example_usage == fields.get("example_usage", "")
    for given_input, written in zip(request.inputs, fields.get("inputs", []), strict=True):
        assert (given_input.name, given_input.description) == (written["name"], written["description"])
        assert given_input.default == written.get("default", MISSING)
        assert given_input.required is written.get("required", False)
    assert [given_output.name for given_output in request.outputs or ()] == [
        entry["name"] for entry in fields.get("outputs", [])
    ]
    # Not only what is understood: the very values.
    wanted = {name: value for name, value in fields.items() if value is not None}
    found = read_yaml(text).value["tool_request"]
    assert {name: found[name] for name in wanted} == wanted
    assert write_request(found) == text


def test_the_order_is_that_of_the_format():
    fields = {
        "answers": [{"url": "https://example.com/"}],
        "notes": "kept",
        "example_usage": "from tools.word_counter import count\n\ncount(text='a')\n",
        "requirements": ["Quick: under a second"],
        "outputs": [{"schema": {"word": "string", "last": "string | null"}, "type": "list", "name": "words"}],
        "inputs": [{"default": "no", "description": "d", "type": "string", "name": "text"}],
        "experiment_blocked": "exp_1",
        "description": "Count",
        "name": "word_counter",
        "id": "req_20240115_001",
    }
    assert write_request(fields) == (
        "tool_request:\n"
        "  id: req_20240115_001\n"
        "  name: word_counter\n"
        "  description: Count\n"
        "  priority: high\n"
        "  requested_by: fullsend\n"
        "  experiment_blocked: exp_1\n"
        "  inputs:\n"
        "    - name: text\n"
        "      type: string\n"
        "      description: d\n"
        '      default: "no"\n'
        "  outputs:\n"
        "    - name: words\n"
        "      type: list\n"
        "      schema:\n"
        "        word: string\n"
        '        last: "string | null"\n'
        "  requirements:\n"
        '    - "Quick: under a second"\n'
        "  example_usage: |\n"
        "    from tools.word_counter import count\n"
        "\n"
        "    count(text='a')\n"
        "  answers:\n"
        '    - url: "https://example.com/"\n'
        "  notes: kept\n"
    )
    assert write_request(dict(reversed(fields.items()))) == write_request(fields)


def test_a_field_that_is_none_is_left_out():
    assert "experiment" not in write_request(
        {"name": "a_b", "description": "d", "experiment_blocked": None, "id": None}
    )


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Bad"},
        {"description": ""},
        {"description": "\ud800"},
        {"description": "a\x00"},
        {"inputs": "text"},
        {"inputs": [{"name": "a"}]},
        {"notes": {1: "x"}},
        {"notes": object()},
        {"notes": float("nan")},
        {"notes": 2**64},
        {"notes": {"k" * 501: 1}},
        {"notes": "x" * 300_000},
        {"id": "REQ_1"},
        {"example_usage": "f("},
        {"requirements": [{"a": "b"}]},
    ],
)
def test_what_no_request_can_say_is_refused(change):
    with pytest.raises(ToolError) as caught:
        write_request({"name": "a_b", "description": "d", **change})
    assert caught.value.kind is Kind.VALIDATION


def test_depth_is_bounded():
    value = "x"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ToolError) as caught:
        write_request({"name": "a_b", "description": "d", "notes": value})
    assert "nested deeper than" in caught.value.message


def test_other_libraries_read_the_same():
    yaml = pytest.importorskip("yaml")
    fields = {
        "name": "a_b",
        "description": "on",
        "requirements": ["yes", "1:30", "2024-01-01", "0b1", "1_000", "=", "~"],
    }
    assert yaml.safe_load(write_request(fields))["tool_request"]["requirements"] == fields["requirements"]
    assert json.dumps(yaml.safe_load(write_request(fields))["tool_request"]["description"]) == '"on"'
