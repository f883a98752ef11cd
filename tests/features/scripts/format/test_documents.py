"""YAML, TOML and JSON files: the same keys, and every fault at its line."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import ToolError
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.lib.documents import read_json, read_toml
from toolcrib.lib.positions import json_lines, toml_lines


class TestDocuments:
    @pytest.mark.spec("S3-01")
    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("x.yaml", "tool_id: a\nb: [", "3: did not find expected node content; correct the YAML there"),
            ("x.yaml", "tool_id: a\n\tb: 1", "2: a tab cannot indent YAML; write spaces"),
            ("x.yaml", b"tool_id: \xff", "1:10: is not UTF-8; save the document as UTF-8"),
            ("x.json", '{\n "tool_id": }', "2:13: expecting value; correct the JSON there"),
            ("x.json", '{"tool_id": "a",\n "tool_id": "b"}', " the key 'tool_id' stands twice in one object; remove one"),
            ("x.json", b'{"tool_id": \xff}', "1:13: is not UTF-8; save the document as UTF-8"),
            ("x.json", '{"tool_id": 99999999999999999999999}', " tool_id: an integer beyond 64 bit does not arrive unchanged"),
            ("x.toml", "tool_id = \nb = 1", "1:11: invalid value; correct the TOML there"),
            ("x.toml", "tool_id = 2024-01-01", " tool_id: a date is not a JSON value"),
            ("x.yaml", "tool_id: a".encode("utf-16"), "1:1: is not UTF-8; save the document as UTF-8"),
        ],
    )  # fmt: skip
    def test_one_that_cannot_be_read_is_refused_with_its_line(self, name, text, message, problems):
        assert problems(f"ops/{name}", text)[0].startswith(message)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("package.json", '{"name": "x", "version": "1.0.0", "description": "D"}'),
            ("data.json", "[1, 2]"),
            ("tsconfig.json", "{ // a comment\n}"),
            ("values.yaml", "replicas: {{ .Values.replicas }}\n"),
            ("manifests.yaml", "kind: A\n---\nkind: B\n"),
            ("notes.yaml", "about: [tool_id, tool_type]\n"),
            ("list.yaml", "- tool_id\n"),
            ("pyproject.toml", "[project]\nname = 'x'\n"),
            ("empty.yaml", ""),
        ],
    )
    def test_data_is_no_tool(self, name, text, load):
        assert load(f"ops/{name}", text) == []

    def test_json_and_toml_faults_are_told_at_their_own_line(self, problems):
        fields = {
            "tool_id": "a-b",
            "tool_type": "script",
            "version": "1.0.0",
            "description": "D",
            "executor_id": "bash",
        }
        listed = [{"name": "a", "type": "string"}, {"name": "b", "type": "strong"}]
        text = json.dumps({**fields, "category": "ops", "parameters": listed}, indent=1)
        assert problems("ops/x.json", text)[0].startswith("15: parameters[1].type: 'strong' is unknown")
        text = "".join(f"{name} = {value!r}\n" for name, value in {**fields, "category": "ops"}.items())
        text += "[[parameters]]\nname = 'a'\ntype = 'string'\n[[parameters]]\nname = 'b'\n\ntype = 'strong'\n[config]\nargs = 1\n"
        first, second = problems("ops/x.toml", text)
        assert first.startswith("15: config.args: must be a list")
        assert second.startswith("13: parameters[1].type: 'strong' is unknown")

    @settings(max_examples=examples(200))
    @given(
        st.recursive(
            st.none() | st.integers(0, 9) | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=12,
        ),
        st.sampled_from([None, 1]),
    )
    def test_the_lines_of_json_are_those_of_its_keys(self, value, indent):
        text = json.dumps(value, indent=indent)
        lines = json_lines(text)

        def check(inner, at):
            if isinstance(inner, dict):
                for key, part in inner.items():
                    assert json.dumps(key) + ":" in text.split("\n")[lines[*at, key] - 1]
                    check(part, (*at, key))
            elif isinstance(inner, list):
                for index, part in enumerate(inner):
                    if isinstance(part, str):
                        assert json.dumps(part) in text.split("\n")[lines[*at, index] - 1]
                    check(part, (*at, index))

        assert read_json(text) == value
        check(value, ())

    def test_the_lines_of_toml_are_those_of_its_tables_and_keys(self):
        text = 'a = """\nb = 1\n[c]\n"""\n"d e".f = 1\n[x.y]\nz = 1\n[[p]]\nq = 1\n[[p.r]]\ns = 1\n[[p]]\nq = [\n 1]\n'
        read_toml(text, "x")
        assert toml_lines(text) == {
            ("a",): 1, ("d e", "f"): 5, ("x", "y"): 6, ("x", "y", "z"): 7, ("p", 0): 8, ("p", 0, "q"): 9,
            ("p", 0, "r", 0): 10, ("p", 0, "r", 0, "s"): 11, ("p", 1): 12, ("p", 1, "q"): 13,
        }  # fmt: skip


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(["", "x", "string", "deploy", "1.0.0", "fs.read"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "type", "required", "enum", "pattern", "default", "items", "properties", "examples", "url", "env", "args", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip
NAMES = [
    "tool_id",
    "category",
    "tool_type",
    "version",
    "description",
    "executor_id",
    "requires",
    "parameters",
    "outputs",
    "actions",
    "tags",
    "config",
    "input_schema",
    "output_schema",
    "timeout",
    "retry_policy",
    "cost",
    "documentation",
    "metadata",
    "hosts",
]


@settings(max_examples=examples(400))
@given(st.dictionaries(st.sampled_from(NAMES), VALUES), st.sampled_from(["script", "runtime", "library", 1]))
def test_for_any_fields_there_are_tools_or_one_refusal(fields, kind):
    whole = {"tool_id": "a-b", "category": "ops", "version": "1.0.0", "description": "D", "executor_id": "bash"}
    text = json.dumps({**whole, "tool_type": kind, **fields})
    try:
        tools = ScriptFile(Path("t")).read(Path("t/ops/x.json"), text.encode())
        problems = []
    except ToolError as error:
        tools = []
        problems = error.message.split("\n")
    assert all(tool.content_hash for tool in tools)
    assert all(line.startswith("t/ops/x.json:1: ") for line in problems)
