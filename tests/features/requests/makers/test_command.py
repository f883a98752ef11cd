"""A program of the operator's as a maker: what it is given, what it is kept from, and how it ends."""

import asyncio
import json
import re
import socket
import sys
from pathlib import Path

import pytest

from toolcrib import Kind, SettingsError, ToolError
from toolcrib.features.requests import command_maker
from toolcrib.features.requests.candidate import read_candidate
from toolcrib.features.requests.gate.contract_tests import write_contract_tests
from toolcrib.infra.egress.client import Egress

WRITER = """\
import pathlib, re
request = pathlib.Path("request.yaml").read_text()
name = re.search(r"name: (\\w+)", request)[1]
print("writing", name)
pathlib.Path("package", name + ".py").write_text(
    "def word_counter(*, text):\\n    return {'words': len(text.split())}\\n"
)
print("done")
"""
TOLD = "package/told.json"


async def made(office, code, *, command=("python",), seconds=30.0, say=None, **more):
    """Run a maker of this Python code."""
    maker = office.maker(*command, office.script(code), **more)
    async with asyncio.timeout(50):
        return await maker.make(office.task(seconds=seconds, say=say))


async def refused(office, code, **more):
    with pytest.raises(ToolError) as refusal:
        await made(office, code, **more)
    return refusal.value


async def told(office, code, **more):
    """What a program tells that sets `told`."""
    assert await made(office, f"{code}\nimport json; open({TOLD!r}, 'w').write(json.dumps(told))", **more)
    return json.loads((office.building / TOLD).read_text())


@pytest.fixture
async def walled(office):
    await office.sandbox.learn()
    if "fs" not in office.sandbox.report("program")["guarantees"]:
        pytest.skip("this machine cannot keep files closed")
    return office


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


async def test_a_program_reads_the_request_and_writes_the_package(office):
    assert await made(office, WRITER) is True
    candidate = read_candidate(office.building / "package", office.request)
    assert b"len(text.split())" in candidate.files["word_counter.py"]
    assert office.said == ["writing word_counter", "done"]


async def test_a_script_of_the_shell_is_started_by_its_own_path(office):
    path = Path(office.script("#!/bin/sh\ngrep -c words request.yaml\ncp BRIEF.md package/\n", "maker.sh"))
    path.chmod(0o755)
    assert await office.maker(str(path)).make(office.task()) is True
    assert office.said == ["4"]
    assert (office.building / "package" / "BRIEF.md").read_bytes() == (office.building / "BRIEF.md").read_bytes()


async def test_the_words_behind_the_program_are_its_arguments(office):
    maker = office.maker("python", office.script("import sys; print(sys.argv[1:])"), "--fast", "two words", "$HOME")
    assert await maker.make(office.task())
    assert office.said == ["['--fast', 'two words', '$HOME']"]


async def test_it_works_in_its_workspace_and_finds_no_trace_of_where_it_prints(office):
    seen = await told(office, "import os; told = [os.getcwd(), sorted(os.listdir())]")
    assert seen == [
        str(office.building.resolve()),
        ["BRIEF.md", "contract", "package", "request.yaml", "schemas"],
    ]
    assert not [path for path in office.building.iterdir() if path.name.startswith(".")]


async def test_its_environment_holds_nothing_of_the_host_but_what_is_listed(office, monkeypatch):
    monkeypatch.setenv("CANARY", "canary-of-the-host")
    office.variables = {"AGENT_KEY": "key-of-the-agent", "OTHER": "not-listed"}
    variables = await told(office, "import os; told = dict(os.environ)", variables=("AGENT_KEY",))
    assert variables.pop("AGENT_KEY") == "key-of-the-agent"
    assert variables.keys() <= {"PATH", "LANG", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert "canary" not in str(variables)


async def test_a_listed_variable_that_is_not_set_is_left_out_and_said(office):
    assert "AGENT_KEY" not in await told(office, "import os; told = dict(os.environ)", variables=("AGENT_KEY",))
    assert office.said == ["builder.variables lists AGENT_KEY, which is neither set nor a secret"]


LOOK = """\
told = {}
for path in PATHS:
    try:
        told[path] = open(path).read()
    except OSError as problem:
        told[path] = type(problem).__name__
"""


async def test_it_reads_nothing_of_the_project_its_data_or_a_home(walled):
    hidden = [
        walled.project / "secret.txt",
        walled.workspace / "secret.txt",
        walled.project / ".toolcrib" / "key",
        walled.building.parent / "req_20240115_002" / "request.yaml",
        walled.home / ".ssh" / "id_ed25519",
        walled.operator.parent / "beside.txt",
    ]
    for path in hidden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("canary")
    paths = [str(path) for path in hidden]
    seen = await told(walled, LOOK.replace("PATHS", repr([*paths, "/etc/shadow"])))
    assert set(seen.values()) <= {"PermissionError", "FileNotFoundError"}


async def test_it_reads_what_lies_beside_it(walled):
    (walled.operator / "prompt.txt").write_text("be brief")
    path = str(walled.operator / "prompt.txt")
    assert await told(walled, LOOK.replace("PATHS", repr([path]))) == {path: "be brief"}


async def test_of_a_program_that_lies_in_a_home_only_the_file_itself_is_read(walled):
    (walled.home / "note.txt").write_text("canary")
    code = (
        f"import os; print(os.path.exists({str(walled.home / 'note.txt')!r}))\nopen({str(walled.home / 'note.txt')!r})"
    )
    maker = walled.maker("python", walled.script(code, folder=walled.home))
    with pytest.raises(ToolError, match=r"PermissionError|FileNotFoundError"):
        await maker.make(walled.task())


async def test_it_writes_nowhere_but_in_its_workspace(walled):
    places = [walled.project, walled.workspace, walled.building.parent, walled.operator, walled.home]
    code = f"""\
told = []
for place in {[str(place / "planted") for place in places]!r}:
    try:
        open(place, "w").write("x")
    except OSError as problem:
        told.append(type(problem).__name__)
"""
    assert len(await told(walled, code)) == len(places)
    assert not any((place / "planted").exists() for place in places)


async def test_it_writes_no_protected_name_in_its_workspace(office):
    code = """
import os
told = {}
for path in (".git/hooks/pre-commit", ".git", "package/.env", "package/conftest.py", "package/x.pth", "package/ok.py"):
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        open(path, "w").close()
    except OSError as problem:
        told[path] = type(problem).__name__
    else:
        told[path] = "written"
"""
    refused = (".git/hooks/pre-commit", ".git", "package/.env", "package/conftest.py", "package/x.pth")
    assert await told(office, code) == {**dict.fromkeys(refused, "PermissionError"), "package/ok.py": "written"}
    assert not (office.building / ".git").exists()


async def test_without_listed_hosts_it_reaches_no_host(walled):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""\
import socket
try:
    socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=5)
    told = "reached"
except OSError as problem:
    told = type(problem).__name__
"""
        assert await told(walled, code) != "reached"


FETCH = """\
import urllib.request, urllib.error
told = []
for url in URLS:
    try:
        told.append(urllib.request.urlopen(url, timeout=10).read().decode())
    except urllib.error.HTTPError as problem:
        told.append(problem.code)
    except OSError as problem:
        told.append(type(problem).__name__)
"""


async def test_it_reaches_the_listed_hosts_through_our_proxy_and_no_others(walled, page):
    if "net" not in walled.sandbox.report("program")["guarantees"]:
        pytest.skip("this machine has no network to give away")
    walled.egress = Egress(private=[f"127.0.0.1:{page.port}"])
    urls = [f"http://127.0.0.1:{page.port}/a", f"http://localhost:{page.port}/b"]
    seen = await told(walled, FETCH.replace("URLS", repr(urls)), hosts=(f"127.0.0.1:{page.port}",))
    assert seen == ["hello", 403]
    assert page.heard == ["/a"]


async def test_a_program_that_fails_is_told_with_the_end_of_what_it_printed(office):
    code = "import sys; print('o' * 5000 + 'last'); print('e' * 5000 + 'why', file=sys.stderr); sys.exit(3)"
    error = await refused(office, code)
    assert error.kind is Kind.PERMANENT
    assert error.message == f"python ended with exit code 3: {'e' * 997}why"
    assert error.details == {"stdout": "o" * 1996 + "last", "stderr": "e" * 997 + "why"}


async def test_a_program_that_is_killed_says_by_what(office):
    error = await refused(office, "import os; os.kill(os.getpid(), 9)")
    assert (error.kind, error.message) == (Kind.PERMANENT, "python ended with signal 9")


async def test_secrets_that_it_was_given_are_hidden_in_all_that_is_told(office):
    office.variables = {"AGENT_KEY": "s3cret/of+the=agent"}
    code = """\
import base64, os, sys, urllib.parse
key = os.environ["AGENT_KEY"]
for text in (key, urllib.parse.quote(key, safe=""), base64.b64encode(key.encode()).decode()):
    print("using", text)
    print("x" * 990 + text, file=sys.stderr)
sys.exit(1)
"""
    error = await refused(office, code, variables=("AGENT_KEY",))
    shown = json.dumps([office.said, error.to_json()])
    assert [line.rstrip("=") for line in office.said] == ["using ***"] * 3
    assert not [part for part in ("s3cret", "of%2Bthe", "czNjcmV0", "the=agent") if part in shown]


async def test_an_endless_program_is_ended_with_all_that_it_started(office):
    code = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        while True:
            time.sleep(60)
print("main", os.getpid(), flush=True)
while True:
    time.sleep(60)
"""
    error = await refused(office, code, seconds=2.0)
    assert error.kind is Kind.TIMEOUT
    assert error.message.startswith("python did not finish in time (setting builder.seconds)")
    processes = {line.split()[0]: int(line.split()[1]) for line in office.said}
    assert processes.keys() == {"main", "daemon"}
    assert not any(map(is_running, processes.values()))


async def test_a_daemon_does_not_outlive_a_program_that_ended_well(office):
    code = """\
import os, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        os.write(write, b"x")
        while True:
            time.sleep(60)
    os._exit(0)
os.read(read, 1)
"""
    assert await made(office, code) is True
    (line,) = office.said
    assert not is_running(int(line.split()[1]))


async def test_a_maker_that_is_cancelled_leaves_nothing_running(office):
    begun = asyncio.get_running_loop().create_future()
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    making = asyncio.create_task(made(office, code, say=begun.set_result))
    process = int(await asyncio.wait_for(begun, 20))
    assert is_running(process)
    making.cancel()
    await asyncio.wait({making}, timeout=15)
    assert making.cancelled()
    assert not is_running(process)


@pytest.mark.parametrize(
    "code",
    [
        "import itertools\nfor n in itertools.count():\n    open(f'package/{n}', 'wb').write(bytes(1_000_000))",
        "import itertools, os\nfor n in itertools.count():\n    os.makedirs(f'a{n}/b'); open(f'a{n}/b/c', 'w').close()",
        (
            "import os, time\nkept = []\nfor _ in range(40):\n    kept.append(open('package/x', 'wb', buffering=0))\n"
            "    kept[-1].write(bytes(1_000_000))\n    os.unlink('package/x')\ntime.sleep(600)"
        ),
    ],
    ids=["many megabytes", "many small files", "files without names"],
)
async def test_a_maker_that_fills_the_disk_is_ended(office, code):
    error = await refused(office, code, disk_bytes=5_000_000)
    assert error.kind is Kind.LIMIT_EXCEEDED
    assert error.message == "python used more disk than it may (setting builder.disk_mb); it was killed"


async def test_one_huge_file_is_cut_off_by_the_kernel(office):
    script = office.script("#!/bin/sh\nexec head -c 10000000000 /dev/zero > package/huge\n", "maker.sh")
    Path(script).chmod(0o755)
    with pytest.raises(ToolError) as refusal:
        await office.maker(script, disk_bytes=5_000_000).make(office.task())
    assert refusal.value.kind is Kind.LIMIT_EXCEEDED
    assert "more disk than it may (setting builder.disk_mb)" in refusal.value.message
    assert (office.building / "package" / "huge").stat().st_size <= 5_000_000


async def test_a_maker_that_only_just_fills_the_disk_before_it_ends_is_refused_too(office):
    code = "for n in range(30):\n    open(f'package/{n}', 'wb').write(bytes(1_000_000))"
    error = await refused(office, code, disk_bytes=20_000_000)
    assert (error.kind, error.details["limit"]) == (Kind.LIMIT_EXCEEDED, "disk")


async def test_a_fork_bomb_is_ended(office):
    code = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)"
    error = await refused(office, code, processes=20)
    assert error.kind is Kind.LIMIT_EXCEEDED
    assert "more processes than it may (setting sandbox.processes)" in error.message


async def test_what_it_prints_is_told_while_it_runs(office):
    def say(line):
        office.said.append(line)
        (office.building / "go").touch()

    code = """\
import os, time
print("thinking", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("gone on")
"""
    assert await made(office, code, say=say)
    assert office.said == ["thinking", "gone on"]


async def test_a_talkative_program_is_told_within_bounds(office):
    code = "print('x' * 100_000)\nfor n in range(100_000): print('line', n)"
    assert await made(office, code)
    assert len(office.said) == 201
    assert office.said[0] == "x" * 300
    assert office.said[-1] == "further output is not shown"


async def test_what_a_terminal_would_obey_is_not_told(office):
    assert await made(office, "print('\\x1b[2J\\x1b]0;title\\x07a\\u202eb\\rc\\x00d')")
    assert office.said == ["[2J]0;titleab", "cd"]
    error = await refused(office, "import sys; sys.exit('\\x1b[2Jwhy')")
    assert error.message == "python ended with exit code 1: [2Jwhy"


async def test_a_program_that_is_not_there_is_named_with_the_cure(office):
    with pytest.raises(ToolError) as refusal:
        await office.maker("no-such-agent").make(office.task())
    assert refusal.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert refusal.value.message == (
        "builder.command: the program 'no-such-agent' was not found; install it, or write its absolute path"
    )


async def test_a_relative_path_is_refused(office):
    with pytest.raises(ToolError, match="write its absolute path") as refusal:
        await office.maker("./maker.sh").make(office.task())
    assert refusal.value.kind is Kind.EXECUTOR_NOT_FOUND


def test_a_command_without_words_is_refused(office):
    with pytest.raises(SettingsError, match="builder.command names no program"):
        office.maker()


@pytest.mark.parametrize("place", ["program", "script", "link", "interpreter"])
async def test_a_program_that_lies_in_the_project_is_refused(office, place):
    inside = Path(office.script("#!/bin/sh\ntouch package/ran\n", "agent.sh", folder=office.workspace))
    inside.chmod(0o755)
    outside = office.operator / "agent"
    if place == "link":
        outside.symlink_to(inside)
    elif place == "interpreter":
        if any(map(str.isspace, str(inside))):
            pytest.skip("a first line is cut at its first blank, so none can name this folder")
        outside.write_text(f"#!{inside}\n")
        outside.chmod(0o755)
    command = {"program": [str(inside)], "script": ["sh", str(inside)]}.get(place, [str(outside)])
    with pytest.raises(ToolError) as refusal:
        await office.maker(*command).make(office.task())
    assert refusal.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert "lies in the project, where tools write; keep it elsewhere" in refusal.value.message
    assert not (office.building / "package" / "ran").exists()


async def test_what_a_program_changes_of_its_order_changes_nothing(office):
    code = """\
for path in ("request.yaml", "BRIEF.md", "contract/test_contract.py", "schemas/result.json"):
    open(path, "w").write("anything goes")
"""
    assert await made(office, code)
    task = office.task(attempt=2, complaints=("not good",))
    assert task.request is office.request
    assert (office.building / "request.yaml").read_text() == office.request.text
    assert "anything goes" not in (office.building / "contract" / "test_contract.py").read_text()


async def test_the_interpreter_of_toolcrib_may_lie_in_the_project(office, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(office.project / ".venv"))
    assert not command_maker.lies_in_project(office.project / ".venv" / "bin" / "agent", (office.project,))
    assert command_maker.lies_in_project(office.project / "agent", (office.project,))


def test_where_the_project_lies_in_a_place_of_the_system_only_what_is_around_it_is_opened(tmp_path):
    for path in ("src/app/key", "src/other/lib", "bin/tool", "src/app2/lib"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "src" / "link").symlink_to("app")
    opened = list(command_maker._around(tmp_path, [tmp_path / "src" / "app"]))
    assert opened == [tmp_path / "bin", tmp_path / "src" / "app2", tmp_path / "src" / "other"]
    assert (tmp_path / "src" / "link" / "key").exists()


QUICKLY = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


async def test_a_program_can_run_the_contract_before_it_delivers(office):
    office.variables = {QUICKLY: "1"}
    test = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-m', 'pytest', 'contract']).returncode)"
    maker = office.maker("python", office.script(f"{WRITER}\n{test}"), variables=(QUICKLY,))
    task = office.task(contract_tests=write_contract_tests(office.request))
    assert await maker.make(task) is True
    assert [line for line in office.said if re.search(r"= \d+ passed", line)], office.said
    assert read_candidate(task.package, office.request).files.keys() == {"word_counter.py"}


async def test_the_starter_does_not_keep_the_contract(office):
    office.variables = {QUICKLY: "1"}
    task = office.task(contract_tests=write_contract_tests(office.request))
    with pytest.raises(ToolError, match="ended with exit code 1") as refusal:
        await office.maker("python", "-m", "pytest", "contract", variables=(QUICKLY,)).make(task)
    assert "still to be written" in str(refusal.value.details["stdout"])
