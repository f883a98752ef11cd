"""`--json` on every command: one JSON document on standard output, also for errors, and nothing else there."""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from toolcrib.core.plugins import Plugins
from toolcrib.features.requests.demo import HONEST, REQUEST
from toolcrib.interfaces.cli.program import cli as program
from toolcrib.toolkit.cli.group import AnswerOption, WordsCommand
from warm_python import WarmPython

SECONDS = 60
SINK = Path(__file__).parents[2] / "seeds" / "fixtures" / "ai_tools" / "sinks" / "file_sink.py"
LONG = '''
def long(letters: int) -> str:
    """Return a long text."""
    return "x" * letters
'''
TOOL = {
    "schemaVersion": "toolcrib-1",
    "slug": "forecast",
    "version": "v1",
    "displayName": "Forecast",
    "isEnabled": True,
    "type": "http",
    "argSchema": {"type": "object", "properties": {}},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://weather.example/today"},
}
# Commands whose real run with --json is a test beside the others of that command.
ELSEWHERE = {"secret login", "demo missing-tool"}


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands that do something, by what one types after `crib`."""
    waiting = [(name, program.get_command(click.Context(program), name)) for name in Plugins().named("commands")]
    while waiting:
        words, command = waiting.pop()
        assert command is not None
        if isinstance(command, click.Group):
            waiting += [(f"{words} {name}", each) for name, each in command.commands.items()]
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield words, command


COMMANDS = dict(every_command())


def keys_of(command: click.Command) -> set[str] | None:
    """The keys that the help of a command that acts names."""
    return next((set(each.keys) for each in command.params if isinstance(each, AnswerOption)), None)


def test_every_command_has_json_output():
    for words, command in COMMANDS.items():
        spelled = {spelling for each in command.params for spelling in each.opts}
        if isinstance(command, WordsCommand):
            spelled |= {spelling for option in command.options for spelling in option.spellings}
        assert "--json" in spelled, f"crib {words} has no --json"


@pytest.fixture
def run(tmp_path, monkeypatch, cli):
    """Run a command with `--json` in a project; its standard output is one document with the keys of its help."""
    monkeypatch.chdir(tmp_path)
    seen: set[str] = set()

    def start(line, *more, code=0, typed=""):
        stdin = io.TextIOWrapper(io.BytesIO(typed.encode()))
        monkeypatch.setattr(sys, "stdin", stdin)
        ended = cli(*line.split(), *more, "--json")
        assert ended.code == code, (line, ended)
        found = json.loads(ended.out)
        words = next(words for words in (line.split()[:2], line.split()[:1]) if " ".join(words) in COMMANDS)
        if code == 0 and (keys := keys_of(COMMANDS[" ".join(words)])) is not None:
            assert set(found) == keys, line
            seen.add(" ".join(words))
        return found

    start.seen = seen  # type: ignore[attr-defined]  # a function may have attributes
    return start


def test_each_command_that_acts_prints_one_document(run, tmp_path):
    """One test: each command uses what those before it made."""
    assert run("init .")["files"][0] == {"file": "toolcrib.toml", "written": True}
    (tmp_path / "tools" / "long.py").write_text(LONG)
    (tmp_path / "toolcrib.toml").write_text('calls.result_bytes = 100\nbuilder.maker = "person"\n')
    _enable_and_ask(run)
    _store_bundles(run, tmp_path)
    _move_tools(run, tmp_path)
    _keep_access(run)
    _request_a_tool(run, tmp_path)
    _write_tools(run, tmp_path)
    expected = {words for words, command in COMMANDS.items() if keys_of(command) is not None}
    assert expected - run.seen == {*ELSEWHERE, "serve"}


def _enable_and_ask(run):
    assert run("disable greet") == {"name": "tools/greet@1.0.0", "enabled": False, "reason": None}
    assert run("enable greet")["enabled"] is True
    assert run("doc greet")["tool"] == "tools/greet@1.0.0"
    assert run("help bundle load")["command"] == "crib bundle load"
    assert run("completion bash")["shell"] == "bash"
    kept = run("call long letters=5000")["meta"]["kept"]
    rest = run(f"result {kept['handle']} --offset 4990")
    assert (rest["text"], rest["offset"], rest["next"]) == ("x" * (rest["total"] - 4990), 4990, None)
    assert run("page")["seconds"] == 600
    assert run("mcp install cursor")["written"] is False


def _store_bundles(run, tmp_path):
    (tmp_path / "forecast.json").write_text(json.dumps(TOOL))
    made = run("bundle new weather")
    assert run("bundle put weather forecast.json")["tools"][0]["outcome"] == "made"
    exported = run("bundle export weather")
    assert (exported["id"], exported["file"], exported["tools"]) == (made["id"], "weather.zip", 1)
    assert run("bundle import weather.zip --as climate")["enabled"] is False
    (tmp_path / "samples").mkdir()
    shutil.copy(tmp_path / "forecast.json", tmp_path / "samples")
    (tmp_path / "samples" / "bundle.json").write_text('{"slug": "samples", "displayName": "S", "isEnabled": true}')
    assert run("bundle load samples")["bundle"] == "made"
    assert run("enable climate/*")["name"] == "climate/*"
    assert run("bundle remove climate/forecast@v1", code=5)["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert run("bundle remove climate/forecast@v1 --yes")["version"] == "v1"
    assert run("bundle delete climate")["slug"] == "climate"
    # A document that failed in part tells what was done, and ends with 1.
    (tmp_path / "samples" / "forecast.json").write_text(json.dumps({**TOOL, "displayName": "Another"}))
    assert run("bundle load samples", code=1)["tools"][0]["outcome"] == "differs"


def _move_tools(run, tmp_path):
    key = run("depot key signing.key")
    assert key["created"] is True
    assert run("depot key signing.key") == {**key, "created": False}
    assert run("publish greet --to depot --sign signing.key")["signedBy"] == key["key"]
    (tmp_path / "tools" / "greet.py").unlink()
    assert run("pull greet --from depot")["files"] == [str(tmp_path / "tools" / "greet.py")]


def _keep_access(run):
    assert run("secret set WEATHER_KEY", typed="s3cret")["name"] == "WEATHER_KEY"
    assert run("secret remove WEATHER_KEY") == {"name": "WEATHER_KEY", "stillIn": None}
    token = run("token create ci --scope read")
    assert run(f"token revoke {token['id']}")["name"] == "ci"


def _request_a_tool(run, tmp_path):
    (tmp_path / "wanted.yaml").write_text(REQUEST)
    number = run("request new wanted.yaml")["id"]
    assert run("request new wanted.yaml --dry-run")["name"] == "email_validator"
    assert run(f"request allow {number} --nothing")["allowance"]["hosts"] == []
    assert run(f"request cancel {number}")["status"] == "cancelled"
    assert run(f"request retry {number}")["status"] == "pending"
    (built,) = run("builder run --once")["requests"]
    assert (built["id"], built["held"]) == (number, True)
    (tmp_path / "email_validator.py").write_text(HONEST)
    assert run(f"request deliver {number} email_validator.py")["status"] == "ready"


def _write_tools(run, tmp_path):
    assert run("new order-status --python")["tool"] == "order_status"
    assert run("prepare greet") == {"tool": "greet", "python": None, "packages": [], "steps": []}
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("create table customers (id integer primary key, name text)")
    database.close()
    assert run("sql new shop.sqlite customers") == {"tool": "find-customers", "file": "tools/find_customers.yaml"}


def test_a_sink_prints_how_many_events_it_wrote(tmp_path):
    sinks = tmp_path / ".ai" / "tools" / "sinks"
    sinks.mkdir(parents=True)
    shutil.copy(SINK, sinks)
    words = ["-m", "toolcrib", "sink", "file_sink", "path=log.jsonl", "--json", "-C", str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with WarmPython([sys.executable, *words], text=True, **pipes) as child:
        out, err = child.communicate("one\ntwo\n", timeout=SECONDS)
    assert child.returncode == 0, err
    assert json.loads(out)["written"] == 2


def test_a_server_prints_its_address_on_one_line_and_nothing_else(tmp_path):
    (tmp_path / "toolcrib.toml").write_text("")
    words = ["-m", "toolcrib", "serve", "--port", "0", "--json", "-C", str(tmp_path)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with WarmPython([sys.executable, *words], env=environment, **pipes) as server:
        assert select.select([server.stdout], [], [], SECONDS)[0], "the server did not start"
        line = server.stdout.readline()
        server.terminate()
        rest, _ = server.communicate(timeout=SECONDS)
    found = json.loads(line)
    assert set(found) == keys_of(COMMANDS["serve"])
    assert (found["root"], rest) == (str(tmp_path), "")


@pytest.mark.parametrize(
    ("line", "code", "kind"),
    [
        ("show nonsense", 4, "NOT_FOUND"),
        ("check nonsense", 4, "NOT_FOUND"),
        ("call nonsense", 4, "NOT_FOUND"),
        ("enable nonsense", 4, "NOT_FOUND"),
        ("test nonsense", 4, "NOT_FOUND"),
        ("sink nonsense", 4, "NOT_FOUND"),
        ("bundle delete nonsense", 1, "NOT_FOUND"),
        ("secret remove NOTHING", 1, "NOT_FOUND"),
        ("token revoke nothing", 1, "NOT_FOUND"),
        ("add nowhere.py", 1, "VALIDATION"),
        ("request submit nowhere.yaml", 1, "PERMANENT"),
        ("call", 2, "VALIDATION"),
        ("call greet --nonsense", 2, "VALIDATION"),
        ("enable", 2, "VALIDATION"),
        ("list --nonsense", 2, "VALIDATION"),
        ("nonsense", 2, "VALIDATION"),
        ("list -C nowhere", 2, "VALIDATION"),
        ("mcp --url http://127.0.0.1:9 -C .", 2, "VALIDATION"),
    ],
)
def test_an_error_is_one_document_with_kind_message_cure_and_exit_code(project, monkeypatch, cli, line, code, kind):
    (project / "toolcrib.toml").write_text("")
    monkeypatch.chdir(project)
    plain = cli(*line.split())
    ended = cli(*line.split(), "--json")
    assert (plain.code, ended.code) == (code, code), ended
    document = json.loads(ended.out)
    assert document["ok"] is False
    assert document["error"]["type"] == kind
    assert document["error"]["message"].splitlines()[0] in plain.err
    if line != "call nonsense":  # its document is the result of the call
        assert document["exitCode"] == code
        assert set(document["error"]) >= {"type", "message", "cure", "retryable", "details"}


def test_a_cure_is_a_field_of_its_own(project, monkeypatch, cli):
    (project / "toolcrib.toml").write_text("")
    monkeypatch.chdir(project)
    error = json.loads(cli("bundle", "export", "nonsense", "--json").out)["error"]
    assert error["cure"] == "list them with: crib bundle list"


def test_help_is_not_turned_into_an_error_by_json(cli):
    ended = cli("call", "--help", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Usage: crib call")
