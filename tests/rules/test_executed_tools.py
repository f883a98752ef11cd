"""What the rules make of the arguments of tools that executors run."""

from pathlib import Path

import pytest

from toolcrib.model.call import Call
from toolcrib.model.tool import Chained, Tool
from toolcrib.model.verdict import Decision
from toolcrib.rules.arguments import Role, read_arguments, runs_command_line
from toolcrib.rules.dangerous import DangerousCommands
from toolcrib.rules.sensitive import SensitiveFiles
from toolcrib.runners.system import system_tools

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
    assert judge(executed({"command": "git"}), name=name) is Decision.ALLOW


def test_values_of_a_bash_file_are_words_too():
    assert judge(executed(executor="bash"), name="rm -rf /") is Decision.ALLOW


def test_what_is_named_a_command_is_judged_as_one_by_every_tool():
    assert judge(executed({"command": "git"}), command="rm -rf /") is Decision.DENY


def test_an_operand_is_still_a_path():
    verdict = SensitiveFiles(Path("/work"))(executed(), Call(name="sample", arguments={"name": "/etc/shadow"}))
    assert verdict.decision is Decision.DENY


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
    assert judge(primitive("subprocess"), **arguments) is Decision.DENY


def test_the_primitive_may_do_what_is_harmless():
    assert judge(primitive("subprocess"), command="ls", args=["-l"]) is Decision.ALLOW


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
    assert judge(executed({"command": line, "shell": True}), **arguments) is Decision.DENY


def test_a_value_stands_in_the_command_line_as_one_word():
    tool = executed({"command": "grep {name} notes.txt", "shell": True})
    assert "grep 'a; b' notes.txt " in commands(tool, name="a; b")


def test_a_harmless_command_line_is_allowed():
    assert judge(executed({"command": "grep {name} notes.txt | wc -l", "shell": True}), name="Ann") is Decision.ALLOW


@pytest.mark.parametrize("shell", [False, None, "true", 1])
def test_only_true_makes_a_command_line(shell):
    assert not runs_command_line(executed({"command": "reboot", "shell": shell}))
    assert judge(executed({"command": "reboot {name}", "shell": shell}), name="x") is Decision.ALLOW


@pytest.mark.parametrize(
    ("config", "executor"),
    [
        ({"command": "bash", "args": ["-c", "{name}"]}, "subprocess"),
        ({"command": "/usr/bin/sh", "args": ["-ec", "echo {name}"]}, "subprocess"),
        ({"args": ["-c", "{name}"]}, "bash"),
    ],
)
def test_what_is_handed_to_a_shell_as_code_is_judged_as_such(config, executor):
    assert judge(executed(config, executor=executor), name="x; reboot") is Decision.DENY
    assert judge(executed(config, executor=executor), name="ls") is Decision.ALLOW


def test_words_behind_the_code_for_a_shell_are_words():
    config = {"command": "bash", "args": ["-c", 'echo "$1"', "sh", "{name}"]}
    assert judge(executed(config), name="x; reboot") is Decision.ALLOW


@pytest.mark.parametrize("config", [{"shell": True}, {"shell": True, "command": ["a"]}, {"shell": True, "command": 5}])
def test_a_command_line_that_is_none_is_left_to_the_runner(config):
    assert judge(executed(config), name="Ann") is Decision.ALLOW
