"""Commands are registered by name and summary, and loaded when they are used."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from toolcrib import Crib
from toolcrib.core.plugins import Plugins
from toolcrib.interfaces.cli.program import HEADINGS, cli
from toolcrib.lib import __version__
from toolcrib.toolkit.cli import read_line
from toolcrib.toolkit.cli.group import WordsCommand
from warm_python import run_python

COMMANDS = Plugins().named("commands")
LOADED = """
import sys
from toolcrib.__main__ import main
code = main(sys.argv[1:])
print(*(name for name in sys.modules if name.startswith("toolcrib.") and name.rpartition(".")[2] == "commands"))
sys.exit(code)
"""
PACKAGE = """
import click


@click.command("greet")
def greet():
    "Say hello."
    print("hello")


@click.command("version")
def version():
    "Pretend."
    print("pretended")


def register(plugins):
    plugins.add_command("greet", "crib_greeting:greet", "Say hello.")
    plugins.add_command("version", "crib_greeting:version", "Pretend.")
"""


@pytest.fixture
def run(tmp_path):
    """Run a module, or code in a fresh interpreter, in an empty folder, with these folders to import from."""

    def start(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "empty").mkdir(exist_ok=True)
        # What code finds loaded is told by a real start alone.
        begin = run_python if words[0] == "-m" else subprocess.run
        return begin(
            [sys.executable, *words],
            cwd=tmp_path / "empty",
            env={**os.environ, **({} if path is None else {"PYTHONPATH": str(path)})},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return start


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name):
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name].options["summary"] == command.get_short_help_str(limit=200)


def test_no_two_features_register_a_command_of_the_same_name():
    names = [part.name for part in Plugins().parts("commands")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        (["--help"], []),
        (["call", "nothing"], []),
        (["token", "list"], ["toolcrib.features.access.commands"]),
    ],
)
def test_only_the_command_that_is_used_is_loaded(run, words, loaded):
    assert run("-c", LOADED, *words).stdout.splitlines()[-1].split() == loaded


def test_an_installed_package_adds_a_command_and_replaces_none(run, tmp_path):
    site = tmp_path / "site"
    information = site / "crib_greeting-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "crib_greeting.py").write_text(PACKAGE)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: crib-greeting\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[toolcrib.plugins]\ngreeting = crib_greeting:register\n")
    greeted = run("-m", "toolcrib", "greet", path=site)
    assert (greeted.returncode, greeted.stdout) == (0, "hello\n"), greeted.stderr
    assert "\nOther commands:\n  greet        Say hello.\n" in run("-m", "toolcrib", "--help", path=site).stdout
    assert "pretended" not in run("-m", "toolcrib", "version", path=site).stdout


def test_a_crib_has_every_member_that_the_protocols_of_commands_name():
    modules = {sys.modules[part.load().callback.__module__] for part in COMMANDS.values()}
    used = [kind for module in modules for kind in vars(module).values() if getattr(kind, "_is_protocol", False)]
    members = {
        (kind.__name__, name)
        for kind in used
        for base in kind.__mro__
        if getattr(base, "_is_protocol", False)
        for name in vars(base)
        if not name.startswith("_")
    }
    assert {kind for kind, _ in members} >= {"AccessCrib", "DepotCrib", "FoldersCrib", "ScriptsCrib", "TestingCrib"}
    with Crib() as crib:
        known = dir(crib)
    assert [member for member in sorted(members) if member[1] not in known] == []


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands and sub-commands, by what one types after `crib`."""
    waiting = [(name, cli.get_command(click.Context(cli), name)) for name in COMMANDS]
    while waiting:
        words, command = waiting.pop()
        assert command is not None
        yield words, command
        if isinstance(command, click.Group):
            waiting += [(f"{words} {name}", each) for name, each in command.commands.items()]


def test_every_command_of_ours_stands_under_one_heading_of_the_help():
    assert sorted(name for names in HEADINGS.values() for name in names) == sorted(COMMANDS)


def test_every_help_ends_with_an_example_that_the_command_takes():
    for words, command in every_command():
        assert command.epilog is not None, f"crib {words} has no example"
        for line in command.epilog.splitlines()[2:]:
            # An example may be one end of a pipe, or stand in a command of the shell.
            _, crib, typed = line.partition("crib ")
            assert crib, line
            assert f"{typed} ".startswith(f"{words} "), line
            given = shlex.split(typed.rstrip(')"').removeprefix(words))
            if isinstance(command, WordsCommand):
                read_line(given, command.options)
            elif not isinstance(command, click.Group):
                command.make_parser(click.Context(command)).parse_args(given)


def test_help_of_a_command_is_what_its_own_option_shows(run):
    by_command = run("-m", "toolcrib", "help", "bundle", "load").stdout
    assert by_command == run("-m", "toolcrib", "bundle", "load", "-h").stdout
    assert by_command.startswith("Usage: crib bundle load [OPTIONS] DIR\n")
    refused = run("-m", "toolcrib", "help", "lsit")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean list" in refused.stderr


def test_the_version_is_an_option_too(run):
    assert run("-m", "toolcrib", "--version").stdout == run("-m", "toolcrib", "version").stdout == f"{__version__}\n"
