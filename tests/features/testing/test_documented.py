"""Where the cases of a tool come from: its documents, its folder, its project."""

import json
import os
from dataclasses import replace

import pytest

from toolcrib import tool, tool_of
from toolcrib.features.folders.format import read_tool
from toolcrib.features.testing.case_files import find_cases
from toolcrib.infra.files.tool_folder import survey_folder, survey_shared
from toolcrib.testing import FakeContext

SCHEMA = {
    "toolId": "add_up",
    "version": "1.0.0",
    "description": "Add two numbers.",
    "category": "utility",
    "sideEffects": "none",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text"],
    "latencyBudgetMs": 500,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["first", "second"],
        "properties": {
            "first": {"type": "number", "description": "One."},
            "second": {"type": "number", "description": "The other.", "default": 1},
        },
    },
}
HEAD = """# Add up

## Summary
Adds.

## Preconditions
- None

## Postconditions
- None

## Invariants
- None

## Failure Modes
{modes}

## Examples

{examples}

## Common Mistakes
- None
"""
HANDLER = (
    "async def execute(args, context):\n    return {'ok': True, 'data': {'sum': args['first'] + args['second']}}\n"
)


def example(number, arguments, result=""):
    return f"### Example {number}\nAction:\n```json\n{arguments}\n```\n{result}\n"


@pytest.fixture
def folder_tool(tmp_path):
    """The tool of a folder with these examples and failure modes, and where its documentation lies."""

    def make(*examples, modes="- **VALIDATION**: No number"):
        folder = tmp_path / "tools" / "add-up"
        folder.mkdir(parents=True)
        (folder / "schema.json").write_text(json.dumps(SCHEMA))
        (folder / "doc_summary.md").write_text("Adds two numbers.\n")
        (folder / "doc.md").write_text(HEAD.format(modes=modes, examples="\n".join(examples)))
        (folder / "handler.py").write_text(HANDLER)
        root = tmp_path / "tools"
        reading = read_tool(root, "add-up", survey_folder(root, "add-up").files, survey_shared(root).files)
        return reading.tool

    return make


def line_of(tmp_path, text):
    lines = (tmp_path / "tools/add-up/doc.md").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_an_example_of_doc_md_becomes_a_case_with_what_it_says_of_the_result(folder_tool, tmp_path):
    made = folder_tool(
        example(1, '{"first": 1}'),
        example(2, '{"first": 1, "second": 2}', 'Result:\n```json\n{"sum": 3}\n```'),
        example(3, '{"first": 1}', "Result: SESSION_INACTIVE, because it is over"),
        example(4, '{"first": "one"}', "Result: VALIDATION"),
    )
    plain, shown, over, refused = find_cases(made, tmp_path)
    line = line_of(tmp_path, "Example 1") + 2
    assert (plain.name, plain.place) == ("Example 1", f"tools/add-up/doc.md:{line}")
    assert (plain.arguments, plain.expect, plain.problem) == ({"first": 1}, {}, "")
    assert shown.expect == {"contains": {"sum": 3}}
    assert (over.expect, over.context) == ({"error": {"type": "SESSION_INACTIVE"}}, FakeContext(is_active=False))
    assert (refused.expect, refused.problem) == ({"error": {"type": "VALIDATION"}}, "")


def test_a_broken_example_is_a_case_that_fails_with_file_and_line(folder_tool, tmp_path):
    made = folder_tool(
        example(1, '{"first": 1'),
        example(2, '{"first": 1, "third": 3}'),
        example(3, "[1]"),
        example(4, '{"first": 1}', "Result: BUDGET_EXCEEDED"),
    )
    torn, misfit, listed, fine = find_cases(made, tmp_path)
    line = line_of(tmp_path, "Example 1") + 2
    assert torn.place == f"tools/add-up/doc.md:{line}"
    assert torn.problem.startswith(f"line {line + 1} is not JSON")
    assert misfit.place == f"tools/add-up/doc.md:{line_of(tmp_path, 'Example 2') + 2}"
    assert misfit.problem.startswith("the arguments do not fit the schema of add_up: ")
    assert "third" in misfit.problem
    assert "not a JSON object" in listed.problem
    assert fine.problem == ""


def test_a_failure_mode_that_names_no_type_of_error_is_a_case_that_fails(folder_tool, tmp_path):
    made = folder_tool(modes="- **CONFLICTS**: Twice\n- **CONFLICT**: Known\n- **Bad luck**: Unknown")
    near, far = find_cases(made, tmp_path)
    assert (near.name, near.place) == ("Failure Modes", f"tools/add-up/doc.md:{line_of(tmp_path, 'CONFLICTS')}")
    assert near.problem == "'CONFLICTS' is not a type of error; did you mean CONFLICT?"
    assert far.problem.startswith("'Bad luck' is not a type of error; use one of VALIDATION, NOT_FOUND, ")


def test_cases_beside_a_tool_and_in_its_project_are_found(folder_tool, tmp_path):
    made = folder_tool()
    recorded = "- name: {}\n  expect: {{ok: true}}\n"
    (tmp_path / "tools/add-up/cases.yaml").write_text(recorded.format("beside"))
    (tmp_path / "tests" / "cases").mkdir(parents=True)
    (tmp_path / "tests/cases/add_up.json").write_text('[{"name": "named", "expect": {"ok": true}}]')
    (tmp_path / "tests/cases/add-up.yaml").write_text(recorded.format("spelled with a dash"))
    (tmp_path / "tests/cases/other.yaml").write_text(recorded.format("of another tool"))
    found = {case.name: case.place for case in find_cases(made, tmp_path)}
    assert found == {
        "beside": "tools/add-up/cases.yaml:1",
        "named": "tests/cases/add_up.json:1",
        "spelled with a dash": "tests/cases/add-up.yaml:1",
    }


def test_a_file_of_cases_that_cannot_be_read_is_a_case_that_fails(folder_tool, tmp_path):
    made = folder_tool()
    (tmp_path / "tests" / "cases").mkdir(parents=True)
    (tmp_path / "tests/cases/add_up.yaml").write_text("- name: a\n  expcet: {}\n")
    os.mkfifo(tmp_path / "tests/cases/add_up.json")
    pipe, slip, empty = find_cases(made, tmp_path)
    assert (slip.name, slip.place) == ("add_up.yaml", "tests/cases/add_up.yaml:2")
    assert slip.problem == "unknown key 'expcet'; did you mean expect?"
    assert (empty.name, empty.place) == ("add_up.yaml", "tests/cases/add_up.yaml:1")
    assert empty.problem == '\'a\' expects nothing; write "expect": {"ok": true} or more'
    assert "is not a file that can be read" in pipe.problem


def test_examples_of_every_other_dialect_are_cases_too():
    @tool
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello, {name}!"

    made = replace(tool_of(greet), examples=({"name": "Ada"}, {"nmae": "Ada"}))
    good, bad = find_cases(made)
    assert (good.name, good.arguments, good.problem) == ("example 1", {"name": "Ada"}, "")
    assert good.place == str(made.origin)
    assert bad.problem.startswith("the arguments do not fit the schema of greet: ")
    assert find_cases(tool_of(greet)) == []
