"""The commands around tool folders: new, build, registry, doc, prompt, export, latency, and what list and check say."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from toolcrib.toolkit.cli import ExitCode
from warm_python import WarmPython


@pytest.fixture
def shop(cli, tmp_path, monkeypatch):
    """A project with one tool folder, not built yet, in which the commands run."""
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / "toolcrib.toml").write_text("builtins.enabled = false\n")
    assert cli("new", "count-words").code == ExitCode.DONE
    return project


def break_it(project):
    schema = project / "tools" / "count-words" / "schema.json"
    text = json.loads(schema.read_text())
    text["category"] = "magic"
    schema.write_text(json.dumps(text, indent=2))


def test_new_writes_a_folder_and_its_test_and_overwrites_nothing(cli, shop):
    written = sorted(path.relative_to(shop).as_posix() for path in shop.rglob("*") if path.is_file())
    assert written == [
        "tests/test_count_words.py",
        "toolcrib.toml",
        "tools/count-words/doc.md",
        "tools/count-words/doc_summary.md",
        "tools/count-words/handler.js",
        "tools/count-words/schema.json",
    ]
    again = cli("new", "count_words")
    assert again.code == ExitCode.WRONG_USE
    assert "tools/count-words is already there" in again.err


@pytest.mark.parametrize("name", ["../out", "Größe", "", "a" * 80, "_core", "con"])
def test_new_refuses_a_name_that_no_folder_should_have(cli, shop, name):
    before = sorted(shop.rglob("*"))
    assert cli("new", "--", name).code != ExitCode.DONE
    assert sorted(shop.rglob("*")) == before


@pytest.mark.parametrize("words", [[], ["--python"]], ids=["javascript", "python"])
def test_a_new_folder_passes_the_strict_build_and_its_own_examples_and_can_be_called(cli, shop, words):
    assert cli("new", "second-tool", *words).code == ExitCode.DONE
    built = cli("build", "--strict")
    assert built.code == ExitCode.DONE, built.out
    assert "wrote tools/tool_registry.json: 2 tools, 0 warnings" in built.out
    tested = cli("test")
    assert tested.code == ExitCode.DONE, tested.out
    called = cli("call", "second_tool", "text=Every tool has its place")
    assert json.loads(called.out) == {"words": 5}


@pytest.mark.spec("S2-02", "S2-66")
def test_a_broken_folder_fails_the_build_with_place_and_cure_and_keeps_the_old_registry(cli, shop):
    assert cli("build").code == ExitCode.DONE
    registry = shop / "tools" / "tool_registry.json"
    before = registry.read_bytes()
    break_it(shop)
    (shop / "tools" / "count-words" / "doc.md").write_text("# Nothing\n")
    built = cli("build")
    assert built.code == ExitCode.FAILED
    assert "problem: tools/count-words/schema.json:" in built.out
    assert "Missing required section" in built.out
    assert "tools/tool_registry.json stays as it was" in built.out
    assert registry.read_bytes() == before
    assert json.loads(cli("build", "--json").out)[0]["ok"] is False


@pytest.mark.spec("S2-01")
@pytest.mark.parametrize("file", ["schema.json", "doc_summary.md", "doc.md", "handler.js"])
def test_a_folder_without_one_of_its_files_fails_the_build_and_the_file_is_named(cli, shop, file):
    (shop / "tools" / "count-words" / file).unlink()
    built = cli("build")
    assert built.code == ExitCode.FAILED
    assert f"tools/count-words/{file}" in built.out
    assert not (shop / "tools" / "tool_registry.json").exists()


@pytest.mark.spec("S2-01")
def test_a_folder_with_two_handlers_fails_the_build_and_both_are_named(cli, shop):
    (shop / "tools" / "count-words" / "handler.py").write_text("def execute(args, context):\n    return {'ok': True}\n")
    built = cli("build")
    assert built.code == ExitCode.FAILED
    (problem,) = [line for line in built.out.splitlines() if "handler.py" in line]
    assert "tools/count-words/" in problem
    assert "handler.js" in problem


@pytest.mark.spec("S2-67")
def test_registry_says_whether_there_is_one_whether_it_is_stale_and_whether_it_holds_a_tool(cli, shop):
    none = cli("registry")
    assert none.code == ExitCode.FAILED
    assert "no registry is loaded; build one with: crib build" in none.out
    cli("build")
    holds = cli("registry", "count-words")
    assert holds.code == ExitCode.DONE
    assert "count-words: it holds this tool" in holds.out
    version = json.loads((shop / "tools" / "tool_registry.json").read_text())["registryVersion"]
    assert version in holds.out
    missing = cli("registry", "nobody")
    assert missing.code == ExitCode.FAILED
    assert "nobody: it does not hold this tool" in missing.out
    with (shop / "tools" / "count-words" / "handler.js").open("a") as file:
        file.write("// more\n")
    stale = cli("registry", "--json")
    assert stale.code == ExitCode.FAILED
    facts = json.loads(stale.out)
    assert facts["stale"] == [
        {"tool": "count_words", "folder": "tools/count-words", "reason": "changed since the build"}
    ]
    assert facts["registries"][0]["tools"] == []


def test_registry_shows_names_that_a_terminal_would_obey_as_they_are_written(cli, shop):
    cli("build")
    folder = shop / "tools" / "u\x1b[31m"
    folder.mkdir()
    (folder / "schema.json").write_text("{}")
    shown = cli("registry", "\x1b[2J")
    assert "\x1b" not in shown.out
    assert "u\\x1b[31m" in shown.out


def test_a_name_that_leads_elsewhere_is_not_taken_for_a_folder_that_is_built(cli, shop):
    cli("build")
    assert "is not built" not in cli("call", "../other/tools/count_words").err


def test_a_registry_that_cannot_be_read_is_a_problem_with_its_place(cli, shop):
    cli("build")
    (shop / "tools" / "tool_registry.json").write_text('{"tools": ')
    checked = cli("check")
    assert checked.code == ExitCode.FAILED
    assert "tools/tool_registry.json" in checked.out
    assert cli("build").code == ExitCode.DONE
    assert cli("check").code == ExitCode.DONE


def test_what_is_not_built_is_listed_so_and_a_call_says_how_to_build_it(cli, shop):
    listed = cli("list")
    assert "not built" in listed.out
    assert "tools/count-words: not built yet; run: crib build" in listed.out
    assert json.loads(cli("list", "--json").out)[0]["reason"] == "not built: not built yet"
    called = cli("call", "count_words", "text=a b")
    assert called.code == ExitCode.UNKNOWN_TOOL
    assert "tools/count-words is not built" in called.err
    checked = cli("check")
    assert "warning: tools/count-words is not built (not built yet); run: crib build" in checked.out
    assert checked.code == ExitCode.DONE
    cli("build")
    assert "not built" not in cli("list").out


def test_check_tells_every_problem_of_a_folder_without_building_it(cli, shop):
    break_it(shop)
    checked = cli("check")
    assert checked.code == ExitCode.FAILED
    assert "tools/count-words/schema.json" in checked.out
    assert not (shop / "tools" / "tool_registry.json").exists()


@pytest.mark.spec("S2-30")
def test_doc_prints_the_whole_document_and_nothing_for_an_unknown_tool(cli, shop):
    cli("build")
    assert cli("doc", "count_words").out.rstrip("\n") == (shop / "tools/count-words/doc.md").read_text().rstrip("\n")
    unknown = cli("doc", "nobody")
    assert unknown.code == ExitCode.UNKNOWN_TOOL
    assert unknown.out == ""


@pytest.mark.spec("S2-24")
def test_prompt_holds_the_summary_in_every_allowed_mode_within_the_budget(cli, shop):
    cli("build")
    summary = (shop / "tools/count-words/doc_summary.md").read_text().split()
    for mode in ("text", "voice"):
        printed = cli("prompt", "--mode", mode)
        assert " ".join(summary) in " ".join(printed.out.split())
    small = cli("prompt", "--mode", "voice", "--max-characters", "10")
    assert "count_words" not in small.out
    assert "left out for the budget: count_words" in small.err
    assert json.loads(cli("prompt", "--json").out)["included"] == ["count_words"]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini", "anthropic", "mcp"])
def test_export_prints_definitions_alone_and_losses_beside_them(cli, shop, provider):
    cli("build")
    printed = cli("export", "--for", provider)
    assert printed.code == ExitCode.DONE
    (definition,) = json.loads(printed.out)
    assert "count_words" in (definition.get("name"), definition.get("function", {}).get("name"))
    report = json.loads(cli("export", "--for", provider, "--json").out)
    assert report["tools"] == [definition]
    assert bool(report["losses"]) == bool(printed.err)


def test_export_names_what_it_does_not_know_and_can_be_made_to_fail_on_losses(cli, shop):
    (shop / "tools" / "bounded.py").write_text(
        'from typing import Annotated\n\n\ndef bounded(number: Annotated[int, "A number."] = 1) -> int:\n'
        '    """Give back a number."""\n    return number\n'
    )
    assert cli("export", "nobody", "--for", "openai").code == ExitCode.UNKNOWN_TOOL
    assert cli("export", "--for", "nobody").code == ExitCode.WRONG_USE
    strict = cli("export", "bounded", "--for", "openai", "--strict", "--lossless", "--json")
    losses = json.loads(strict.out)["losses"]
    assert strict.code == (ExitCode.FAILED if losses else ExitCode.DONE)


def test_what_is_tried_is_no_part_of_the_journal(cli, shop):
    cli("build")
    assert cli("test").code == ExitCode.DONE
    assert "no tool of this project was called yet" in cli("stats").out


def test_latency_shows_percentiles_of_the_calls_in_the_journal(cli, shop):
    assert "no tool of this project was called yet" in cli("stats").out
    (shop / "tools" / "one.py").write_text('def one() -> int:\n    """One."""\n    return 1\n')
    for _ in range(3):
        assert cli("call", "one").code == ExitCode.DONE
    (latency,) = json.loads(cli("stats", "--json").out)["tools"]
    assert latency["calls"] == 3
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"]
    assert "over budget" in cli("stats").out.lower()


def test_watch_builds_at_every_change_until_it_is_interrupted(shop):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "toolcrib", "build", "--watch"]
    with WarmPython(
        command, cwd=shop, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert "building at every change" in process.stdout.readline()
            assert "1 tool" in process.stdout.readline()
            break_it(shop)
            assert "problem: tools/count-words/schema.json" in process.stdout.readline()
            assert "stays as it was" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=20)
        finally:
            process.kill()
    assert rest == ""
    assert process.returncode == 0


def test_a_handler_whose_packages_are_not_installed_is_refused_with_the_cure(cli, shop):
    assert cli("new", "needy", "--python").code == ExitCode.DONE
    handler = shop / "tools" / "needy" / "handler.py"
    handler.write_text('# /// script\n# dependencies = ["left-pad>=1.0"]\n# ///\n' + handler.read_text())
    assert cli("build").code == ExitCode.DONE
    called = cli("call", "needy", "text=a")
    assert called.code == ExitCode.REFUSED
    assert "run: crib prepare needy" in called.err


def test_an_example_that_does_not_hold_is_marked_and_no_model_is_shown_it(cli, shop):
    doc = shop / "tools" / "count-words" / "doc.md"
    cli("build")
    (shown,) = json.loads(cli("export", "--for", "anthropic").out)
    assert shown["input_examples"]
    text = doc.read_text()
    doc.write_text(re.sub(r'"words": \d+', '"words": 1000', text, count=1))
    assert doc.read_text() != text
    cli("build")
    assert cli("test").code == ExitCode.FAILED
    (without,) = json.loads(cli("export", "--for", "anthropic").out)
    assert len(without.get("input_examples", [])) < len(shown["input_examples"])
    assert "(fails; models are not shown it)" in cli("show", "count_words").out
    doc.write_text(text)
    cli("build")
    assert cli("test").code == ExitCode.DONE
    assert json.loads(cli("export", "--for", "anthropic").out) == [shown]


def test_a_recorded_case_confirms_nothing_unless_a_person_agrees(cli, shop):
    schema = shop / "tools" / "count-words" / "schema.json"
    text = schema.read_text()
    schema.write_text(text.replace('"requiresConfirmation": false', '"requiresConfirmation": true'))
    assert schema.read_text() != text
    (shop / "tests" / "cases").mkdir()
    case = {"name": "planted", "arguments": {"text": "a b"}, "expect": {"value": {"words": 2}}}
    (shop / "tests" / "cases" / "count_words.json").write_text(json.dumps([case]))
    cli("build")
    tried = {each["name"]: each for each in json.loads(cli("test", "--json").out)["cases"]}
    assert tried["planted"]["skipped"] == "the call asks to be confirmed; if the case is yours, run the test with --yes"
    assert tried["planted"]["result"] is None
    agreed = {each["name"]: each for each in json.loads(cli("test", "--yes", "--json").out)["cases"]}
    assert agreed["planted"]["passed"]
