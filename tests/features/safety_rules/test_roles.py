"""Calls without commands and paths, for which the rules about these are not loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_tools import file_run, host_tool
from soaks import examples
from toolcrib import Call, Tool
from toolcrib.features.safety_rules.arguments import read_arguments
from toolcrib.features.safety_rules.roles import MAX_SCREENED, Role, holds_no_command_or_path

PLAIN = host_tool(parameters={})
NAMES = st.sampled_from(
    [
        "text",
        "name",
        "command",
        "commands",
        "sourceFile",
        "path",
        "args",
        "options",
        "program",
        "script",
        "line",
        "a/b",
        "",
    ]
)
TEXTS = st.sampled_from(
    ["hi", "rm -rf /", "/etc/passwd", "~/x", "a/b", "a b/c", "../x", "https://a.b/c", "-1", ".env", ""]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), TEXTS, TEXTS.map(str.encode), TEXTS.map(Path)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)


def is_plain(arguments: dict[str, object], tool: Tool | None = PLAIN) -> bool:
    return holds_no_command_or_path(tool, Call(name="sample", arguments=arguments))


@settings(max_examples=examples(1000))
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_call_is_plain_only_if_the_rules_would_find_no_command_and_no_path_in_it(arguments):
    found = {argument.role for argument in read_arguments(PLAIN, Call(name="sample", arguments=arguments))}
    if is_plain(arguments):
        assert found <= {Role.TEXT, Role.VALUE}
    else:
        assert {Role.COMMAND, Role.PATH} & found or "command" in str(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": "rm -rf / is what the text says"},
        {"name": "Ada", "tags": ["a", "b"], "more": {"city": "Ulm", "size": 3, "none": None}},
        {"url": "https://example.com/a"},
    ],
)
def test_words_and_free_text_are_plain(arguments):
    assert is_plain(arguments)


@pytest.mark.parametrize(
    ("arguments", "tool"),
    [
        ({"command": "ls"}, PLAIN),
        ({"command": [1, 2]}, PLAIN),
        ({"deep": [{"file": "x"}]}, PLAIN),
        ({"name": "/etc/passwd"}, PLAIN),
        ({"files": {"x": 1}}, PLAIN),
        ({"name": Path("/etc/passwd")}, PLAIN),
        ({"name": b"~/x"}, PLAIN),
        ({"words": [f"w{number}" for number in range(MAX_SCREENED)]}, PLAIN),
        ({"name": "Ada"}, None),
        ({"name": "Ada"}, replace(PLAIN, requires=frozenset({"shell.execute"}))),
        ({"name": "Ada"}, replace(PLAIN, run=file_run())),
    ],
)
def test_everything_else_is_left_to_the_rules(arguments, tool):
    assert not is_plain(arguments, tool)


def test_arguments_that_hold_themselves_are_left_to_the_rules():
    loop: dict[str, object] = {"name": "Ada"}
    loop["more"] = loop
    assert not is_plain(loop)
