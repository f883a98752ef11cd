"""What people break in their first hour, one test each: the message names the place and what helps."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

PYTHON_CRASH = '''
import os, signal
def crash() -> str:
    """Crash."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return ""
'''
BASH = "#!/bin/bash\n# {does}\n{body}\n"


@pytest.fixture
def project(tmp_path, empty_home, monkeypatch):
    """A project in which tools may start programs."""
    (tmp_path / "toolcrib.toml").write_text('[grants]\n"*" = ["fs.*", "shell.execute"]\n')
    (tmp_path / "tools").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, name: str, text: str) -> None:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_syntax_error_is_told_in_pythons_words_with_a_caret_below_the_line(cli, project):
    write(project, "tools/broken.py", 'def broken(a: int) -> int:\n    """Break."""\n    return (a +\n')
    ended = cli("check")
    assert ended.code == 1
    assert "problem: tools/broken.py:3: '(' was never closed; correct the line\n" in ended.out
    assert "      return (a +\n             ^\n" in ended.out


def test_an_error_in_yaml_is_told_with_its_line_and_a_caret_at_the_column(cli, project):
    write(project, ".ai/tools/bad.yaml", "tool_id: bad\nname: x\n  tool_type: script\n")
    ended = cli("check")
    assert "problem: .ai/tools/bad.yaml:3: a colon is not allowed here; write text with a colon in quotes" in ended.out
    assert "      tool_type: script\n               ^\n" in ended.out


@pytest.mark.parametrize("words", [(), ("--strict",)])
def test_a_request_inside_of_markdown_is_told_to_be_taken_out_of_it(cli, project, words):
    write(project, "request.md", "# A request\n\nSome words.\n\n```yaml\nid: x\nname: y\n```\n")
    ended = cli("request", "submit", *words, "request.md")
    assert ended.code == 1
    assert (
        "request.md:6: the text is Markdown, with YAML between lines of ```; write only the text between them"
        in ended.err
    )


def test_an_error_in_the_settings_is_told_with_line_and_column(cli, project):
    write(project, "toolcrib.toml", "[calls]\ntimeout_ms = [1,\nx\n")
    ended = cli("list")
    assert (ended.code, ended.out) == (2, "")
    assert "toolcrib.toml:3:1: invalid value; correct the TOML there" in ended.err


def test_an_error_in_json_is_told_with_line_and_column(cli, project):
    write(project, "tools/one.py", 'def one(n: int) -> int:\n    """One."""\n    return n\n')
    ended = cli("call", "one", "--args", '{"n": one}')
    assert ended.code == 2
    assert "--args:1:7: expecting value; correct the JSON there" in ended.err


def test_a_crash_is_called_a_crash_and_says_how_to_see_what_was_written(cli, project):
    write(project, "tools/crash.py", PYTHON_CRASH)
    write(project, "tools/fall.sh", BASH.format(does="Fall.", body="echo falling >&2; kill -SEGV $$"))
    for name, said in (
        ("crash", "crash crashed (SIGSEGV) before it returned a result"),
        ("fall", "fall crashed (SIGSEGV): falling"),
    ):
        ended = cli("call", name)
        assert ended.code == 1
        assert f"crib: {said}; see what it wrote to stderr with: crib call {name} --verbose\n" in ended.err
    assert "the tool wrote: falling" in cli("call", "fall", "--verbose").err


@pytest.mark.parametrize("body", ['echo "${GREETING:?}"', 'echo "${GREETING:?say hello}"', 'set -u; echo "$GREETING"'])
def test_a_variable_that_a_bash_file_cannot_do_without_is_named_with_its_grant(cli, project, monkeypatch, body):
    write(project, "tools/hello.sh", BASH.format(does="Say hello.", body=body))
    monkeypatch.setenv("GREETING", "hello")
    ended = cli("call", "hello")
    assert ended.code == 1
    assert (
        "crib: hello reads the variable GREETING, which is not set or not granted to it; "
        "set it and add 'hello:GREETING' to access.variables in toolcrib.toml\n      CAPABILITY_MISSING" in ended.err
    )
    write(project, "toolcrib.toml", '[grants]\n"*" = ["shell.execute"]\n[access]\nvariables = ["hello:GREETING"]\n')
    assert cli("call", "hello").out == "hello\n"


def test_a_missing_secret_says_which_command_stores_it(cli, project):
    write(project, "toolcrib.toml", '[grants]\n"*" = ["net.http"]\n[access]\nvariables = ["orders:SHOP_KEY"]\n')
    write(
        project,
        ".ai/tools/shop/orders.yaml",
        "tool_id: orders\ncategory: shop\ntool_type: http\nversion: 1.0.0\nexecutor_id: http_client\ndescription: Orders.\nrequires: [net.http]\n"
        "config:\n  method: GET\n  url: https://shop.example/orders\n  headers:\n    X-Key: ${secret:SHOP_KEY}\n",
    )
    ended = cli("call", "orders")
    assert "there is no secret of that name; run: crib secret set SHOP_KEY" in ended.err


def test_a_refused_connection_asks_whether_a_server_runs_there(cli, project):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ended = cli("list", "--url", f"http://127.0.0.1:{port}")
    assert (
        f"http://127.0.0.1:{port}: connection refused; is a server running there that speaks http? Start one with: crib serve"
        in ended.err
    )


def test_a_file_in_a_folder_of_scripts_is_named_by_its_whole_path(cli, project):
    write(project, ".ai/tools/deep/odd.yaml", "tool_id: odd\n")
    assert "its file is broken: .ai/tools/deep/odd.yaml:1: " in cli("call", "odd").err


def test_paths_are_told_from_the_projects_root_wherever_a_command_is_run(cli, project, monkeypatch):
    write(project, "tools/broken.py", "def broken(:\n")
    write(project, "deep/below/x.txt", "")
    here = cli("check")
    monkeypatch.chdir(project / "deep/below")
    assert cli("check") == here
    assert "problem: tools/broken.py:1: " in here.out
    assert "its file is broken: tools/broken.py:1: " in cli("call", "broken").err
    assert str(project) not in here.out + cli("call", "broken").err


def test_the_place_of_a_declaration_is_told_from_the_folder_one_is_in(project, monkeypatch, cli):
    (project / "toolcrib.toml").write_text("")
    (project / "tools" / "add.py").write_text('def add(a: int) -> int:\n    """Add."""\n    return a + 1\n')
    monkeypatch.chdir(project)
    assert "VALIDATION (arguments, parameters of add in tools/add.py:1)" in cli("call", "add").err
    monkeypatch.chdir(project / "tools")
    assert "VALIDATION (arguments, parameters of add in add.py:1)" in cli("call", "add", "-C", str(project)).err
