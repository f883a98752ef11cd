"""Stacks of JavaScript: what is said of them in one line, and where in a handler it was."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.lib.javascript_error import find_place, sum_up, tell_all
from toolcrib.model.tool import Handler

RUN = Handler(
    root=Path("/work/my tools"),
    folder="sample",
    language="javascript",
    files={"sample/handler.js": b"", "sample/lib/a.js": b""},
)
INSIDE = """TypeError: bad thing
    at Array.map (<anonymous>)
    at look (file:///work/my%20tools/sample/lib/a.js:7:9)
    at async execute (file:///work/my%20tools/sample/handler.js:28:3)"""
REQUIRED = """Error: Cannot find module './missing.js'
Require stack:
- /work/my tools/sample/handler.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Object.<anonymous> (/work/my tools/sample/handler.js:2:1)"""
UNREADABLE = """file:///work/my%20tools/sample/handler.js:2
import { nope } from "./lib/a.js";
         ^^^^
SyntaxError: The requested module './lib/a.js' does not provide an export named 'nope'
    at ModuleJob._instantiate (node:internal/modules/esm/module_job:213:21)"""
PLACELESS = """SyntaxError: Unexpected end of input
    at compileSourceTextModule (node:internal/modules/esm/utils:346:16)"""
BARE = """Error: two
lines
    at /work/my tools/sample/handler.js:3:1"""
OURS = """Error: there is no session
    at hear (/opt/toolcrib/infra/sandbox/child/handler.cjs:60:70)
    at new Later (/elsewhere (1)/x.js:5:1)"""

SUMS = {
    INSIDE: ("TypeError: bad thing (/work/my tools/sample/lib/a.js:7)", "sample/lib/a.js:7"),
    REQUIRED: (
        "Error: Cannot find module './missing.js' (/work/my tools/sample/handler.js:2)",
        "sample/handler.js:2",
    ),
    UNREADABLE: (
        "SyntaxError: The requested module './lib/a.js' does not provide an export named 'nope' (/work/my tools/sample/handler.js:2)",
        "sample/handler.js:2",
    ),
    PLACELESS: ("SyntaxError: Unexpected end of input", ""),
    BARE: ("Error: two (/work/my tools/sample/handler.js:3)", "sample/handler.js:3"),
    OURS: ("Error: there is no session (/elsewhere (1)/x.js:5)", ""),
}


@pytest.mark.parametrize(("stack", "expected"), SUMS.items())
def test_a_stack_comes_to_what_went_wrong_and_where(stack, expected):
    assert (sum_up(stack.splitlines()), find_place({"stack": stack}, RUN)) == expected


@pytest.mark.parametrize(
    "lines",
    [[], [""], ["boo"], ["Traceback (most recent call last):", '  File "x.py", line 1', "ValueError: at home"]],
)
def test_what_is_no_stack_is_not_read_as_one(lines):
    assert sum_up(lines) is None


@given(st.dictionaries(st.sampled_from(["name", "message", "stack"]), st.none() | st.integers() | st.text()))
def test_any_error_of_a_process_can_be_told(described):
    assert isinstance(tell_all(described), str)
    assert find_place(described, RUN) == ""


def test_a_line_without_end_is_read_no_further_than_a_stack_needs():
    letters = random.Random(1)
    line = "    at " + "".join(letters.choice("(:1 a") for _ in range(100_000))
    assert sum_up(["Error: x", line, "    at " + "(" * 100_000, "    at " + ":1" * 100_000]) in {None, "Error: x"}
