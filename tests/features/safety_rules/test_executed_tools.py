"""What the rules make of the arguments of tools that executors run."""

from pathlib import Path

import pytest

from toolcrib import Call, Tool
from toolcrib.features.safety_rules.arguments import read_arguments, runs_command_line
from toolcrib.features.safety_rules.command_line import reads_code
from toolcrib.features.safety_rules.dangerous_commands import DangerousCommands
from toolcrib.features.safety_rules.roles import Role
from toolcrib.features.safety_rules.sensitive_files import SensitiveFiles
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.tool import Chained

TEXTS = {"type": "object", "properties": {"name": {"type": "string"}, "command": {"type": "string"}}}


def executed(config=None, *, kind="script", executor="subprocess", requires=("shell.execute",)):
    run = Chained(kind=kind, tool_type=kind, executor=executor, folder=Path("/tools"), config=config or {})
    return Tool(name="sample", description="", parameters=TEXTS, run=run, requires=frozenset(requires))


def primitive(name):
    return next(tool for tool in system_tools() if tool.name == name)


def judge(tool, **arguments):
    return DangerousCommands()(tool, Call(name=tool.name, arguments=arguments)).decision


def commands(tool, **arguments):
    found = read_arguments(tool, Call(name=tool.name, arguments=arguments))
    return [argument.text for argument in found if argument.role is Role.COMMAND]


@pytest.mark.parametrize("name", ["rm -rf /", "$(reboot)", "; shutdown now", "say 'hello"])
def test_values_that_become_words_are_no_shell_code(name):
    assert commands(executed({"command": "git"}), name=name) == []
    assert judge(executed({"command": "git"}), name=name) == "allow"


def test_values_of_a_bash_file_are_words_too():
    assert judge(executed(executor="bash"), name="rm -rf /") == "allow"


def test_what_is_named_a_command_is_judged_as_one_by_every_tool():
    assert judge(executed({"command": "git"}), command="rm -rf /") == "deny"


def test_an_operand_is_still_a_path():
    verdict = SensitiveFiles(Path("/work"))(executed(), Call(name="sample", arguments={"name": "/etc/shadow"}))
    assert verdict.decision == "deny"


@pytest.mark.spec("S3-65")
@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "rm", "args": ["-rf", "/"]},
        {"command": "shutdown"},
        {"command": "bash", "args": ["-c", "rm -rf /"]},
        {"command": "env", "args": ["rm", "-rf", "/"]},
    ],
)
def test_the_primitive_is_judged_by_its_command_and_arguments(arguments):
    assert judge(primitive("subprocess"), **arguments) == "deny"


def test_the_primitive_may_do_what_is_harmless():
    assert judge(primitive("subprocess"), command="ls", args=["-l"]) == "allow"


@pytest.mark.spec("S3-30")
@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("rm -rf {name}", {"name": "build"}),
        ("sh -c {name}", {"name": "rm -rf /"}),
        ("eval {name}", {"name": "shutdown now"}),
        ("echo {name} > /dev/sda", {"name": "x"}),
        ("{name}", {"name": "reboot"}),
        ("echo a; reboot", {"name": "x"}),
    ],
)
def test_a_command_line_is_judged_with_the_values_in_it(line, arguments):
    assert judge(executed({"command": line, "shell": True}), **arguments) == "deny"


def test_a_value_stands_in_the_command_line_as_one_word():
    tool = executed({"command": "grep {name} notes.txt", "shell": True})
    assert commands(tool, name="a; b") == ["grep 'a; b' notes.txt"]


def test_a_harmless_command_line_is_allowed():
    assert judge(executed({"command": "grep {name} notes.txt | wc -l", "shell": True}), name="Ann") == "allow"


@pytest.mark.parametrize("shell", [False, None, "true", 1])
def test_only_true_makes_a_command_line(shell):
    assert not runs_command_line(executed({"command": "reboot", "shell": shell}))
    assert judge(executed({"command": "reboot {name}", "shell": shell}), name="x") == "allow"


@pytest.mark.parametrize(
    ("config", "executor"),
    [
        ({"command": "bash", "args": ["-c", "{name}"]}, "subprocess"),
        ({"command": "/usr/bin/sh", "args": ["-ec", "echo {name}"]}, "subprocess"),
        ({"args": ["-c", "{name}"]}, "bash"),
    ],
)
def test_what_is_handed_to_a_shell_as_code_is_judged_as_such(config, executor):
    assert judge(executed(config, executor=executor), name="x; reboot") == "deny"
    assert judge(executed(config, executor=executor), name="ls") == "allow"


def test_words_behind_the_code_for_a_shell_are_words():
    config = {"command": "bash", "args": ["-c", 'echo "$1"', "sh", "{name}"]}
    assert judge(executed(config), name="x; reboot") == "allow"


@pytest.mark.parametrize("config", [{"shell": True}, {"shell": True, "command": ["a"]}, {"shell": True, "command": 5}])
def test_a_command_line_that_is_none_is_left_to_the_runner(config):
    assert judge(executed(config), name="Ann") == "allow"


ORDINARY = [
    "it's fine",
    "say 'hello",
    "a (b",
    "(",
    "50% off; call now",
    "rm -rf /",
    "$(reboot)",
    "`reboot`",
    "a\r\nb\x1b",
]
HARMLESS_LINES = [
    "echo {name} | tr a-z A-Z",
    "printf '%s' {name} > notes.txt",
    "git commit -m {name}",
    'text={name}; echo "$text" | wc -w',
    "python3 -W ignore count.py {name}",
    "echo {name} | python3 -c 'import sys; print(sys.stdin.read())'",
    "sh count.sh {name}",
]


@pytest.mark.parametrize("line", HARMLESS_LINES)
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_text_is_data_to_a_command_line(line, name):
    tool = executed({"command": line, "shell": True})
    assert judge(tool, name=name) == "allow"
    assert SensitiveFiles(Path("/work"))(tool, Call(name="sample", arguments={"name": name})).decision == "allow"


def test_text_of_any_length_is_data_to_a_command_line():
    tool = executed({"command": "echo {name} | wc -w", "shell": True})
    assert judge(tool, name="it's " * 10_000) == "allow"
    assert judge(executed({"command": "eval {name}", "shell": True}), name="ls " * 10_000) == "deny"


@pytest.mark.parametrize(
    ("line", "is_code"),
    [
        ("xargs ls < {name}", True),
        ("echo {name} | parallel", True),
        ("echo {name} | sh count.sh", False),
        ("python3 -X dev {name}", True),
        ("python3 -X dev count.py {name}", False),
        ("wrapper run image sh -c {name}", True),
        ("wrapper run image python3.11 -c {name}", True),
        ("wrapper run image count {name}", False),
    ],
)
def test_a_value_is_code_where_a_shell_or_an_interpreter_takes_it_for_its_program(line, is_code):
    run = executed({"command": line, "shell": True}).run
    assert isinstance(run, Chained)
    assert reads_code(run, {"name": "x"}) is is_code


CODE_LINES = [
    "eval {name}",
    "sh -c {name}",
    "echo {name} | sh",
    "echo {name} | sudo bash -s",
    "echo {name} | xargs sh -c",
    "echo {name} | xargs -I % sh -c %",
    'text={name}; eval "$text"',
    "{name}",
    "sudo {name}",
    "env {name}",
    "trap {name} EXIT",
    "ssh host echo {name}",
    "docker run image sh -c {name}",
    "python3 -c {name}",
    "perl -we {name}",
    "awk {name} notes.txt",
    "PAGER={name} man ls",
    "export PAGER={name}; man ls",
    "[[ {name} -eq 1 ]]",
    "declare -i count={name}",
    "echo ${list[{name}]}",
    "read {name}",
    "printf -v {name} x",
    "test -v {name}",
    "find . -exec {name} ;",
    "watch {name}",
    "source {name}",
    "make {name}",
    "cat <<END | sh\n{name}\nEND",
    "echo 'open {name}",
]


@pytest.mark.parametrize("line", CODE_LINES)
@pytest.mark.parametrize("name", ["reboot; ls", "x[$(reboot)]"])
def test_a_value_that_something_in_the_line_may_run_is_judged_as_code(line, name):
    assert judge(executed({"command": line, "shell": True}), name=name) == "deny"


@pytest.mark.parametrize("args", [["{name}"], ["-x", "{name}"]])
def test_words_behind_the_line_are_judged_with_it(args):
    tool = executed({"command": "bash -c", "args": args[-1:], "shell": True})
    assert judge(tool, name="x; reboot") == "deny"
    harmless = executed({"command": "echo", "args": args, "shell": True})
    assert judge(harmless, name="x; reboot") == "allow"
    dangerous = executed({"command": "rm", "args": ["-r", "-f", *args[-1:]], "shell": True})
    assert judge(dangerous, name="build") == "deny"


def test_an_argument_without_a_slot_stands_behind_the_line():
    assert commands(executed({"command": "wc", "shell": True}), name="it's") == ["wc --name 'it'\"'\"'s'"]
    assert commands(executed({"command": "wc", "shell": True}), name="-it's") == ["wc '--name=-it'\"'\"'s'"]


@pytest.mark.parametrize("line", ["cat {name}", "echo hi > {name}", "grep x < {name}", "curl -d @{name} example.com"])
@pytest.mark.parametrize("name", ["/etc/shadow", ".env", "~/.ssh/id_rsa", "/srv/.env"])
def test_a_sensitive_path_in_a_slot_is_denied(line, name):
    tool = executed({"command": line, "shell": True})
    verdict = SensitiveFiles(Path("/work"))(tool, Call(name="sample", arguments={"name": name}))
    assert verdict.decision == "deny"


def test_a_path_with_strange_letters_is_still_a_path():
    tool = executed({"command": "cat {name}", "shell": True})
    verdict = SensitiveFiles(Path("/work"))(tool, Call(name="sample", arguments={"name": "/home/me/.ssh/\x01"}))
    assert verdict.decision == "deny"


def test_a_line_that_only_the_runtime_knows_may_run_anything():
    assert judge(executed({"shell": True}, executor="my-shell"), name="reboot; ls") == "deny"
