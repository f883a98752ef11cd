"""`crib check --observe`: what a tool does, held against what it declares."""

import http.server
import json
import shutil
import threading

import pytest

from toolcrib.infra.sandbox.child import notifications

if not notifications.is_available():
    pytest.skip("the kernel lets nobody observe", allow_module_level=True)

HEAD = """
__version__ = "1.0.0"
__tool_type__ = "script"
__executor_id__ = "python_runtime"
__category__ = "samples"
__tool_description__ = "A sample."
__requires__ = {requires}
__documentation__ = {{"examples": {examples}}}
"""
READS = """
from pathlib import Path

def main(path: str{default}) -> str:
    try:
        return Path(path).read_text()
    except OSError as problem:
        return type(problem).__name__
"""


@pytest.fixture
def folder(project):
    """Where the tools of a project lie that has nothing but them and a file of data."""
    (project / "toolcrib.toml").write_text("")
    (project / "data.txt").write_text("what was read")
    folder = project / ".ai" / "tools" / "samples"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def crib(project, folder, monkeypatch, cli):
    """Run a command in that project: its exit code, and what it wrote."""
    monkeypatch.chdir(project)
    return cli


@pytest.fixture
def sample(project, folder):
    """Write a tool in Python; the project that it lies in."""

    def write(body, *, requires=(), examples=()):
        head = HEAD.format(requires=list(requires), examples=list(examples))
        (folder / "read-sample.py").write_text(head + body)
        return project

    return write


def test_an_undeclared_effect_fails_and_is_named_with_its_cure(crib, sample):
    data = sample(READS.format(default="")) / "data.txt"
    ended = crib("check", "--observe", "read-sample", f"path={data}")
    assert ended.code == 1
    assert f"problem: read {data}: list fs.read in requires, or leave it be\n" in ended.out
    assert ended.out.endswith("1 run, 1 undeclared effect\n")


def test_a_declared_effect_is_in_order(crib, sample):
    data = sample(READS.format(default=""), requires=["fs.read"]) / "data.txt"
    ended = crib("check", "--observe", "--grant", "fs.read", "read-sample", f"path={data}")
    assert ended.code == 0
    assert " ".join(ended.out.splitlines()[1].split()) == f"read {data} declared fs.read"


def test_what_no_capability_allows_fails_even_if_it_is_declared(crib, sample):
    sample(READS.format(default=""), requires=["fs.read"])
    ended = crib("check", "--observe", "--grant", "fs.read", "read-sample", "path=/etc/hostname")
    assert ended.code == 1
    assert "problem: read /etc/hostname: no capability allows that; leave it be\n" in ended.out


def test_an_unused_declaration_is_suggested_for_removal(crib, sample):
    sample("def main(): return 1", requires=["fs.write"])
    ended = crib("check", "--observe", "--grant", "fs.write", "read-sample")
    assert ended.code == 0
    assert "unused: fs.write was declared and never used; remove it from requires\n" in ended.out


def test_a_run_that_failed_shows_nothing_of_what_is_unused(crib, sample):
    sample("def main(): raise ValueError", requires=["fs.write"])
    ended = crib("check", "--observe", "--grant", "fs.write", "read-sample")
    assert ended.code == 1
    assert "unused" not in ended.out


def test_the_examples_of_a_tool_are_run_and_judged_together(crib, sample):
    files = [str(sample("").joinpath(name)) for name in ("data.txt", "missing.txt")]
    sample(READS.format(default=""), requires=["fs.read"], examples=[{"arguments": {"path": file}} for file in files])
    ended = crib("check", "--observe", "--json", "--grant", "fs.read", "read-sample")
    assert ended.code == 0
    report = json.loads(ended.out)
    assert report["runs"] == 2
    assert report["unused"] == []
    assert [effect["what"] for effect in report["effects"]] == sorted(files)


def test_the_report_as_json_says_everything(crib, sample):
    data = sample(READS.format(default="")) / "data.txt"
    assert json.loads(crib("check", "--observe", "--json", "read-sample", f"path={data}").out) == {
        "ok": False,
        "tool": "project/read-sample@1.0.0",
        "runs": 1,
        "effects": [
            {"act": "read", "what": str(data), "denied": True, "capability": "fs.read", "declared": False},
        ],
        "unused": [],
        "unseen": "",
        "errors": [],
    }


def test_without_examples_and_with_required_arguments_the_cure_is_named(crib, sample):
    sample(READS.format(default=""))
    ended = crib("check", "--observe", "read-sample")
    assert ended.code == 2
    assert "write its arguments: crib check --observe read-sample path=…" in ended.err


def test_without_examples_and_without_required_arguments_the_tool_is_run_as_it_is(crib, sample):
    sample("def main(): return 1")
    ended = crib("check", "--observe", "read-sample")
    assert (ended.code, ended.out) == (0, "1 run, 0 undeclared effects\n")


def test_a_call_that_is_refused_ends_as_a_refused_call(crib, sample):
    sample("def main(): return 1", requires=["mail.send"])
    ended = crib("check", "--observe", "read-sample")
    assert ended.code == 3
    assert "mail.send" in ended.err


def test_an_unknown_tool_is_met_with_a_hint(crib, sample):
    sample("def main(): return 1")
    assert crib("check", "--observe", "read-samples").code == 4


def test_a_tool_has_to_be_named(crib):
    assert crib("check", "--observe").code == 2


def test_a_function_of_the_host_is_said_not_to_be_observed(crib):
    ended = crib("check", "--observe", "list_files")
    assert ended.code == 1
    assert (
        "list_files is a function of the host program and runs in its process, where nothing is observed\n" in ended.out
    )


def test_what_the_platform_does_itself_is_said_not_to_be_observed(crib, sample):
    sample("")
    ended = crib(
        "check", "--observe", "--grant", "fs.read", "--grant", "fs.write", "filesystem", "operation=list", "path=."
    )
    assert ended.code == 1
    assert "is done by the platform itself" in ended.out


@pytest.mark.parametrize(("program", "ending"), [("node_runtime", "js"), ("bash", "sh")])
def test_other_languages_are_observed_alike(crib, project, folder, program, ending):
    if shutil.which({"node_runtime": "node"}.get(program, program)) is None:
        pytest.skip(f"there is no {program} here")
    lines = [
        "@version 1.0.0",
        "@tool_type script",
        f"@executor_id {program}",
        "@category samples",
        "@description A sample.",
    ]
    data = project / "data.txt"
    if ending == "js":
        head = "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"
        code = f"try {{ require('fs').readFileSync({str(data)!r}) }} catch {{}}\n"
    else:
        head = "#!/bin/bash\n" + "".join(f"# {line}\n" for line in lines)
        code = f"read -r line < '{data}' || true\n"
    (folder / f"read-sample.{ending}").write_text(head + code)
    ended = crib("check", "--observe", "--json", "--grant", "shell.execute", "read-sample")
    report = json.loads(ended.out)
    assert [(effect["act"], effect["what"]) for effect in report["effects"]] == [("read", str(data))]
    assert ended.code == 1


def test_calls_of_other_tools_and_ways_through_the_proxy_are_effects(crib, sample):
    body = """
import urllib.request

import rye

def main():
    rye.execute("list_files", path=".")
    try:
        urllib.request.urlopen("http://127.0.0.1:7/")
    except OSError:
        pass
"""
    sample(body, requires=["rye.execute", "net.http", "fs.read", "fs.write"])
    grants = [word for name in ("rye.execute", "net.http", "fs.read", "fs.write") for word in ("--grant", name)]
    ended = crib("check", "--observe", "--json", *grants, "read-sample")
    assert ended.code == 0, ended
    report = json.loads(ended.out)
    assert report["unused"] == ["fs.write"]
    assert [(effect["act"], effect["what"], effect["denied"]) for effect in report["effects"]] == [
        ("call", "list_files", False),
        ("connect", "127.0.0.1:7", True),
    ]


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join(25)


def test_a_request_that_the_platform_sends_is_told_with_the_hosts_it_may_reach(crib, project, folder, server):
    (project / "toolcrib.toml").write_text(f'[egress]\nprivate = ["127.0.0.1:{server}"]\n')
    (folder / "ask-sample.yaml").write_text(
        "tool_id: ask-sample\ntool_type: script\nversion: 1.0.0\ncategory: samples\ndescription: A sample.\n"
        "executor_id: http_client\nrequires: [net.http]\n"
        f"config:\n  method: GET\n  url: http://127.0.0.1:{server}/x\n"
    )
    ended = crib("check", "--observe", "--grant", "net.http", "ask-sample")
    assert ended.code == 0, ended
    assert (
        "ask-sample is not a child: the platform sends its requests, and lets them reach any public host\n" in ended.out
    )
    assert f"connect  http://127.0.0.1:{server}" in ended.out


JS_READS = """import fs from 'node:fs';
export async function execute({ args }) {
  try {
    fs.readFileSync('../../data.txt');
  } catch {
    return { ok: true, data: { words: 0 } };
  }
  return { ok: true, data: { words: 1 } };
}
"""
PYTHON_READS = """from pathlib import Path

def execute(args, context):
    try:
        Path("../../data.txt").read_text()
    except OSError:
        return {"ok": True, "data": {"words": 0}}
    return {"ok": True, "data": {"words": 1}}
"""


@pytest.mark.parametrize(("words", "handler"), [((), JS_READS), (("--python",), PYTHON_READS)], ids=["js", "python"])
def test_a_handler_that_reads_what_it_does_not_declare_is_caught(crib, project, words, handler):
    assert crib("new", "peek", *words).code == 0
    name = "handler.py" if words else "handler.js"
    (project / "tools" / "peek" / name).write_text(handler)
    assert crib("build").code == 0
    caught = crib("check", "--observe", "peek", "text=a")
    assert caught.code == 1
    assert "data.txt" in caught.out
    assert "list fs.read in requires" in caught.out
    assert "1 undeclared effect" in caught.out
    schema = project / "tools" / "peek" / "schema.json"
    schema.write_text(schema.read_text().replace('"parameters"', '"requires": ["fs.read"],\n  "parameters"'))
    assert crib("build").code == 0
    assert crib("check", "--observe", "peek", "text=a").code == 0
