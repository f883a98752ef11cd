"""The command line: every command with its options and arguments, and how each situation ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from toolcrib.__main__ import main


class Rows(click.HelpFormatter):
    """Keeps the left column of what a command lists as its options."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[str] = []

    def write_dl(self, rows, *_, **__) -> None:
        self.left += [row[0] for row in rows]


@pytest.fixture
def root_command(monkeypatch) -> click.Group:
    """The command that the program itself runs, taken when it is asked for help."""
    found: list[click.Command] = []
    show = click.Command.get_help

    def get_help(self, ctx):
        found.append(ctx.find_root().command)
        return show(self, ctx)

    monkeypatch.setattr(click.Command, "get_help", get_help)
    assert main(["--help"]) == 0
    assert isinstance(found[0], click.Group)
    return found[0]


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, click.Context(below, info_name=name, parent=context))


def show_type(kind: click.ParamType) -> str:
    facts = dict[str, Any](kind.to_info_dict())
    shown = {
        name: facts[name] for name in ("choices", "min", "max", "exists", "file_okay", "dir_okay") if name in facts
    }
    listed = [f"{name}={[*value] if isinstance(value, tuple) else value!r}" for name, value in shown.items()]
    return " ".join([str(facts["param_type"]), *listed])


def show_parameter(parameter: click.Parameter, context: click.Context) -> str:
    default = parameter.get_default(context, call=False)
    # What stands for "no default" differs between versions of Click.
    default = None if default in ((), None) or default is False or "UNSET" in repr(default) else default
    facts = {
        "metavar": parameter.metavar,
        "nargs": None if parameter.nargs == 1 else parameter.nargs,
        "multiple": parameter.multiple or None,
        "flag": getattr(parameter, "is_flag", False) or None,
        "required": parameter.required or None,
        "default": default,
        "variable": parameter.envvar,
        "prompt": getattr(parameter, "prompt", None),
        "hidden": getattr(parameter, "hidden", False) or None,
    }
    known = [f"{name}={value!r}" for name, value in facts.items() if value is not None]
    names = ", ".join([*parameter.opts, *(f"/{name}" for name in parameter.secondary_opts)])
    return f"  {parameter.param_type_name} {names}: {' | '.join([show_type(parameter.type), *known])}"


def show_command(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path.split(" ", 1)[1:] or ["(program)"]
    yield f"{path[0]}{' (hidden)' if command.hidden else ''}"
    # Arguments are told apart by their order, options by their names.
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    yield from (show_parameter(parameter, context) for parameter in arguments)
    yield from sorted(show_parameter(parameter, context) for parameter in command.params if parameter not in arguments)
    rows = Rows()
    command.format_options(context, rows)
    listed = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    # Some commands read their words themselves, and only their help knows what these may be.
    own = [row for row in rows.left if not listed & set(row.replace(",", " ").split())]
    yield from (f"  read by the command {row}" for row in own if row.startswith("-"))


def test_every_command_has_the_options_and_arguments_that_are_pinned(root_command, golden):
    context = click.Context(root_command, info_name="crib")
    lines = [line for command in walk(root_command, context) for line in show_command(*command)]
    golden("commands.txt", "\n".join(lines) + "\n")


HOST = '''
from toolcrib import Kind, ToolError, tool


@tool
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


@tool(requires=["net.http"])
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(confirm=True)
def wipe(what: str) -> str:
    """Remove something."""
    return f"removed {what}"


@tool(modes=["voice"])
def speak() -> str:
    """Say something aloud."""
    return "spoken"


@tool
def crash() -> str:
    """Fail by mistake."""
    raise ZeroDivisionError("division")


@tool
def missing() -> str:
    """Fail because a file is not there."""
    raise ToolError(Kind.NOT_FOUND, "no such file")


@tool
def interrupt() -> str:
    """Be interrupted."""
    raise KeyboardInterrupt
'''
SITUATIONS = (
    "",
    "--help",
    "call --help",
    "bundle",
    "nonsense",
    "--nonsense",
    "version",
    "version more",
    "list",
    "list --nonsense",
    "list --json",
    "list --tag none",
    "list -C nowhere",
    "list --url http://127.0.0.1:9",
    "list --url nonsense",
    "list --url http://127.0.0.1:9 -C .",
    "show add",
    "show nonsense",
    "show",
    "call",
    "call add first=1",
    "call add first=1 --full",
    "call add first=1 --json",
    "call add first=1 --json {}",
    "--version",
    "-h",
    "help",
    "help list",
    "help nonsense",
    "help list more",
    'call add --args {"first":1}',
    "call add --args [1]",
    "call add --args {",
    "call add first=x",
    "call add first=1 first=2",
    "call add first",
    "call add",
    "call add first=1 --nonsense",
    "call add first=1 --mode loud",
    "call add first=1 --timeout 0",
    "call add first=@nowhere",
    "call nonsense",
    "call off",
    "call send to=Ada",
    "call send to=Ada --grant net.http",
    "call send to=Ada --grant net.*",
    "call wipe what=disk",
    "call wipe what=disk --yes",
    "call wipe what=disk --confirm nonsense",
    "call speak",
    "call speak --mode voice",
    "call crash",
    "call missing",
    "call interrupt",
    "explain add first=1",
    "explain add first=x",
    "explain add --nonsense",
    "explain nonsense",
    "explain send to=Ada",
    "explain wipe what=disk",
    "explain crash",
    "check",
    "check add",
    "check nonsense",
    "check --strict",
    "result nonsense",
    "result x --offset -1",
    "search add",
    "search nothing-like-this",
    "enable add",
    "disable add",
    "call add first=2",
    "enable add",
    "enable nonsense",
    "bundle list",
    "bundle nonsense",
    "secret list",
    "secret remove NOTHING",
    "token list",
    "token create x --scope nonsense",
    "token revoke nonsense",
    "request list",
    "request show nonsense",
    "experiments",
    "registry",
    "build",
    "test",
    "test nonsense",
    "doc add",
    "doc nonsense",
    "prompt",
    "export --for openai",
    "export --for nonsense",
    "export --for openai nonsense",
    "export",
    "stats",
    "depot",
    "publish nonsense --to there",
    "pull nonsense --from ./depot",
    "depot list ./depot",
    "request cancel nonsense",
    "bundle new pins",
    "bundle delete nonsense",
    "bundle remove nonsense",
    "bundle load nowhere",
    "doctor --nonsense",
    "serve --port x",
    "serve --host 192.0.2.1",
    "prepare nonsense",
    "completion bash",
    "completion nonsense",
    "run host_of_pins.py",
    "run nowhere.py",
    "run host_of_pins.py add first=1",
    "run host_of_pins.py nonsense",
    "sink nonsense",
    "new",
    "init .",
    # Last: a file that cannot be read ends the program, which gives its output up.
    "request submit nowhere.yaml",
)


def test_every_situation_ends_with_the_exit_code_that_is_pinned(tmp_path, monkeypatch, capfd, golden):
    (tmp_path / "host_of_pins.py").write_text(HOST)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "off.py").write_text('def off() -> int:\n    """Be disabled."""\n    return 1\n')
    (tmp_path / "toolcrib.toml").write_text('modules.tools = ["host_of_pins"]\ncatalog.disabled = ["off"]\n')
    monkeypatch.chdir(tmp_path)
    lines = ["exit code, streams that were written to (o: output, e: errors), command"]
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        for situation in SITUATIONS:
            code = main(situation.split())
            captured = capfd.readouterr()
            streams = "".join(name for name, text in (("o", captured.out), ("e", captured.err)) if text) or "-"
            lines.append(f"{code:>3} {streams:<2} crib {situation}".rstrip())
    sys.modules.pop("host_of_pins", None)
    golden("exit_codes.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("setting", ["nonsense = 1", 'catalog.disabled = "add"', "= broken"])
def test_wrong_settings_end_with_the_exit_code_of_wrong_use(tmp_path: Path, monkeypatch, setting):
    (tmp_path / "toolcrib.toml").write_text(setting)
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 2
