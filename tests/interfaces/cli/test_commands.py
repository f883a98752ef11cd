"""Every command that looks at tools but `call`, and help, in this process."""

from __future__ import annotations

import json
import re
import sys

import click
import pytest

from toolcrib import __version__
from toolcrib.interfaces.cli.program import cli
from toolcrib.toolkit.cli import MEANINGS, ExitCode, visible


def test_list_shows_each_tool_by_the_name_that_calls_it(crib):
    lines = crib("list").out.splitlines()
    assert lines[0].split() == ["NAME", "STATE", "BUNDLE", "KIND", "REQUIRES", "DESCRIPTION"]
    table = lines[1 : lines.index("")]
    rows = {line.split()[0]: line for line in table}
    assert "Add two numbers." in rows["add"]
    assert "mail.send, net.http" in rows["send"]
    assert "Give a text back." in rows["say"]
    assert "Go by a name that is taken." in rows["other/say@1.0.0"]
    assert crib("call", "other/say@1.0.0", "text=x").out == "x\n"


def test_list_as_json_holds_every_tool(crib):
    tools = {tool["address"]: tool for tool in json.loads(crib("list", "--json").out)}
    send = next(tool for tool in tools.values() if tool["name"] == "send")
    assert send["requires"] == ["mail.send", "net.http"]
    assert send["missingGrants"] == ["mail.send", "net.http"]
    assert (send["models"]["offered"], send["models"]["modes"]) == (False, [])
    add = next(tool for tool in tools.values() if tool["name"] == "add")
    assert add["models"] == {"offered": True, "as": "add", "modes": ["text", "voice"], "reason": ""}
    assert tools["other/say@1.0.0"]["models"]["offered"] is False


def test_a_tool_that_is_switched_off_is_listed_as_such(crib, host_module):
    with (host_module / "toolcrib.toml").open("a") as file:
        file.write('catalog.disabled = ["add"]\n')
    row = next(line for line in crib("list").out.splitlines() if line.startswith("add "))
    assert row.split()[1] == "off"
    shown = crib("show", "add").out
    assert "state:  off: 'add' stands in catalog.disabled in toolcrib.toml; take 'add' out of" in shown
    assert "offered to models:  no: it is disabled" in shown


def test_list_mentions_what_could_not_be_loaded(crib, host_module):
    (host_module / "tools" / "broken.py").write_text("def broken(:\n")
    ended = crib("list")
    assert ended.code == 0
    assert "problems: 1" in ended.err


def test_an_empty_project_says_how_to_begin(crib, host_module):
    (host_module / "toolcrib.toml").write_text("builtins.enabled = false\n")
    assert "crib init" in crib("list").err


def test_show_tells_everything_about_a_tool(crib):
    shown = crib("show", "add").out
    assert "Add two numbers." in shown
    assert [line.split()[:3] for line in shown.splitlines() if line.startswith(("first", "second"))] == [
        ["first", "integer", "required"],
        ["second", "integer", "1"],
    ]
    assert "returns:            integer" in shown
    assert "30 s (the default of calls.timeout_ms)" in shown
    assert "offered to models:  yes, as add, in text and voice mode" in shown
    assert "written in:         crib_cli_host.py:" in shown
    assert "shadows:            other/say@1.0.0" in crib("show", "say").out
    assert "shadowed by:        host/say@1.0.0" in crib("show", "other/say").out
    assert "in voice mode" in crib("show", "speak").out
    assert "It takes no parameters." in crib("show", "speak").out
    assert "confirmation:       needed" in crib("show", "wipe").out


def test_show_as_json_holds_the_definition_that_a_model_gets(crib):
    facts = json.loads(crib("show", "add", "--json").out)
    assert facts["definition"] == {
        "type": "function",
        "function": {"name": "add", "description": "Add two numbers.", "parameters": facts["parameters"]},
    }
    assert len(facts["contentHash"]) == 64


@pytest.mark.parametrize("command", ["show", "check", "explain"])
def test_an_unknown_tool_ends_with_4_and_a_hint(crib, command):
    ended = crib(command, "ad")
    assert ended.code == 4
    assert "did you mean add" in ended.out + ended.err


@pytest.mark.spec("S4-26")
def test_explain_answers_why_a_tool_is_not_being_called(crib, host_module):
    known = crib("explain", "add", "first=1").out
    assert "registered: yes, as " in known
    assert "written in crib_cli_host.py:" in known
    assert "exact name: add\n" in known
    assert "enabled: yes\n" in known
    assert "offered to models: yes, as add, in text and voice mode\n" in known
    assert "registered: no, there is no tool 'ad'; did you mean add" in crib("explain", "ad").out
    assert "offered to models: yes, as speak, in voice mode\n" in crib("explain", "speak").out
    with (host_module / "toolcrib.toml").open("a") as file:
        file.write('catalog.disabled = ["add"]\n')
    off = " ".join(crib("explain", "add", "first=1").out.split())
    assert "enabled: no: 'add' stands in catalog.disabled in toolcrib.toml; take 'add' out of" in off
    assert "offered to models: no: it is disabled" in off


@pytest.mark.parametrize(
    ("words", "code", "row"),
    [
        (["add", "first=1"], 0, ["arguments", "allow"]),
        (["add", "first=x"], 3, ["arguments", "deny"]),
        (["send", "to=x"], 3, ["capabilities", "deny"]),
        (["send", "to=x", "--grant", "*"], 0, ["capabilities", "allow"]),
        (["speak"], 3, ["mode", "deny"]),
        (["speak", "--mode", "voice"], 0, ["mode", "allow"]),
        (["wipe", "what=x"], 5, ["confirmation", "confirm"]),
        (["shell", "command=rm -rf /"], 3, ["rules", "deny"]),
    ],
)
def test_explain_shows_every_gate_on_request_and_ends_as_the_call_would(crib, words, code, row):
    ended = crib("explain", *words, "--all")
    assert ended.code == code
    gates = [line.split()[:2] for line in ended.out.splitlines()]
    assert row in gates
    explanation = json.loads(crib("explain", *words, "--json").out)
    assert explanation["allowed"] is (code == 0)
    assert {"gate": row[0], "decision": row[1]}.items() <= next(
        finding.items() for finding in explanation["findings"] if finding["gate"] == row[0]
    )


def test_explain_shows_the_gates_that_object_with_their_grounds_on_lines_of_80_columns(crib):
    shown = crib("explain", "send", "to=x").out.splitlines()
    first = shown.index("capabilities  deny")
    assert shown[first + 1] == "  reason: send requires mail.send, net.http, which is not granted"
    assert not any(line.startswith(("rules ", "arguments ")) for line in shown)
    assert shown[-1] == "The call would be refused by the gate capabilities."
    assert all(len(line) <= 80 for line in shown)


def test_explain_names_files_from_the_current_folder_as_a_refused_call_does(crib, host_module):
    (host_module / "tools" / "double.py").write_text("def double(number: int) -> int:\n    return 2 * number\n")
    place = "parameters of double in tools/double.py:1"
    assert f"  where: {place}\n" in crib("explain", "double", "number=x").out
    assert place in crib("call", "double", "number=x").err


def test_explain_runs_nothing_and_asks_no_person(crib, host_module):
    (host_module / "tools" / "touch.py").write_text("def touch() -> str:\n    open('touched', 'w')\n    return ''\n")
    assert crib("explain", "touch").code == 0
    assert crib("explain").code == 2
    assert not (host_module / "touched").exists()


def test_check_finds_nothing_wrong_with_good_tools(crib):
    ended = crib("check", "add", "send")
    assert (ended.code, ended.out) == (0, "2 tools, 0 problems, 0 warnings\n")


def test_check_reports_every_problem_with_file_line_and_cure(crib, host_module):
    (host_module / "tools" / "broken.py").write_text("\ndef broken(:\n")
    (host_module / "tools" / "two.py").write_text("def one(): ...\ndef other(): ...\n")
    ended = crib("check")
    assert ended.code == 1
    assert "problem: tools/broken.py:2: " in ended.out
    assert "correct the line" in ended.out
    assert "two.py:1: which function is the tool?" in ended.out
    assert ", 2 problems, " in ended.out
    assert crib("check", "add").code == 1


def test_a_warning_counts_only_if_one_is_strict(crib, host_module):
    (host_module / "tools" / "vague.py").write_text('def vague(what) -> str:\n    """Be vague."""\n    return ""\n')
    ended = crib("check", "vague")
    assert (ended.code, "warning: " in ended.out, "vague.py:1" in ended.out) == (0, True, True)
    assert crib("check", "vague", "--strict").code == 1


def test_a_tool_that_hides_another_is_warned_about(crib, host_module):
    (host_module / "tools" / "read_file.py").write_text(
        'def read_file(path: str) -> str:\n    """Read.\n\n    Args:\n        path: Which.\n    """\n    return path\n'
    )
    warning = "warning: tools/read_file.py:1 hides builtin/read-file@1.0.0; call that one by its address\n"
    ended = crib("check", "read_file")
    assert (ended.code, ended.out) == (0, f"{warning}1 tool, 0 problems, 1 warning\n")
    assert crib("check", "read_file", "--strict").code == 1
    assert crib("check", "builtin/read-file@1.0.0", "--strict").out == "1 tool, 0 problems, 0 warnings\n"
    assert "\nbuiltin/read-file@1.0.0 " in crib("list").out
    everything = crib("check").out
    assert warning in everything
    assert everything.count(" hides ") == 2
    assert re.search(r"^warning: crib_cli_host.py:\d+ hides other/say@1.0.0; ", everything, re.MULTILINE)


BASE_TOOL = """
from core.types import ToolResult
from tool.bases import BaseTool, create_json_schema


class Weather(BaseTool):
    name = "weather"
    description = "Tell the weather."
    parameters = create_json_schema({properties}, ["city"])

    async def execute(self, arguments):
        return ToolResult(tool_call_id="", output="sunny in " + arguments["city"])
"""


@pytest.mark.spec("S4-27")
def test_check_says_which_property_lacks_what(crib, host_module):
    (host_module / "crib_cli_weather.py").write_text(BASE_TOOL.format(properties={"city": {"type": "string"}}))
    (host_module / "toolcrib.toml").write_text('modules.tools = ["crib_cli_weather"]\n')
    ended = crib("check")
    sys.modules.pop("crib_cli_weather")
    assert ended.code == 1
    assert "problem: tool 'weather': property 'city' has no description" in ended.out


def test_run_lists_and_calls_the_tools_of_a_trusted_file(crib, host_module):
    good = {"city": {"type": "string", "description": "Where."}}
    (host_module / "weather.py").write_text(BASE_TOOL.format(properties=good))
    listed = crib("run", "weather.py")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == ["weather"]
    assert crib("run", "weather.py", "weather", "city=Oslo").out == "sunny in Oslo\n"
    assert crib("run", "weather.py", "weather", "town=Oslo").code == 3
    assert crib("run", "weather.py", "wether").code == 4


@pytest.mark.parametrize(
    ("text", "code", "complaint"),
    [
        (None, 2, "file.py is not a file"),
        ("raise ValueError('no')", 1, "file.py:1: ValueError: no"),
        (BASE_TOOL.format(properties={"city": {"type": "string"}}), 1, "property 'city' has no description"),
        ("import sys; sys.exit(0)", 1, "SystemExit"),
    ],
)
def test_run_reports_a_file_that_holds_no_tool(crib, host_module, text, code, complaint):
    if text is not None:
        (host_module / "file.py").write_text(text)
    ended = crib("run", "file.py")
    assert (ended.code, complaint in ended.err) == (code, True), ended.err
    assert crib("run").code == 2


def test_an_unknown_command_is_met_with_the_one_that_was_meant(crib):
    ended = crib("lst")
    assert ended.code == 2
    assert "There is no command 'lst'; did you mean list?" in ended.err
    assert ended.err.count("\n") == 1


def test_help_documents_every_command_and_exit_code(crib):
    ended = crib("--help")
    assert ended.code == 0
    for command in cli.list_commands(click.Context(cli)):
        assert f"\n  {command} " in ended.out
        helped = crib(command, "--help")
        assert (helped.code, helped.out.startswith(f"Usage: crib {command}")) == (0, True)
    for code in ExitCode:
        assert f"{code:>3}  {MEANINGS[code]}" in ended.out
    assert crib("call", "add", "--help").out == crib("call", "--help").out
    assert "--grant CAPABILITY" in crib("run", "file.py", "--help").out
    assert crib("call", "say", "text=x", "--", "--help=1").code == 3


def test_no_command_shows_help_and_is_wrong_use(crib):
    ended = crib()
    assert (ended.code, ended.out.startswith("Usage: crib")) == (2, True)


@pytest.mark.parametrize("words", [["list", "--nope"], ["show"], ["result"], ["completion", "csh"], ["list", "extra"]])
def test_wrong_use_of_a_command_is_told_in_one_line(crib, words):
    ended = crib(*words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert f"See: crib {words[0]} --help" in ended.err


def test_version_is_printed(crib):
    assert crib("version").out == f"{__version__}\n"
    assert json.loads(crib("version", "--json").out) == {"version": __version__}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts_call_the_program(crib, shell):
    ended = crib("completion", shell)
    assert ended.code == 0
    assert "_CRIB_COMPLETE" in ended.out


@pytest.fixture
def complete(crib, monkeypatch):
    """Ask as a shell does for what the last of the words may become."""

    def ask(words: str):
        monkeypatch.setenv("_CRIB_COMPLETE", "zsh_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        return crib()

    return ask


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("crib sh", ["show"]),
        ("crib show ad", ["add"]),
        ("crib call ad", ["add"]),
        ("crib explain ad", ["add"]),
        ("crib check add se", ["send"]),
        ("crib call add ad", []),
    ],
)
def test_commands_and_tool_names_complete(complete, words, completed):
    assert complete(words).out.splitlines()[1::3] == completed


def test_a_project_that_cannot_be_opened_completes_nothing(complete, host_module):
    (host_module / "toolcrib.toml").write_text("nonsense = 1\n")
    ended = complete("crib show a")
    assert (ended.code, ended.out.strip(), ended.err) == (0, "", "")


def test_what_a_terminal_would_obey_is_made_visible():
    hostile = "a\x1b[2J\x07b\x9bc\u202ed\x7f\r\n\te\u2028\udc80"
    assert visible(hostile) == "a\\x1b[2J\\x07b\\x9bc\\u202ed\\x7f\\x0d\n\te\\u2028\\udc80"


def test_hostile_texts_of_a_tool_stay_in_their_cell(crib, host_module):
    (host_module / "tools" / "evil.py").write_text(
        'def evil(x: str) -> str:\n    """Ev\\x1b[2Jil [bold]text[/bold] \\u202e."""\n    return x\n'
    )
    for words in (["list"], ["show", "evil"], ["list", "--json"], ["explain", "evil", "x=\x1b[2J"]):
        ended = crib(*words)
        assert ended.code == 0
        assert "\x1b" not in ended.out + ended.err
    assert "Ev\\x1b[2Jil [bold]text[/bold] \\u202e." in crib("list").out
