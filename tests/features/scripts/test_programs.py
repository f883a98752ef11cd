import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import Kind, Limits, RetryPolicy, ToolError
from toolcrib.features.scripts.process_driver import MAX_PRINTED_BYTES
from toolcrib.lib.system_tools import system_tools


def closed(*names, **schemas):
    properties = {**{name: {"type": "string"} for name in names}, **schemas}
    return {"type": "object", "properties": properties, "additionalProperties": False}


# What is started


@pytest.mark.spec("S3-30", "S3-62", "S3-11")
async def test_a_program_is_started_with_exactly_what_is_configured(bench, tell):
    tool = tell(config={"args": ["tell.py", "--fast", "a b; $HOME *"], "env": {"LOG_LEVEL": "INFO"}})
    told = await bench.value(tool)
    assert told["words"] == ["--fast", "a b; $HOME *"]
    assert told["variables"]["LOG_LEVEL"] == "INFO"
    assert told["folder"] == str(bench.folder)


@pytest.mark.spec("S3-61")
async def test_arguments_that_no_slot_takes_follow_as_options(bench, tell):
    told = await bench.value(tell(), name="Ann", force=True, deep={"a": 1}, none=None, off=False, odd="-x")
    assert told["words"] == ["--name", "Ann", "--force", "--deep", '{"a":1}', "--odd=-x"]


@pytest.mark.spec("S3-61")
async def test_the_action_is_the_first_word_behind_the_program(bench, tell):
    assert (await bench.value(tell(action="rollback"), name="Ann"))["words"] == ["rollback", "--name", "Ann"]


async def test_slots_take_arguments_and_names_of_the_platform(bench, tell):
    args = [
        "tell.py",
        "{name}",
        "--as={who}",
        "{request_id}",
        "{client_id}",
        "{tool_version}",
        "v{version}",
        "{{name}}",
    ]
    tool = tell(config={"args": args}, parameters=closed("name", "who", "more"), version="1.2.3")
    told = await bench.value(tool, name="Ann", who="-x", more="1")
    assert told["words"] == ["Ann", "--as=-x", "call-1", "ann", "1.2.3", "v7.8.9", "{name}", "--more", "1"]


async def test_a_parameter_that_is_named_like_one_of_the_platform_is_the_argument(bench, tell):
    tool = tell(config={"args": ["tell.py", "{version}"]}, parameters=closed("version"))
    assert (await bench.value(tool, version="mine"))["words"] == ["mine"]


def test_a_slot_that_is_not_filled_is_refused_before_anything_runs(bench, tell):
    with pytest.raises(ToolError, match=r"config\.args: \{city\} is neither a parameter") as caught:
        bench.check(tell(config={"args": ["tell.py", "{city}"]}))
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.spec("S3-61")
@pytest.mark.parametrize("value", ["--upload-pack=evil", "-x", "-"])
def test_a_value_with_a_dash_is_not_let_pass_for_an_option(bench, tell, value):
    tool = tell(config={"args": ["tell.py", "{name}"]}, parameters=closed("name"))
    with pytest.raises(ToolError, match="would be taken for an option") as caught:
        bench.check(tool, name=value)
    assert caught.value.kind is Kind.VALIDATION


async def test_a_value_with_a_dash_is_a_value_behind_the_end_of_options(bench, tell):
    tool = tell(config={"args": ["tell.py", "--", "{name}"]}, parameters=closed("name"))
    assert (await bench.value(tool, name="--x"))["words"] == ["--", "--x"]


# What a caller can never change


async def test_a_caller_never_replaces_what_the_author_configured(bench, tell):
    tool = tell(config={"env": {"A": "author"}}, limits=Limits(timeout_ms=20_000))
    hostile = {"command": "/bin/false", "env": {"A": "caller"}, "cwd": "/", "timeout": 1, "url": "x", "args": ["x"]}
    told = await bench.value(tool, **hostile)
    assert told["variables"]["A"] == "author"
    assert told["folder"] == str(bench.folder)
    assert told["words"] == [
        *("--command", "/bin/false", "--env", '{"A":"caller"}', "--cwd", "/", "--timeout", "1", "--url", "x"),
        *("--args", '["x"]'),
    ]


async def test_a_value_is_never_expanded_again(bench, tell, monkeypatch):
    monkeypatch.setenv("SECRET", "from the host")
    bench.variables["sample", "SECRET"] = "granted"
    config = {"args": ["tell.py", "{a}", "{b}"], "env": {"C": "{a}"}}
    told = await bench.value(tell(config=config, parameters=closed("a", "b")), a="{b} ${SECRET} $HOME", b="{a}")
    assert told["words"] == ["{b} ${SECRET} $HOME", "{a}"]
    assert told["variables"]["C"] == "{b} ${SECRET} $HOME"


EVERY_PROGRAM_HAS = {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE"}


async def test_nothing_of_the_hosts_environment_reaches_a_program(bench, tell, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked")
    variables = (await bench.value(tell()))["variables"]
    assert set(variables) <= EVERY_PROGRAM_HAS
    assert os.environ["PATH"] != variables["PATH"]


async def test_nor_does_it_reach_what_the_primitive_starts(bench, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked")
    names = "import os; print(' '.join(os.environ))"
    value = await bench.value(subprocess_tool(), command="python", args=["-c", names])
    assert set(value.split()) <= EVERY_PROGRAM_HAS


# Variables of the host


async def test_a_granted_variable_of_the_host_is_handed_on_and_hidden_in_messages(bench, tell):
    bench.variables["sample", "TOKEN"] = "abcd-1234"
    assert (await bench.value(tell(config={"env": ["TOKEN"]})))["variables"]["TOKEN"] == "abcd-1234"
    tool = bench.tool(
        config={"command": "bash", "args": ["-c", "echo failed with $T >&2; exit 3"], "env": {"T": "${TOKEN}"}}
    )
    outcome = await bench.call(tool)
    assert outcome.error.message == "sample ended with exit code 3: failed with ***"
    assert outcome.meta["stderr"] == "failed with ***\n"


@pytest.mark.parametrize("env", [["TOKEN"], {"X": "${TOKEN}"}, {"X": "a ${TOKEN:-none}"}])
def test_a_variable_that_was_not_granted_is_named_before_anything_runs(bench, tell, env):
    with pytest.raises(ToolError, match="TOKEN, which is not granted.*'sample:TOKEN' to access.variables") as caught:
        bench.check(tell(config={"env": env}))
    assert caught.value.kind is Kind.CAPABILITY_MISSING
    assert caught.value.details["missing"] == ["TOKEN"]
    assert caught.value.cure.client == "ask the operator to grant it"


def test_a_granted_variable_that_is_not_set_is_told(bench, tell):
    bench.variables["sample", "TOKEN"] = ""
    with pytest.raises(ToolError, match="the variable TOKEN is not set on the host"):
        bench.check(tell(config={"env": ["TOKEN"]}))


@pytest.mark.parametrize("name", ["A-B", "1A", "A=B", "", "Ä"])
def test_a_name_that_no_environment_has_is_refused(bench, tell, name):
    with pytest.raises(ToolError, match="is not a name of a variable"):
        bench.check(tell(config={"env": {name: "x"}}))


# Where it runs


async def test_the_author_may_name_a_folder_beside_the_tool(bench, tell):
    (bench.folder / "inner").mkdir()
    tool = tell(config={"cwd": "inner", "args": ["../tell.py"]})
    assert (await bench.value(tool))["folder"] == str(bench.folder / "inner")


@pytest.mark.parametrize(
    ("cwd", "kind"), [("/etc", Kind.BLOCKED), ("../..", Kind.BLOCKED), ("no", Kind.NOT_FOUND), ("a\0", Kind.VALIDATION)]
)
def test_a_folder_elsewhere_is_refused(bench, tell, cwd, kind):
    with pytest.raises(ToolError) as caught:
        bench.check(tell(config={"cwd": cwd}))
    assert caught.value.kind is kind


def test_a_link_that_leads_out_is_no_folder_of_the_tool(bench, tell):
    (bench.folder / "out").symlink_to("/etc")
    with pytest.raises(ToolError, match="outside the workspace"):
        bench.check(tell(config={"cwd": "out"}))


# The shell


@pytest.mark.spec("S3-30")
async def test_without_a_shell_nothing_is_a_command_line(bench):
    with pytest.raises(ToolError, match="the command 'echo hello' was not found"):
        bench.check(bench.tool(config={"command": "echo hello"}))


@pytest.mark.spec("S3-30")
async def test_only_shell_true_runs_a_command_line(bench):
    tool = bench.tool(config={"command": "printf '%s\\n' {a} {b} | sort", "shell": True}, parameters=closed("a", "b"))
    assert await bench.value(tool, a="z", b="a b") == "a b\nz"


HOSTILE = [
    "; echo broken",
    "$(echo broken)",
    "`echo broken`",
    "' ; echo broken '",
    '" ; echo broken "',
    "a\nb",
    "${HOME}",
    "\\",
    "*",
    "-n",
    "|",
    "&& echo broken",
]


@pytest.mark.parametrize("value", HOSTILE)
async def test_no_value_becomes_shell_code(bench, value):
    tool = bench.tool(config={"command": "printf '<%s>' {a}", "shell": True}, parameters=closed("a"))
    assert await bench.value(tool, a=value) == f"<{value}>"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=30))
def test_any_text_comes_through_a_command_line_as_one_word(bench, value):
    from toolcrib.features.scripts.program import Programs
    from toolcrib.infra.programs.executables import Executables

    tool = bench.tool(config={"command": "printf {a} && echo {a}{b}", "shell": True}, parameters=closed("a", "b"))
    bound = bench.runner.bind(tool)
    order = bound._order({"a": value, "b": value}, "1", "ann")
    job = Programs(Executables(bench.search_path), bench.workspace_policy).job(order)
    assert job.argv == ("/bin/sh", "-c", 'printf "${1}" && echo "${2}""${3}"', "sh", value, value, value)


@pytest.mark.parametrize("line", ["echo '{a}'", 'echo "{a}"', 'echo "it is {a} today"', "echo 'x' \"y\" '{a}'"])
def test_a_slot_in_quotes_is_refused_with_the_cure(bench, line):
    tool = bench.tool(config={"command": line, "shell": True}, parameters=closed("a"))
    with pytest.raises(ToolError, match="write slots without quotes around them"):
        bench.check(tool, a="x")


async def test_a_slot_beside_quotes_is_none_in_quotes(bench):
    tool = bench.tool(config={"command": "echo \"it's\" 'so' \\\" {a}", "shell": True}, parameters=closed("a"))
    assert await bench.value(tool, a="x  y") == "it's so \" x  y"


async def test_what_no_slot_takes_follows_the_command_line_as_words(bench):
    tool = bench.tool(config={"command": "printf '<%s>'", "shell": True, "args": ["one"]})
    assert await bench.value(tool, name="a; b") == "<one><--name><a; b>"


@pytest.mark.parametrize("option", ["-c", "-ec", "-lc"])
def test_a_value_in_the_middle_of_code_for_a_shell_is_refused(bench, option):
    config = {"command": "bash", "args": [option, "echo {a}; ls"]}
    with pytest.raises(ToolError, match="would be read as code; write config") as caught:
        bench.check(bench.tool(config=config, parameters=closed("a")), a="$(reboot)")
    assert caught.value.kind is Kind.VALIDATION


async def test_words_behind_code_for_a_shell_are_words(bench):
    config = {"command": "bash", "args": ["-c", 'echo "$1"', "bash", "<{a}>"]}
    assert await bench.value(bench.tool(config=config, parameters=closed("a")), a="$(reboot)") == "<$(reboot)>"


def test_a_shell_that_is_neither_true_nor_false_is_refused(bench):
    with pytest.raises(ToolError, match=r"config\.shell: write true or false"):
        bench.check(bench.tool(config={"command": "ls", "shell": "yes"}))


@pytest.mark.spec("S3-64", "S3-55")
@pytest.mark.parametrize("config", [{"command": "cat"}, {"command": "ls | cat", "shell": True}, {"shell": True}])
def test_a_tool_under_a_runtime_starts_no_command_of_its_own_without_the_capability(bench, config):
    tool = bench.tool(executor="node_runtime", config=config, requires=())
    with pytest.raises(ToolError, match=r"starts a command of its own; list shell\.execute") as caught:
        bench.check(tool)
    assert caught.value.kind is Kind.CAPABILITY_MISSING


# What it comes to


def bash(bench, line, **more):
    return bench.tool(config={"command": "bash", "args": ["-c", line]}, **more)


@pytest.mark.spec("S3-61")
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("echo hello", "hello"),
        ("printf 'a\\n\\n'", "a\n"),
        ("printf 'a\\r\\n'", "a"),
        ("printf ''", ""),
        ("printf '\\377x'", "\ufffdx"),
        ("echo '{\"a\": 1}'", '{"a": 1}'),
    ],
)
async def test_what_it_prints_is_the_value_without_the_last_line_end(bench, line, value):
    outcome = await bench.call(bash(bench, line))
    assert outcome.value == value
    assert outcome.meta == {"sandbox": bench.sandbox.report()}


@pytest.mark.spec("S3-61")
async def test_with_an_output_schema_it_prints_json(bench):
    assert await bench.value(bash(bench, "echo '{\"a\": 1}'", output_schema={"type": "object"})) == {"a": 1}


@pytest.mark.spec("S3-61")
@pytest.mark.parametrize("line", ["echo hello", "printf ''", "echo '{\"a\": NaN}'", "echo '{} {}'"])
async def test_with_an_output_schema_anything_else_is_invalid(bench, line):
    outcome = await bench.call(bash(bench, line, output_schema={"type": "object"}))
    assert outcome.error.kind is Kind.OUTPUT_INVALID
    assert not outcome.error.retryable


@pytest.mark.parametrize(("line", "value"), [("echo hello", "hello"), ("echo '\"a\"'", "a"), ("echo 12", "12")])
async def test_a_promise_of_text_is_kept_by_text(bench, line, value):
    assert await bench.value(bash(bench, line, output_schema={"type": "string"})) == value


@pytest.mark.spec("S3-61", "S3-56")
async def test_another_exit_code_than_zero_is_a_failure_with_what_was_said(bench):
    outcome = await bench.call(bash(bench, "echo half; echo 'no such cluster' >&2; exit 3"))
    assert outcome.error.kind is Kind.PERMANENT
    assert outcome.error.message == "sample ended with exit code 3: no such cluster"
    assert outcome.error.details == {"exitCode": 3}
    assert not outcome.error.retryable
    assert outcome.meta["stdout"] == "half\n"
    assert outcome.meta["sandbox"] == bench.sandbox.report()


@pytest.mark.spec("S3-35", "S3-56")
async def test_only_an_author_who_asks_for_it_gets_a_failure_repeated(bench):
    limits = Limits(retry=RetryPolicy(max_attempts=3))
    error = (await bench.call(bash(bench, "exit 3", limits=limits))).error
    assert error.retryable
    assert error.kind is Kind.TRANSIENT


@pytest.mark.spec("S3-35")
@pytest.mark.parametrize("code", [126, 127])
async def test_a_command_that_is_not_there_is_not_looked_for_again(bench, code):
    limits = Limits(retry=RetryPolicy(max_attempts=3))
    assert not (await bench.call(bash(bench, f"exit {code}", limits=limits))).error.retryable


async def test_a_program_that_is_killed_has_failed(bench):
    outcome = await bench.call(bash(bench, "kill -9 $$"))
    assert outcome.error.message == "sample was ended by SIGKILL"


@pytest.mark.spec("S3-34")
async def test_a_program_and_its_children_are_killed_at_the_time_limit(bench):
    note = bench.workspace / "pid"
    tool = bash(
        bench, f"(echo $BASHPID > '{note}'; sleep 60) & wait", requires={"shell.execute", "fs.write", "fs.read"}
    )
    outcome = await bench.call(tool, seconds=1.0)
    assert outcome.error.kind is Kind.TIMEOUT
    assert outcome.error.message == "sample ran longer than 1 s; its processes were killed"
    assert note.exists()
    assert not Path(f"/proc/{note.read_text().strip()}").exists()


async def test_more_than_the_limit_on_stdout_is_refused(bench):
    outcome = await bench.call(bash(bench, f"head -c {MAX_PRINTED_BYTES + 1} /dev/zero"))
    assert outcome.error.kind is Kind.LIMIT_EXCEEDED
    assert str(MAX_PRINTED_BYTES) in outcome.error.message


async def test_a_cancelled_call_leaves_no_process(bench, context):
    note = bench.workspace / "pid"
    tool = bash(bench, f"echo $$ > '{note}'; sleep 60", requires={"shell.execute", "fs.write", "fs.read"})
    task = asyncio.ensure_future(bench.runner.bind(tool).run({}, context(tool, 60)))
    until = time.monotonic() + 25
    while not (note.exists() and note.read_text().strip()):
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{note.read_text().strip()}").exists()


# Files of code


@pytest.mark.spec("S3-11", "S3-61")
async def test_a_bash_file_runs_with_bash(bench):
    tool = bench.file("greet.sh", 'echo "Hello, $2! ($0)"; [[ $# == 2 ]]', "bash", language="bash")
    assert await bench.value(tool, name="Ann") == f"Hello, Ann! ({bench.folder / 'greet.sh'})"


async def test_a_bash_file_finds_its_neighbours(bench):
    (bench.folder / "lib.sh").write_text("greet() { echo hi; }")
    tool = bench.file("greet.sh", ". ./lib.sh; greet", "bash", language="bash")
    assert await bench.value(tool) == "hi"


async def test_a_file_of_code_under_subprocess_is_read_by_its_language(bench):
    tool = bench.file("tell.sh", 'echo "$@"', "subprocess", language="bash")
    assert await bench.value(tool, a="1") == "--a 1"


@pytest.mark.spec("S3-59")
async def test_a_runtime_of_the_project_runs_files_by_its_command(bench):
    (bench.folder / "reader").write_text('#!/bin/sh\necho "reads $(cat "$1") with $2 $3"\n')
    (bench.folder / "reader").chmod(0o755)
    bench.tool("reading", None, kind="runtime", config={"command": "./reader"}, requires=())
    tool = bench.file("deep/er/poem.txt", "verse", "reading", language="poem", requires={"shell.execute"})
    assert await bench.value(tool, a="1") == "reads verse with --a 1"


async def test_words_of_a_runtime_stand_before_the_file_and_those_of_the_tool_behind_it(bench):
    bench.tool("careful", None, kind="runtime", config={"command": "bash", "args": ["-eu"]}, requires=())
    parameters = closed("who")
    config = {"args": ["--for", "{who}"]}
    facts = {"language": "bash", "requires": {"shell.execute"}, "config": config, "parameters": parameters}
    tool = bench.file("flags.sh", 'echo "$- $*"', "careful", **facts)
    assert await bench.value(tool, who="Ann") == "ehuB --for Ann"


async def test_words_of_a_tool_that_names_its_command_stand_before_its_file(bench):
    config = {"command": "bash", "args": ["-eu"]}
    tool = bench.file("flags.sh", 'echo "$- $*"', "subprocess", language="bash", config=config)
    assert await bench.value(tool, who="Ann") == "ehuB --who Ann"


@pytest.mark.parametrize("args", [["{who}"], ["-e", "{who}.sh"]])
def test_a_caller_never_says_which_file_runs(bench, args):
    config = {"command": "bash", "args": args}
    tool = bench.file("flags.sh", "echo", "subprocess", language="bash", config=config, parameters=closed("who"))
    with pytest.raises(ToolError, match="would stand where the file to run stands") as caught:
        bench.check(tool, who="/etc/profile")
    assert caught.value.kind is Kind.VALIDATION


async def test_a_runtime_that_is_bound_to_its_command_can_be_called(bench):
    tool = bench.tool("echoing", None, kind="runtime", config={"command": "bash", "args": ["-c", 'echo "$@"', "sh"]})
    assert await bench.value(tool, a="1") == "--a 1"


def test_a_file_that_changed_since_it_was_read_does_not_run(bench):
    tool = bench.file("greet.sh", "echo old", "bash", language="bash")
    (bench.folder / "greet.sh").write_text("echo new")
    with pytest.raises(ToolError, match=r"greet\.sh changed while it was about to run; call again") as caught:
        bench.check(tool)
    assert caught.value.kind is Kind.CONFLICT


async def test_nor_does_one_that_changes_between_the_check_and_the_start(bench, context):
    tool = bench.file("greet.sh", "echo old", "bash", language="bash")
    bench.check(tool)
    (bench.folder / "greet.sh").write_text("echo new")
    with pytest.raises(ToolError, match="changed while it was about to run"):
        await bench.runner.bind(tool).run({}, context(tool))


WAITING = """\
. "$(dirname "$0")/lib.sh"
echo begun > "$TOOLCRIB_WORKSPACE/begun"
while [[ ! -e "$TOOLCRIB_WORKSPACE/edited" ]]; do sleep 0.01; done
tell "$0" "${BASH_SOURCE[0]}" "$(wc -c < "$0")"
"""


async def test_a_file_that_is_edited_while_it_runs_goes_on_as_it_was(bench, context):
    (bench.folder / "lib.sh").write_text('tell() { echo "$@"; }\n')
    can = {"shell.execute", "fs.read", "fs.write"}
    tool = bench.file("greet.sh", WAITING, "bash", language="bash", requires=can)
    path = bench.folder / "greet.sh"
    running = asyncio.ensure_future(bench.runner.bind(tool).run({}, context(tool)))
    until = time.monotonic() + 25
    while not (bench.workspace / "begun").exists():
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    # In its place and not as a new file: what Bash reads next is what stands there then.
    path.write_text("echo another file\n" * 100)
    (bench.workspace / "edited").touch()
    outcome = await running
    assert outcome.error is None
    assert outcome.value == f"{path} {path} {len(WAITING)}"


async def test_a_file_of_code_cannot_be_changed_from_within(bench):
    can = {"shell.execute", "fs.read", "fs.write"}
    code = 'echo changed >> "$0" || echo kept; rm "$0" || echo kept'
    tool = bench.file("greet.sh", code, "bash", language="bash", requires=can)
    assert await bench.value(tool) == "kept\nkept"
    assert (bench.folder / "greet.sh").read_text() == code


@pytest.mark.parametrize("mode", [0o644, 0o755])
async def test_a_file_of_code_keeps_its_mode(bench, mode):
    tool = bench.file("greet.sh", 'if [[ -x "$0" ]]; then echo yes; else echo no; fi', "bash", language="bash")
    (bench.folder / "greet.sh").chmod(mode)
    assert await bench.value(tool) == ("yes" if mode == 0o755 else "no")


def test_a_file_that_is_gone_is_told(bench):
    tool = bench.file("greet.sh", "echo old", "bash", language="bash")
    (bench.folder / "greet.sh").unlink()
    with pytest.raises(ToolError, match=r"greet\.sh cannot be read any more"):
        bench.check(tool)


def test_a_tool_that_may_not_write_here_is_told_why(bench, tell):
    bench.limit(unwritable="the workspace holds modules")
    with pytest.raises(ToolError, match="no tool may write to the workspace: the workspace holds modules"):
        bench.check(tell(requires={"shell.execute", "fs.write"}))


@pytest.mark.parametrize("value", ["a\0b", "x" * 200_000, "\ud800"])
def test_a_value_that_no_program_can_be_handed_is_refused_before_anything_runs(bench, tell, value):
    with pytest.raises(ToolError) as caught:
        bench.check(tell(), name=value)
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize("config", [{}, {"command": ""}, {"command": []}, {"command": 5}, {"command": ["a", 1]}])
def test_a_tool_that_does_not_say_what_to_start_is_refused(bench, config):
    with pytest.raises(ToolError) as caught:
        bench.check(bench.tool(config=config))
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize("args", ["a b", {"a": 1}, [["a"]], [{}]])
def test_arguments_that_are_no_list_of_words_are_refused(bench, args):
    with pytest.raises(ToolError, match=r"config\.args: write a list of words"):
        bench.check(bench.tool(config={"command": "bash", "args": args}))


# The primitive itself


def subprocess_tool():
    return next(tool for tool in system_tools() if tool.name == "subprocess")


@pytest.mark.spec("S3-57", "S3-65")
async def test_the_primitive_starts_what_it_is_told_to(bench):
    (bench.workspace / "inner").mkdir()
    arguments = {
        "command": "bash",
        "args": ["-c", 'echo "$0 $A $PWD"', "{x} ${HOME}"],
        "env": {"A": "${B}"},
        "cwd": "inner",
    }
    assert await bench.value(subprocess_tool(), **arguments) == f"{{x}} ${{HOME}} ${{B}} {bench.workspace / 'inner'}"


@pytest.mark.parametrize("cwd", ["/etc", "..", "inner/../.."])
def test_the_primitive_stays_in_the_workspace(bench, cwd):
    (bench.workspace / "inner").mkdir()
    with pytest.raises(ToolError, match="outside the workspace"):
        bench.check(subprocess_tool(), command="ls", cwd=cwd)


@pytest.mark.spec("S3-30")
def test_a_command_that_is_not_there_is_named_before_anything_runs(bench):
    with pytest.raises(ToolError, match="the command 'no-such-command' was not found; install it") as caught:
        bench.check(subprocess_tool(), command="no-such-command")
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


async def test_python_means_the_interpreter_that_runs_toolcrib(bench):
    value = await bench.value(subprocess_tool(), command="python", args=["-c", "import sys; print(sys.executable)"])
    assert value == sys.executable
