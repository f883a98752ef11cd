"""`crib test`: examples and recorded cases, told one by one."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from toolcrib.toolkit.cli import ExitCode

GREET = '''
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
'''
FAR = """
__version__ = "1.0.0"
__tool_type__ = "script"
__executor_id__ = "python_runtime"
__category__ = "samples"
__tool_description__ = "A sample."
__requires__ = ["net.http"]
__documentation__ = {"examples": [{"arguments": {"word": "a"}}, {"arguments": {"wrod": "b"}}]}

def main(word: str) -> str:
    return word
"""
FOLDERS = Path(__file__).parents[2] / "seeds" / "fixtures" / "tool_folders" / "tools"
BROKEN = ', {"arguments": {"wrod": "b"}}'
GOOD = {"name": "a name is greeted", "arguments": {"name": "Ada"}, "expect": {"value": "Hello, Ada!"}}
BAD = {"name": "wrong", "arguments": {"name": "\u202eBo\n"}, "expect": {"value": "Hello, Bo!"}}


@pytest.fixture
def folder(project):
    """Where recorded cases lie, in a project with a plain file and a script."""
    (project / "tools" / "greet.py").write_text(GREET)
    scripts = project / ".ai" / "tools" / "samples"
    scripts.mkdir(parents=True)
    (scripts / "far.py").write_text(FAR)
    (project / "tests" / "cases").mkdir(parents=True)
    return project / "tests" / "cases"


@pytest.fixture
def run(folder, project, monkeypatch, cli):
    """Run the command in that project."""
    monkeypatch.chdir(project)
    return partial(cli, "test")


def test_every_case_has_a_line_and_a_difference_has_its_path(run, folder):
    (folder / "greet.json").write_text(json.dumps([GOOD, BAD], indent=1))
    ended = run("greet")
    good, bad, reason, summary = ended.out.splitlines()
    assert good.startswith("ok       greet: a name is greeted (tests/cases/greet.json:2, 0.")
    assert good.endswith(" s)")
    assert bad.startswith("FAIL     greet: wrong (tests/cases/greet.json:")
    assert reason == '         value: expected "Hello, Bo!", got "Hello, \\u202eBo\\n!"'
    assert summary == "2 cases: 1 ok, 1 failed, 0 skipped, 0 warnings"
    assert ended.code == ExitCode.FAILED


def test_all_that_is_right_ends_well_and_what_cannot_be_tried_is_said(run, folder):
    (folder / "greet.json").write_text(json.dumps([GOOD]))
    (folder.parent.parent / ".ai/tools/samples/far.py").write_text(FAR.replace(BROKEN, ""))
    ended = run()
    skipped = [line for line in ended.out.splitlines() if line.startswith("skipped")]
    assert [line.split(" (")[0] for line in skipped] == ["skipped  far: example 1"]
    assert '         needs net.http; write "far" = ["net.http"] under [grants] in toolcrib.toml, or ' in ended.out
    assert ended.out.splitlines()[-1] == "2 cases: 1 ok, 0 failed, 1 skipped, 0 warnings"
    assert ended.code == ExitCode.DONE


def test_an_example_that_does_not_fit_fails_with_its_place_though_the_tool_could_not_run(run):
    ended = run("far")
    assert "FAIL     far: example 2 (.ai/tools/samples/far.py:" in ended.out
    assert "the arguments do not fit the schema of far" in ended.out
    assert ended.code == ExitCode.FAILED


def test_a_file_of_cases_can_be_named_for_one_tool(run, folder, tmp_path):
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps([GOOD]))
    (folder / "greet.json").write_text(json.dumps([BAD]))
    ended = run("greet", "--cases", str(elsewhere))
    assert ended.out.splitlines()[-1] == "1 case: 1 ok, 0 failed, 0 skipped, 0 warnings"
    for names in ((), ("greet", "far")):
        ended = run(*names, "--cases", str(elsewhere))
        assert "write: crib test NAME --cases FILE" in ended.err
        assert ended.code == ExitCode.WRONG_USE


def test_a_file_of_cases_that_is_broken_fails_with_line_and_cure(run, folder):
    (folder / "greet.yaml").write_text("- name: a\n  argument: {}\n")
    ended = run("greet")
    assert "FAIL     greet: greet.yaml (tests/cases/greet.yaml:2, " in ended.out
    assert "         unknown key 'argument'; did you mean arguments?" in ended.out
    assert ended.code == ExitCode.FAILED


def test_a_report_as_json_holds_every_case_with_its_result(run, folder):
    (folder / "greet.json").write_text(json.dumps([GOOD, BAD]))
    ended = run("greet", "--json")
    report = json.loads(ended.out)
    assert report["ok"] is False
    assert [case["passed"] for case in report["cases"]] == [True, False]
    assert {case["tool"] for case in report["cases"]} == {"greet"}
    assert report["cases"][0]["result"]["value"] == "Hello, Ada!"
    assert report["cases"][1]["reasons"] == ['value: expected "Hello, Bo!", got "Hello, \u202eBo\\n!"']
    assert ended.code == ExitCode.FAILED


def test_a_tool_that_is_named_and_has_nothing_to_try_is_no_success(run):
    ended = run("greet")
    assert "greet has no examples and no cases; write tests/cases/greet.yaml" in ended.err
    assert ended.code == ExitCode.FAILED
    assert json.loads(run("greet", "--json").out) == {"ok": True, "cases": [], "untested": ["greet"]}


def test_an_unknown_name_is_met_with_a_hint(run):
    ended = run("gret")
    assert "Tool 'gret' not found; did you mean greet?" in ended.err
    assert ended.code == ExitCode.UNKNOWN_TOOL


def test_the_mode_of_a_run_is_that_of_every_case_without_one(run, folder):
    (folder / "greet.json").write_text(json.dumps([GOOD]))
    assert run("greet", "--mode", "voice").code == ExitCode.DONE


@pytest.fixture
def folders(project):
    """The guide's own folders in that project."""
    shutil.copytree(FOLDERS / "page-title", project / "tools" / "page-title")
    shutil.copytree(FOLDERS / "kb-search", project / "tools" / "kb-search")
    return project / "tools"


def test_a_folder_that_is_not_built_is_no_success(run, folders):
    ended = run()
    assert "FAIL     kb_search: build (tools/kb-search, " in ended.out
    assert "run: crib build" in ended.out
    assert ended.code == ExitCode.FAILED


def test_a_folder_that_is_named_and_not_built_fails_in_the_same_words(run, folders, cli):
    told = [line for line in run().out.splitlines() if "kb_search" in line or "not built" in line]
    ended = run("kb_search", "greet")
    assert ended.out.splitlines()[:2] == told[:2]
    assert ended.code == ExitCode.FAILED
    for spelling in ("kb-search", "tools/kb_search"):
        assert run(spelling).code == ExitCode.FAILED
    assert run("other/kb_search").code == ExitCode.UNKNOWN_TOOL
    assert cli("build").code == ExitCode.DONE
    handler = folders / "kb-search" / "handler.js"
    handler.write_text(handler.read_text() + "\n")
    stale = run("kb_search")
    assert "         it is not built (changed since the build); run: crib build" in stale.out
    assert stale.code == ExitCode.FAILED


def test_which_examples_failed_is_remembered_and_a_file_of_cases_says_nothing_about_them(run, folders, project, cli):
    document = folders / "kb-search" / "doc.md"
    document.write_text(document.read_text().replace('"total": 7', '"total": 8'))
    assert cli("build").code == ExitCode.DONE
    record = project / ".toolcrib" / "examples.json"
    run("kb_search")
    [failing] = json.loads(record.read_text()).values()
    assert failing == [{"query": "return order", "top_k": 1}]
    before = record.read_bytes()
    (project / "fine.json").write_text(json.dumps([{"name": "a", "arguments": failing[0], "expect": {"ok": True}}]))
    assert run("kb_search", "--cases", "fine.json").code == ExitCode.DONE
    assert record.read_bytes() == before
    record.unlink()
    record.mkdir()
    ended = run("kb_search")
    assert "which examples of kb_search failed is not remembered: " in ended.err
    assert ended.code == ExitCode.FAILED


@pytest.mark.spec("S2-55")
def test_the_documents_of_folders_run_and_a_lie_in_one_is_found(run, folders, project, cli):
    document = folders / "kb-search" / "doc.md"
    document.write_text(
        document.read_text().replace('"total": 7', '"total": 8').replace("**VALIDATION**", "**TOO_LONG**")
    )
    schema = folders / "page-title" / "schema.json"
    schema.write_text(json.dumps({**json.loads(schema.read_text()), "requires": ["mail.send"]}))
    (project / ".ai/tools/samples/far.py").unlink()
    assert cli("build").code == ExitCode.DONE
    ended = run()
    assert ended.code == ExitCode.FAILED
    assert "FAIL     kb_search: Example 1: A Question About Returns (tools/kb-search/doc.md:25, " in ended.out
    assert "         value.total: expected 8, got 7\n" in ended.out
    assert "FAIL     kb_search: Failure Modes (tools/kb-search/doc.md:18, " in ended.out
    assert "         'TOO_LONG' is not a type of error; " in ended.out
    assert ended.out.count('         needs mail.send; write "page_title" = ["mail.send"] under [grants]') == 3
    assert ended.out.splitlines()[-1].startswith("7 cases: 2 ok, 2 failed, 3 skipped, ")
    granted = run("page_title", "--grant", "mail.send")
    assert granted.out.splitlines()[-1].startswith("3 cases: 3 ok, 0 failed, 0 skipped, ")
    assert granted.code == ExitCode.DONE
