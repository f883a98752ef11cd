"""One field is changed, and every other byte stays."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import set_field, with_id, write_request
from toolcrib.lib.yaml import read_yaml

NEW = "req_20250101_007"
FIELDS = ["id", "name", "description", "priority", "requested_by", "experiment_blocked"]


@pytest.fixture(params=["C", "Python"], autouse=True)
def parser(request, monkeypatch):
    """Both parsers of the library: the one in C, and the one that is always there."""
    if request.param == "C" and not yaml.__with_libyaml__:
        pytest.skip("the library was built without its parser in C")
    monkeypatch.setattr(yaml, "__with_libyaml__", request.param == "C")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tool_request:\n  id: req_1\n  name: a_b\n", f"tool_request:\n  id: {NEW}\n  name: a_b\n"),
        ("tool_request:\n  id:   req_1   # old\n", f"tool_request:\n  id:   {NEW}   # old\n"),
        ("tool_request:\n  id: 'req_1'\n", f'tool_request:\n  id: "{NEW}"\n'),
        ('tool_request:\n  "id": "req_1" # é\n', f'tool_request:\n  "id": "{NEW}" # é\n'),
        ("tool_request:\n  id:\n  name: a_b\n", f"tool_request:\n  id: {NEW}\n  name: a_b\n"),
        ("tool_request:\n  id: # none yet\n", f"tool_request:\n  id: {NEW} # none yet\n"),
        ("tool_request:\n  id:", f"tool_request:\n  id: {NEW}"),
        ("tool_request:\n  id: |\n    req_1\n\n\n  name: x\n", f'tool_request:\n  id: "{NEW}"\n\n\n  name: x\n'),
        ("tool_request:\n  id: a\n    b # c\n  name: x\n", f"tool_request:\n  id: {NEW} # c\n  name: x\n"),
        ("tool_request:\n  ? id\n  : req_1\n", f"tool_request:\n  ? id\n  : {NEW}\n"),
        ("tool_request:\r\n  id: x\r\n  name: ü\r\n", f"tool_request:\r\n  id: {NEW}\r\n  name: ü\r\n"),
        ("é: ü\ntool_request:\n  a: &x 1\n  id: *x\n", f"é: ü\ntool_request:\n  a: &x 1\n  id: {NEW}\n"),
        ("tool_request: {id: req_1, name: x}\n", f'tool_request: {{id: "{NEW}", name: x}}\n'),
        ("tool_request: {id: , name: x}\n", None),
        ('{"tool_request": {"id": "req_1"}}', f'{{"tool_request": {{"id": "{NEW}"}}}}'),
        ("\ufefftool_request:\n  id: x\n", f"\ufefftool_request:\n  id: {NEW}\n"),
        # Added where the format has it.
        ("tool_request:\n  # the name\n  name: x\n", f"tool_request:\n  id: {NEW}\n  # the name\n  name: x\n"),
        ("# top\ntool_request: # root\n    name: x", f"# top\ntool_request: # root\n    id: {NEW}\n    name: x"),
        ("tool_request: &a\n  name: x\n", f"tool_request: &a\n  id: {NEW}\n  name: x\n"),
        ("---\ntool_request:\r\n  name: x\r\n...\n", None),
        ("tool_request:\n  &a\n  name: x\n", f"tool_request:\n  &a\n  id: {NEW}\n  name: x\n"),
        ("? tool_request\n: name: x\n", f"? tool_request\n: id: {NEW}\n  name: x\n"),
        ("tool_request: {}\n", f'tool_request: {{"id": "{NEW}"}}\n'),
        ('{"tool_request": {"name": "x"}}', f'{{"tool_request": {{"id": "{NEW}", "name": "x"}}}}'),
        ("tool_request: {\n  name: x\n}\n", f'tool_request: {{"id": "{NEW}", \n  name: x\n}}\n'),
        ("a:\n  id: req_0\ntool_request:\n  inputs:\n    - id: req_1\n", f"a:\n  id: req_0\ntool_request:\n  id: {NEW}\n  inputs:\n    - id: req_1\n"),
    ],
)  # fmt: skip
def test_an_id_is_set_and_nothing_else_changes(before, after):
    changed = with_id(before, NEW)
    if after is not None:
        assert changed == after
    value = read_yaml(before).value
    assert read_yaml(changed).value == {**value, "tool_request": {**value["tool_request"], "id": NEW}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tool_request:\n  id: x\n  name: y\n  inputs: []\n", "tool_request:\n  id: x\n  name: y\n  experiment_blocked: exp_1\n  inputs: []\n"),
        ("tool_request:\n  inputs: []\n  requested_by: f # who\n\n  outputs: []\n",
         "tool_request:\n  inputs: []\n  requested_by: f # who\n  experiment_blocked: exp_1\n\n  outputs: []\n"),
        ("tool_request:\n  description: |\n    a\n\n  inputs: []\n", "tool_request:\n  description: |\n    a\n\n  experiment_blocked: exp_1\n  inputs: []\n"),
        ("tool_request:\n  description: |\n    a", "tool_request:\n  experiment_blocked: exp_1\n  description: |\n    a"),
        ("tool_request:\n  id: x", "tool_request:\n  id: x\n  experiment_blocked: exp_1"),
        ("tool_request:\n  name: [x]\n  inputs: []\n", "tool_request:\n  experiment_blocked: exp_1\n  name: [x]\n  inputs: []\n"),
    ],
)  # fmt: skip
def test_another_field_is_added_behind_those_that_come_before_it(before, after):
    assert set_field(before, "experiment_blocked", "exp_1") == after


@pytest.mark.parametrize(
    "value", ["", "a: b", "yes", "1", "null", "a\nb", "é😀", "#", "a # b", '"', "\\", "\u2028", "\ufeff", "\x07", " a "]
)
def test_any_value_arrives(value):
    for text in ("tool_request:\n  id: x\n", "tool_request:\n  description: x\n", '{"tool_request": {"id": "x"}}'):
        assert read_yaml(set_field(text, "description", value)).value["tool_request"]["description"] == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("tool_request:\n  id: x\n", "inputs", "y"),
        ("tool_request:\n  id: x\n", "nothing", "y"),
        ("tool_request:\n  id: [x]\n", "id", "y"),
        ("tool_request:\n  id: {x: y}\n", "id", "y"),
        ("tool_request:\n  id: &a x\n  b: *a\n", "id", "y"),
        ("a: &a\n  name: x\ntool_request: *a\n", "id", "y"),
        ("tool_request:\n  id: x\n", "id", "\ud800"),
        ("tool_request:\n", "id", "y"),
        ("tool_request: [\n", "id", "y"),
        ("", "id", "y"),
        ("- 1", "id", "y"),
        ("x" * 300_000, "id", "y"),
    ],
)
def test_what_cannot_be_set_is_refused(text, name, value):
    with pytest.raises(ToolError) as caught:
        set_field(text, name, value)
    assert caught.value.kind is Kind.VALIDATION


def test_the_number_of_a_request_is_readable_afterwards():
    text = write_request({"name": "word_counter", "description": "d"})
    request = read_request(with_id(text, NEW))
    assert (request.id, request.digest) == (NEW, read_request(text, numbered=False).digest)


STYLES = st.sampled_from(["{}", "'{}'", '"{}"', "{} # note", "|\n    {}\n", ">-\n    {}\n\n", "{}\n    more"])
LINES = st.sampled_from(["\n", "\n\n", "\n  # note\n", "\n# note\n\n", "  \n"])


@st.composite
def documents(draw):
    """A block of fields in any order and style, with comments between them."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    names = draw(st.permutations([*FIELDS, "inputs", "extra"]))[: draw(st.integers(1, 8))]
    text = draw(st.sampled_from(["", "# é\n", "---\n", "other: [1, {a: b}]\n"])) + "tool_request:" + draw(LINES)
    for name in names:
        value = (
            "[{id: x, name: y}]"
            if name == "inputs"
            else draw(STYLES).format(draw(st.sampled_from(["req_1", "word", "ü", "a b"])))
        )
        text += f"  {name}: {value}{draw(LINES)}"
    return (text.rstrip("\n") if draw(st.booleans()) else text).replace("\n", newline)


@settings(max_examples=examples(120))
@given(documents(), st.sampled_from(FIELDS), st.sampled_from([NEW, "a: b", "yes", "", "two words", "ä"]))
def test_exactly_one_field_changes_and_the_rest_is_kept_to_the_byte(text, name, value):
    before = read_yaml(text).value
    changed = set_field(text, name, value)
    assert read_yaml(changed).value == {**before, "tool_request": {**before["tool_request"], name: value}}
    start, end = 0, 0
    while start < min(len(text), len(changed)) and text[start] == changed[start]:
        start += 1
    while end < min(len(text), len(changed)) - start and text[-1 - end] == changed[-1 - end]:
        end += 1
    removed = text[start : len(text) - end]
    if name not in before["tool_request"]:
        assert removed == ""
    # A comment is never touched.
    assert changed.count("# note") == text.count("# note")
    assert "#" not in removed
