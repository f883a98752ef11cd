"""`crib init` and `crib doctor`, which project is meant and who calls, in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from toolcrib import __version__
from toolcrib.interfaces.cli import name_caller


@pytest.mark.spec("S4-31")
def test_init_writes_a_tool_and_a_test_of_it_that_passes(crib, tmp_path, monkeypatch):
    folder = tmp_path / "new project"
    ended = crib("init", str(folder))
    assert ended.code == 0
    assert [line.split()[-1] for line in ended.out.splitlines() if line.startswith("wrote")] == [
        "toolcrib.toml",
        "tools/greet.py",
        "tests/test_greet.py",
        ".gitignore",
    ]
    monkeypatch.chdir(folder)
    assert crib("call", "greet", "name=Ada").out == "Hello, Ada!\n"
    assert crib("check", "--strict").code == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout


def test_init_inside_another_project_writes_tests_that_its_settings_do_not_reach(crib, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--no-such-option"\n')
    (tmp_path / "conftest.py").write_text("import no_such_module\n")
    folder = tmp_path / "sub" / "shop"
    assert crib("init", str(folder)).code == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "says_the_name"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout
    assert crib("init", str(tmp_path)).code == 0
    assert not (tmp_path / "pytest.ini").exists(), "the project's own settings of pytest stay in force"


def test_init_says_what_to_do_next(crib, tmp_path, monkeypatch):
    assert "\n  cd sub\n  crib call greet name=Ada\n" in crib("init", "sub").out
    monkeypatch.chdir(tmp_path / "sub")
    assert "\n  cd" not in crib("init").out


def test_init_overwrites_nothing(crib, tmp_path):
    folder = tmp_path / "old"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "greet.py").write_text("mine")
    (folder / "toolcrib.toml").symlink_to(tmp_path / "nowhere")
    (folder / ".gitignore").write_text("*.log")
    ended = crib("init", str(folder))
    assert (folder / "tools" / "greet.py").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert (folder / ".gitignore").read_text() == "*.log\n.toolcrib/\n"
    assert "kept   tools/greet.py" in ended.out
    crib("init", str(folder))
    assert (folder / ".gitignore").read_text() == "*.log\n.toolcrib/\n"


def test_init_into_a_file_is_wrong_use(crib, host_module):
    (host_module / "file").write_text("")
    assert crib("init", "file").code == 2
    assert crib("init", "file/below").code == 2


def test_doctor_shows_the_settings_that_are_no_defaults_and_where_each_is_set(crib, monkeypatch):
    monkeypatch.setenv("TOOLCRIB_CALLS_TIMEOUT_MS", "1500")
    ended = crib("doctor")
    assert ended.code == 0
    rows = {line.split()[0]: line for line in ended.out.splitlines() if line}
    assert rows["modules.tools"].split(maxsplit=2)[1:] == ["crib_cli_host", "toolcrib.toml"]
    assert rows["calls.timeout_ms"].split(maxsplit=2)[1:] == ["1500", "the environment"]
    assert "calls.max_steps" not in rows
    assert rows["toolcrib:"].endswith(__version__)
    assert rows["caller:"].endswith(name_caller())
    assert rows["files"].startswith("files of code ")
    assert "env" in rows["files"]
    report = json.loads(crib("doctor", "--json").out)
    assert sorted(report["settings"]) == ["calls.timeout_ms", "modules.tools"]
    assert report["settings"]["calls.timeout_ms"] == {
        "value": 1500,
        "where": "the environment",
        "about": "time limit of a call whose tool declares none",
    }
    assert set(report["sandbox"]) == {"plain", "network", "program"}
    assert set(report["sandbox"]["plain"]) >= {"guarantees", "missing"}
    assert report["problems"] == []


def test_doctor_shows_every_setting_with_what_it_means_when_asked_for_all(crib):
    lines = crib("doctor", "--all").out.splitlines()
    row = next(line for line in lines if line.startswith("calls.max_steps"))
    assert row.split(maxsplit=2) == ["calls.max_steps", "20", "the default    how many calls a session may make"]
    settings = json.loads(crib("doctor", "--all", "--json").out)["settings"]
    assert settings['grants."*"']["value"] == ["fs.*"]
    assert settings['grants."*"']["where"] == "the default"
    assert settings["server.port"]["value"] == 8765


def test_doctor_names_the_rules_of_the_operator(crib, host_module):
    with (host_module / "toolcrib.toml").open("a") as file:
        file.write('[[rules]]\nname = "no_network"\nforbidden_patterns = ["curl"]\n')
    assert "no_network" in crib("doctor").out
    rules = json.loads(crib("doctor", "--json").out)["settings"]["rules"]["value"]
    assert rules == [{"name": "no_network", "forbidden_patterns": ["curl"], "include_text": False}]


def test_doctor_names_problems(crib, host_module):
    (host_module / "tools" / "broken.py").write_text("def broken(:\n")
    assert "broken.py:1" in crib("doctor").out


def test_a_folder_below_a_project_belongs_to_it(crib, host_module, monkeypatch):
    below = host_module / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert crib("call", "add", "first=1", "second=2").out == "3\n"


def test_settings_that_open_something_inside_another_project_are_obeyed_only_when_they_are_named(crib, host_module):
    inner = host_module / "inner"
    inner.mkdir()
    (inner / "toolcrib.toml").write_text('[sandbox]\nrequire = ["env"]')
    os.chdir(inner)
    for words in (("list",), ("new", "mine"), ("call", "read_file", "path=toolcrib.toml")):
        ended = crib(*words)
        assert ended.code == 2
        assert ended.err == (
            f"crib: {inner}/toolcrib.toml sets sandbox.require inside the project {host_module}, whose tools may have "
            f"written it; if you trust it, write: -C {inner}, else: -C {host_module}\n"
        )
    assert crib("list", "-C", str(inner)).code == 0
    assert crib("list", "-C", str(host_module)).code == 0


def test_a_folder_that_is_none_is_wrong_use(crib):
    ended = crib("-C", "absent", "list")
    assert ended.code == 2
    assert "absent is not a folder; make one with: crib init" in ended.err


def test_the_caller_is_the_user_of_the_system_and_not_of_the_environment(monkeypatch):
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert name_caller() != "somebody-else"
