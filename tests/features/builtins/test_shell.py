import asyncio
import random
import time
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib import Context, Kind, SettingsError, ToolError
from toolcrib.features.builtins.tools import shell_tool
from toolcrib.infra.sandbox.jobs import WorkspacePolicy
from toolcrib.lib import schema


@pytest.fixture(scope="module")
def sandbox():
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "inner").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "way out").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    return folder


@pytest.fixture
def shell(sandbox, workspace):
    def prepare(*, deadline=60.0, **settings):
        tool = shell_tool(sandbox, workspace_policy=WorkspacePolicy(workspace=workspace), **settings)

        async def call(command, **arguments):
            context = context_of(tool, deadline)
            return await tool.run.call(command=command, **arguments, context=context)

        return call

    return prepare


def context_of(tool, seconds):
    return Context(
        tool=tool,
        call_id="1",
        caller="test",
        mode="text",
        deadline=time.monotonic() + seconds,
        seconds=30,
        session=None,
        call=None,
        audit=lambda event, data=None: None,
    )


def alive(marker):
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and marker.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.spec("S4-06")
async def test_output_and_error_output_come_back_with_the_exit_code(shell, sandbox):
    outcome = await shell()("echo out; echo err >&2")
    assert outcome.value == {"stdout": "out\n", "stderr": "err\n", "exit_code": 0}
    assert outcome.error is None
    assert outcome.meta == {"sandbox": sandbox.report()}


@pytest.mark.spec("S4-06")
async def test_the_command_runs_in_the_workspace_or_in_the_folder_named(shell, workspace):
    assert (await shell()("pwd")).value["stdout"] == f"{workspace}\n"
    assert (await shell()("pwd", cwd="inner")).value["stdout"] == f"{workspace / 'inner'}\n"
    assert (await shell()("pwd", cwd=str(workspace / "inner"))).value["stdout"] == f"{workspace / 'inner'}\n"


@pytest.mark.parametrize("cwd", ["..", "/", "inner/../..", "way out", "way out/workspace/..", "/etc", "~/../.."])
async def test_a_folder_outside_the_workspace_is_refused(shell, cwd):
    with pytest.raises(ToolError) as caught:
        await shell()("touch /tmp/never", cwd=cwd)
    assert caught.value.kind is Kind.BLOCKED
    assert caught.value.message == f"cwd {cwd!r} is outside the workspace; write a path inside it"


@pytest.mark.parametrize("cwd", ["none", "file", "loop", "\0", "x" * 5000])
async def test_a_folder_that_is_none_is_refused(shell, cwd):
    with pytest.raises(ToolError) as caught:
        await shell()("true", cwd=cwd)
    assert caught.value.kind in {Kind.NOT_FOUND, Kind.VALIDATION}


@pytest.mark.spec("S4-06")
async def test_a_failing_command_keeps_its_code_and_its_output(shell):
    outcome = await shell()("echo so far; echo broken >&2; exit 3")
    assert outcome.error.kind is Kind.PERMANENT
    assert outcome.error.message == "the command ended with exit code 3: broken"
    assert outcome.error.value == outcome.value == {"stdout": "so far\n", "stderr": "broken\n", "exit_code": 3}
    assert outcome.error.partial_side_effects


async def test_a_protected_path_that_a_command_may_not_change_is_named_with_the_cure(shell):
    outcome = await shell()("mkdir -p sub/.git; touch .env; for n in 1 2 3; do touch $n.pem; done; ls > fine; exit 1")
    assert outcome.error.cure.operator == (
        "no tool may change 'sub/.git', '.env', '1.pem', unless workspace.open in toolcrib.toml opens it"
    )
    # No setting opens our own data.
    assert (await shell()("touch .toolcrib/x; mkdir .toolcrib")).error.cure.operator == "no tool may change '.toolcrib'"
    assert (await shell()("touch .env; true")).error is None
    # As `git status` does with its index.
    assert (await shell()("touch .env 2> /dev/null; echo 'one test failed'; exit 1")).error.cure.operator == ""


async def test_a_command_ended_by_a_signal_has_the_code_that_shells_give_it(shell):
    outcome = await shell()("kill -9 $$")
    assert outcome.value["exit_code"] == 137
    assert outcome.error.message == "the command ended with exit code 137"


@pytest.mark.spec("S4-06", "S4-34")
async def test_a_command_that_runs_too_long_is_killed_with_its_children(shell):
    marker = f"{random.SystemRandom().randint(3000, 9000)}.{random.SystemRandom().randint(10**8, 10**9)}"
    outcome = await shell(timeout_seconds=0.5)(f"echo started; setsid sleep {marker} & trap '' TERM; sleep {marker}; :")
    assert alive(marker) == []
    assert outcome.error.kind is Kind.TIMEOUT
    assert outcome.error.message == "the command ran longer than 0.5 s; it and everything it started was killed"
    assert outcome.error.value == {"stdout": "started\n", "stderr": ""}


async def test_the_limit_that_struck_is_named(shell):
    outcome = await shell(timeout_seconds=30, deadline=0.5)("sleep 60")
    assert "longer than the 0.5 s left to the call" in outcome.error.message


@pytest.mark.spec("S4-34")
def test_the_limit_is_30_seconds_unless_set(sandbox, workspace):
    assert shell_tool(sandbox, workspace_policy=WorkspacePolicy(workspace=workspace)).limits.timeout_ms == 31_000
    assert (
        shell_tool(sandbox, workspace_policy=WorkspacePolicy(workspace=workspace), timeout_seconds=5).limits.timeout_ms
        == 6_000
    )


@pytest.mark.spec("S4-34")
async def test_the_setting_limits_a_command_and_is_named_by_the_error(crib_of):
    crib = crib_of(grants={"*": ["shell.execute"]}, builtins={"shell_timeout_ms": 700})
    own = "the command ran longer than 0.7 s; it and everything it started was killed"
    # Where the machine stalls the sandbox may start so late that the limit of the whole call, a second more, comes first.
    for _ in range(10):
        refused = (await crib.call("shell", command="sleep 60")).error
        assert refused.kind is Kind.TIMEOUT
        if refused.message == own:
            break
    assert refused.message == own


@pytest.mark.spec("S4-34")
def test_a_crib_without_the_setting_gives_a_command_30_seconds(crib_of):
    (shell,) = [tool for tool in crib_of(grants={"*": ["shell.execute"]}).tools if tool.name == "shell"]
    assert shell.limits.timeout_ms == 31_000
    (shell,) = [tool for tool in crib_of(builtins={"shell_timeout_ms": 700}).tools if tool.name == "shell"]
    assert shell.limits.timeout_ms == 1_700


@pytest.mark.spec("S4-34")
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_that_is_no_time_is_a_settings_error(sandbox, workspace, seconds):
    with pytest.raises(SettingsError, match="must be greater than 0"):
        shell_tool(sandbox, workspace_policy=WorkspacePolicy(workspace=workspace), timeout_seconds=seconds)


async def test_a_command_sees_a_clean_environment(shell, workspace, monkeypatch):
    monkeypatch.setenv("HOST_SECRET", "canary-4711")
    lines = (await shell(environment={"GIVEN": "yes"})("env")).value["stdout"].splitlines()
    assert {line for line in lines if not line.startswith(("PWD=", "OLDPWD=", "TMPDIR="))} == {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG=C.UTF-8",
        f"HOME={workspace}",
        "GIVEN=yes",
    }


async def test_output_beyond_the_limit_is_cut_and_said_to_be(shell):
    value = (await shell(max_output=10)("printf 12345678901; printf 1234567890 >&2")).value
    assert value == {"stdout": "1234567890", "stderr": "1234567890", "exit_code": 0, "stdout_truncated": True}


async def test_output_that_is_not_text_is_shown_as_far_as_it_is(shell):
    assert (await shell()(r"printf 'a\377b'")).value["stdout"] == "a\ufffdb"


async def test_nothing_is_read_from_the_host(shell):
    assert (await shell()("cat; echo end")).value["stdout"] == "end\n"


async def test_a_command_that_no_program_can_be_given_is_refused(shell):
    outcome = await shell()("echo \0")
    assert outcome.error.message.startswith("/bin/sh could not be started")


async def test_commands_run_side_by_side(shell):
    call = shell()
    outcomes = await asyncio.gather(*(call(f"echo {number}") for number in range(10)))
    assert [outcome.value["stdout"] for outcome in outcomes] == [f"{number}\n" for number in range(10)]


async def test_the_tool_says_what_it_takes_and_gives(sandbox, workspace, shell):
    tool = shell_tool(sandbox, workspace_policy=WorkspacePolicy(workspace=workspace))
    assert tool.requires == {"shell.execute"}
    assert tool.side_effects == "writes"
    assert tool.parameters["additionalProperties"] is False
    assert tool.parameters["required"] == ["command"]
    assert all("description" in part for part in tool.parameters["properties"].values())
    checked = schema.compile_schema(tool.output_schema)
    assert checked.is_valid((await shell(max_output=3)("echo hello; echo hello >&2")).value)
