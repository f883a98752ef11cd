"""The first files of a new tool: they build without a word, and their own test passes."""

import subprocess
import sys

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.build import build, starter_files
from toolcrib.features.folders.documentation import Absent, doc_examples, failure_modes
from toolcrib.testing import cases_of, check_sync


def write(project, files):
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)


@pytest.mark.parametrize("language", ["javascript", "python"])
@pytest.mark.parametrize("name", ["x", "kb-search", "kb_search", "a1-b2_c3", "a" * 64])
def test_they_build_without_a_warning(project, name, language):
    write(project, starter_files(name, language))
    built = build(project / "tools", project=project, strict=True)
    assert (built.problems, built.warnings) == ((), ())
    assert built.tools == (name.replace("-", "_"),)


def test_they_lie_where_tools_and_tests_lie():
    assert sorted(starter_files("kb_search")) == [
        "tests/test_kb_search.py",
        "tools/kb-search/doc.md",
        "tools/kb-search/doc_summary.md",
        "tools/kb-search/handler.js",
        "tools/kb-search/schema.json",
    ]
    assert "tools/kb-search/handler.py" in starter_files("kb_search", "python")


def test_their_examples_show_what_comes_out():
    documentation = starter_files("x")["tools/x/doc.md"]
    first, second = doc_examples(documentation)
    assert (first.problem, first.expected) == ("", {"words": 5})
    assert len(first.arguments["text"].split()) == 5
    assert (second.problem, second.expected, second.expected_error) == ("", Absent, "VALIDATION")
    assert all(mode.known for mode in failure_modes(documentation))


def test_their_examples_and_their_own_tests_pass(project):
    write(project, {**starter_files("word-count"), **starter_files("count_words", "python")})
    assert build(project / "tools", project=project).problems == ()
    with Crib(project) as crib:
        for name in ("word_count", "count_words"):
            cases = cases_of(crib, name)
            assert len(cases) == 2
            check_sync(crib, name, cases)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(project)]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 passed" in run.stdout


@pytest.mark.parametrize(
    "name",
    ["", "-x", "_core", ".git", "x-", "x--y", "a/b", "../x", "a b", "X", "ä", "1x", "x\n", "a" * 65, "x.js"],
)
def test_a_name_that_could_not_be_a_folder_and_a_tool_is_refused(name):
    with pytest.raises(ToolError, match="use 1 to 64 letters a-z, digits") as refusal:
        starter_files(name)
    assert refusal.value.kind is Kind.VALIDATION


@pytest.mark.parametrize("name", ["con", "nul", "com1", "node_modules", "venv"])
def test_a_name_that_other_programs_take_is_refused(name):
    with pytest.raises(ToolError, match="is taken by other programs"):
        starter_files(name)


def test_a_language_that_no_handler_can_have_is_refused():
    with pytest.raises(ToolError, match="use javascript or python"):
        starter_files("x", "ruby")
