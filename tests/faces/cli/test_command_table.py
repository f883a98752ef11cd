"""Commands are known by name and summary, and loaded when they are used."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from toolcrib.interfaces.cli.command_table import COMMANDS
from toolcrib.interfaces.cli.program import cli

LOADED = """
import sys
from toolcrib.__main__ import main
main(sys.argv[1:])
print(*(name for name in sys.modules if name.startswith("toolcrib.") and name.rpartition(".")[2] == "commands"))
"""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(name):
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name][1] == command.get_short_help_str(limit=200)


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        (["--help"], []),
        (["call", "nothing"], []),
        (["token", "list"], ["toolcrib.features.access.commands"]),
    ],
)
def test_only_the_command_that_is_used_is_loaded(tmp_path, words, loaded):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.splitlines()[-1].split() == loaded
