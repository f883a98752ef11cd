"""What tools did, held against what they declared."""

import os
import shutil
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandboxes import make_sandbox

from toolcrib import Context, Result, Tool
from toolcrib.infra.egress.proxy import ProxyLog
from toolcrib.infra.programs.observed_effects import Comparison, Deed, EffectRecorder, find_deeds, read_effects
from toolcrib.infra.sandbox.child import notifications
from toolcrib.infra.sandbox.jobs import (
    PROXY_HOST,
    PROXY_PORT,
    CompletedJob,
    Effect,
    Program,
    PythonFile,
    WorkspacePolicy,
    build_policy,
    python_runtime,
)
from toolcrib.lib.http_syntax import parse_url
from toolcrib.model.tool import Chained, Script

WORKSPACE = Path("/work place")
ENDED = CompletedJob(
    exit_code=0,
    signal=None,
    stdout=b"",
    stderr=b"",
    stdout_dropped=0,
    stderr_dropped=0,
    result=None,
    result_too_long=False,
    timed_out=False,
    killed=0,
    gone=True,
    cannot_start="",
    effects=(Effect("read", "/x"),),
)
FOLDER = WORKSPACE / ".ai" / "tools"


def tool_at(path, *requires, **run):
    script = Script(path=path, code=b"", language="python", entry="main")
    facts = {"kind": "script", "tool_type": "script", "executor": "python_runtime", "script": script, **run}
    return Tool(
        name="sample",
        description="A sample.",
        parameters={"type": "object"},
        run=Chained(folder=path.parent, **facts),
        requires=frozenset(requires),
    )


def sample(*requires, **run):
    return tool_at(FOLDER / "sample.py", *requires, **run)


def deeds_of(tool, *effects):
    return [(deed.act, deed.what, deed.capability) for deed in find_deeds(tool, effects, WORKSPACE)]


def test_what_lies_in_the_workspace_is_opened_by_the_capabilities_for_files():
    effects = [Effect("read", "/work place/x", denied=True), Effect("write", "/work place/y", denied=True)]
    assert deeds_of(sample(), *effects) == [
        ("read", "/work place/x", "fs.read"),
        ("write", "/work place/y", "fs.write"),
    ]


def test_what_lies_outside_is_opened_by_nothing():
    effects = [Effect("read", "/etc/shadow", denied=True), Effect("write", "/etc/x", denied=True)]
    assert deeds_of(sample("fs.read", "fs.write"), *effects) == [("read", "/etc/shadow", ""), ("write", "/etc/x", "")]


def test_a_folder_beside_the_workspace_is_outside_of_it():
    assert deeds_of(sample(), Effect("read", "/work places/x", denied=True)) == [("read", "/work places/x", "")]


def test_what_it_runs_on_and_its_own_folder_are_no_effects():
    own, library = Effect("read", str(FOLDER / "helper.py")), Effect("read", "/usr/lib/libc.so.6")
    assert deeds_of(sample(), own, library) == []
    assert deeds_of(sample("fs.read"), own, library) == []


def test_packages_in_the_workspace_are_what_it_runs_on(tmp_path):
    environment = tmp_path / "env"
    environment.mkdir()
    (environment / "pyvenv.cfg").write_text("")
    tool = tool_at(tmp_path / "tools" / "sample.py", "fs.read")
    effects = [
        Effect("read", str(tmp_path / "node_modules" / "yargs" / "index.js")),
        Effect("read", str(environment / "lib" / "package.py")),
        Effect("read", str(tmp_path / "data.txt")),
    ]
    assert [deed.what for deed in find_deeds(tool, effects, tmp_path)] == [str(tmp_path / "data.txt")]


def test_what_was_denied_is_never_what_it_runs_on(tmp_path):
    (tmp_path / "pyvenv.cfg").write_text("")
    denied = Effect("read", str(tmp_path / "node_modules" / "secret"), denied=True)
    assert find_deeds(tool_at(tmp_path / "tools" / "sample.py"), [denied], tmp_path) != []


def test_writing_to_its_own_folder_is_an_effect():
    assert deeds_of(sample(), Effect("write", str(FOLDER / "x"), denied=True)) == [
        ("write", str(FOLDER / "x"), "fs.write")
    ]


def test_the_package_file_that_node_looks_for_upwards_is_no_effect_and_any_other_is():
    above = [Effect("read", f"{folder}/package.json".replace("//", "/"), denied=True) for folder in FOLDER.parents]
    aside = Effect("read", "/work place/other/package.json", denied=True)
    assert deeds_of(sample(), *above, aside) == [("read", "/work place/other/package.json", "fs.read")]


def test_a_connection_is_told_by_where_it_leads():
    effects = [
        Effect("connect", "inet"),
        Effect("connect", f"{PROXY_HOST}:{PROXY_PORT}"),
        Effect("connect", "example.org:443"),
    ]
    assert deeds_of(sample(), *effects) == [("connect", "example.org:443", "net.http")]
    assert [what for _, what, _ in deeds_of(sample(), *effects[:2])] == [f"{PROXY_HOST}:{PROXY_PORT}", "inet"]


def test_a_socket_of_this_machine_is_opened_by_nothing():
    assert deeds_of(sample(), Effect("connect", "unix:/run/docker.sock", denied=True)) == [
        ("connect", "unix:/run/docker.sock", "")
    ]


def test_asking_for_the_name_of_a_user_is_no_effect():
    assert deeds_of(sample(), Effect("connect", "unix:/var/run/nscd/socket", denied=True)) == []


def test_starts_and_calls_have_capabilities_of_their_own():
    assert deeds_of(sample(), Effect("start", "/bin/ls"), Effect("call", "other")) == [
        ("call", "other", "rye.execute"),
        ("start", "/bin/ls", "shell.execute"),
    ]


def test_an_unknown_act_is_opened_by_nothing():
    assert deeds_of(sample(), Effect("more", "")) == [("more", "", "")]


@pytest.mark.parametrize(
    ("declared", "capability"),
    [
        ("fs.read", "fs.read"),
        ("net.call", "net.http"),
        ("net.http", "net.http"),
        ("rye.execute.spawn.thread", "rye.execute"),
        ("rye.execute", "rye.execute"),
    ],
)
def test_a_declared_effect_is_declared_and_its_capability_is_used(declared, capability):
    deed = Deed(act="act", what="x", denied=False, capability=capability)
    comparison = Comparison.of(sample(declared), [deed, deed])
    assert comparison == Comparison(undeclared=(), declared=(deed,), unused=())


def test_an_undeclared_effect_is_not_covered_by_another_capability():
    deed = Deed(act="read", what="/work place/x", denied=True, capability="fs.read")
    comparison = Comparison.of(sample("fs.write"), [deed])
    assert comparison == Comparison(undeclared=(deed,), declared=(), unused=("fs.write",))


def test_what_no_capability_opens_is_undeclared_even_with_all_of_them():
    deed = Deed(act="read", what="/etc/shadow", denied=True, capability="")
    assert Comparison.of(sample("fs.read", ""), [deed]).undeclared == (deed,)


def test_unused_capabilities_are_named_if_their_use_could_have_been_seen():
    tool = sample("fs.read", "net.http", "net.call", "shell.execute", "rye.execute", "mail.send")
    assert Comparison.of(tool, []).unused == ("fs.read", "net.call", "net.http", "rye.execute", "shell.execute")


def test_what_a_called_tool_uses_is_used():
    tool = sample("rye.execute", "fs.read", "fs.write")
    call = Deed(act="call", what="other", denied=False, capability="rye.execute")
    assert Comparison.of(tool, [call], ["fs.read"]).unused == ("fs.write",)


@pytest.mark.parametrize("run", [{"executor": "bash"}, {"executor": "subprocess"}, {"config": {"command": "git"}}])
def test_a_tool_that_is_a_command_needs_no_other_start(run):
    assert Comparison.of(sample("shell.execute", **run), []).unused == ()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["act", "what", "denied"]) | st.text(), inner),
)


@given(written=ANYTHING)
def test_any_effects_that_a_result_names_can_be_judged(written):
    deeds = find_deeds(sample("fs.read"), read_effects(written), WORKSPACE)
    comparison = Comparison.of(sample("fs.read"), deeds)
    assert sorted([*comparison.undeclared, *comparison.declared]) == deeds


@given(
    effects=st.lists(
        st.builds(Effect, st.sampled_from(["read", "write", "connect", "start"]), st.text(), st.booleans())
    )
)
def test_judging_twice_changes_nothing(effects):
    once = find_deeds(sample("fs.read"), effects, WORKSPACE)
    again = find_deeds(sample("fs.read"), read_effects([deed.to_json() for deed in once]), WORKSPACE)
    assert again == once


async def test_the_host_testifies_to_calls_and_to_visits():
    recorder = EffectRecorder()
    log = ProxyLog(limit=2)

    async def answer(name, arguments=None, /, **more):
        return Result(value=[name, arguments, more])

    @asynccontextmanager
    async def proxy(listener):
        yield log

    context = Context(
        tool=sample(),
        call_id="1",
        caller="me",
        mode="text",
        deadline=0,
        seconds=1,
        session=None,
        call=answer,
        audit=None,
    )
    result = await recorder.record_calls(context).call("other", {"a": 1}, b=2)
    async with recorder.record_visits(proxy)("listener") as seen:
        assert seen is log
        log.add(parse_url("https://example.org/x"))
        log.add(parse_url("http://127.0.0.1:7/"), "not there")
        log.add(None, "no room")
    ended = recorder.add_to(ENDED)
    assert result.value == ["other", {"a": 1}, {"b": 2}]
    assert ended.effects == (
        Effect("read", "/x"),
        Effect("call", "other"),
        Effect("connect", "example.org:443"),
        Effect("connect", "127.0.0.1:7", denied=True),
        Effect("more", ""),
    )


class TestRuns:
    """Real runs under observation."""

    pytestmark = pytest.mark.skipif(not notifications.is_available(), reason="the kernel lets nobody observe")

    @pytest.fixture
    def sandbox(self):
        sandbox = make_sandbox()
        yield sandbox
        sandbox.close()

    @pytest.fixture
    def run(self, sandbox, tmp_path):
        folder = tmp_path / ".ai" / "tools"
        folder.mkdir(parents=True)

        async def observed(file, code, *requires, interpreter=None):
            path = folder / file
            path.write_text(code)
            tool = tool_at(path, *requires)
            workspace_policy = WorkspacePolicy(workspace=tmp_path)
            if interpreter is None:
                policy = build_policy(requires, workspace_policy, (folder, *python_runtime()), observe=True)
                job = PythonFile(path=path, code=code.encode(), entry="main", arguments={}, policy=policy)
            else:
                runtime = (folder, Path(interpreter).resolve())
                policy = build_policy(requires, workspace_policy, runtime, observe=True)
                job = Program(argv=(interpreter, str(path)), cwd=folder, policy=policy)
            ended = await sandbox.run(job, deadline=time.monotonic() + 60)
            assert ended.exit_code == 0, ended
            return [(deed.act, deed.what, deed.denied) for deed in find_deeds(tool, ended.effects, tmp_path)]

        return observed

    @pytest.mark.parametrize(
        "code", ["def main(): pass", "async def main(): pass", "import json, email\ndef main(): pass"]
    )
    async def test_a_python_file_that_does_nothing_has_no_effects(self, run, code):
        assert await run("sample.py", code) == []

    async def test_a_python_file_that_does_nothing_uses_nothing(self, run):
        assert await run("sample.py", "def main(): pass", "fs.read", "fs.write", "shell.execute") == []

    @pytest.mark.parametrize("program", ["node", "bash", "sh", "env"])
    async def test_a_program_that_does_nothing_has_no_effects(self, run, program):
        path = shutil.which(program)
        if path is None:
            pytest.skip(f"there is no {program} here")
        code = f"#!{path}\n" if program != "env" else "#!/usr/bin/env sh\n"
        assert await run("sample", code, interpreter=shutil.which("sh") if program == "env" else path) == []

    async def test_scratch_is_no_effect(self, run):
        code = "import os, tempfile\ndef main():\n    open(tempfile.mkstemp()[1], 'w+').write('x')\n    os.mkdir(os.environ['HOME'] + '/x')\n"
        assert await run("sample.py", code) == []

    async def test_what_is_done_and_what_is_tried_are_both_effects(self, run, tmp_path):
        (tmp_path / "data").write_text("")
        code = f"""
import os, socket
def attempt(action):
    try:
        action()
    except OSError:
        pass
def main():
    open({str(tmp_path / "data")!r}).read()
    attempt(lambda: open({str(tmp_path / "new")!r}, "w"))
    attempt(lambda: open("/etc/shadow").read())
    attempt(lambda: socket.create_connection(("127.0.0.1", 9)))
    attempt(lambda: os.execv("/bin/true", ["true"]))
"""
        assert await run("sample.py", code, "fs.read") == [
            ("connect", "inet", True),
            ("read", "/etc/shadow", True),
            ("read", str(tmp_path / "data"), False),
            ("start", os.path.realpath("/bin/true"), True),
            ("write", str(tmp_path / "new"), True),
        ]

    async def test_a_script_that_starts_programs_is_seen_doing_so(self, run):
        true = os.path.realpath("/bin/true")
        assert await run("sample.sh", "/bin/true", "shell.execute", interpreter=shutil.which("bash")) == [
            ("start", true, False)
        ]

    async def test_a_child_is_seen_as_its_parent_is(self, run, tmp_path):
        code = f"""
import os
def main():
    child = os.fork()
    if child == 0:
        try:
            open({str(tmp_path / "secret")!r})
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""
        assert await run("sample.py", code) == [("read", str(tmp_path / "secret"), True)]
