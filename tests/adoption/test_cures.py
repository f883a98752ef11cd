"""A cure that names a command of ours names one that exists, with options that it has."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import tomllib
from pathlib import Path

import click
import pytest
from source_texts import messages_of

import toolcrib
from toolcrib import Crib
from toolcrib.__main__ import main
from toolcrib.interfaces.cli.program import cli
from toolcrib.toolkit.cli.group import WordsCommand

HERE = Path(__file__).parent
SOURCE = Path(toolcrib.__file__).parent
# A command ends where its sentence goes on; what is filled in is written as X.
COMMAND = re.compile(r"(?<![\w/.])crib ((?:-C \S+ )?[a-z][\w-]*(?: [^;,()`\n]*)?)")
# Before these words "crib" is the object, and not the program.
NOUN = re.compile(r"\b(?:the|this|a|another|each|every|one|no|that|of) crib\b", re.IGNORECASE)
# Where a text may name a command, in the source of a module: to parse every module takes many times as long as to look for this.
CANDIDATE = re.compile(r"(?<!tool)crib (?:-C |[a-z])")
BETWEEN_TEXTS = re.compile(r"[\"']\s*(?:#[^\n]*\s*)*[fr]*[\"']", re.IGNORECASE)
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])")


def named_commands(text: str) -> list[str]:
    """The commands that a text names, without the name of the program."""
    return [found[1].strip() for found in COMMAND.finditer(NOUN.sub("it", text))]


def joined_source(path: Path) -> str:
    """The source of a module, with texts in one that stand in several pieces one behind the other."""
    return BETWEEN_TEXTS.sub("", path.read_text("utf-8"))


def what_is_wrong(line: str) -> str:
    """Why a command as a text names it cannot be typed; empty if it can."""
    words = re.sub(r"^-C \S+ ", "", line).split()
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            return f"there is no command {name!r}: crib {line}"
        command = found
    known = {spelling for parameter in command.params for spelling in (*parameter.opts, *parameter.secondary_opts)}
    if isinstance(command, WordsCommand):
        known |= {spelling for option in command.options for spelling in option.spellings}
    unknown = [option for option in OPTION.findall(" ".join(words)) if option not in {*known, "--help"}]
    return f"there is no option {unknown[0]}: crib {line}" if unknown else ""


def test_every_message_of_ours_names_commands_and_options_that_exist() -> None:
    found = [
        (f"{path.relative_to(SOURCE)}:{line}", command)
        for path in sorted(SOURCE.rglob("*.py"))
        if CANDIDATE.search(joined_source(path))
        for line, text in messages_of(path)
        if "crib " in text
        for command in named_commands(text)
    ]
    assert len(found) > 50
    assert [f"{place}: {wrong}" for place, command in found if (wrong := what_is_wrong(command))] == []


def refused_cases() -> list[Path]:
    """The files and projects of this folder that are refused, or may be."""
    return [
        path.parent if path.name == "expect.toml" else path.with_name(path.name.removesuffix(".expect.toml"))
        for path in sorted(HERE.rglob("*expect.toml"))
        if tomllib.loads(path.read_text("utf-8"))["outcome"] != "right"
    ]


@pytest.mark.parametrize(
    "case", [case for case in refused_cases() if case.is_dir()], ids=lambda path: str(path.relative_to(HERE))
)
def test_the_refusal_of_a_project_names_commands_that_exist(case: Path, tmp_path: Path) -> None:
    shutil.copytree(case / "project", tmp_path, dirs_exist_ok=True)
    check_refusals(tmp_path)


def test_the_refusal_of_a_file_names_commands_that_exist(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for case in filter(Path.is_file, refused_cases()):
        # Files of the same name lie in several folders of cases.
        shutil.copy(case, tmp_path / "tools" / f"{case.parent.name}_{case.name}")
    assert len(check_refusals(tmp_path)) > 10


def check_refusals(project: Path) -> list[str]:
    """What is said against a project when it is checked and its files are added; none of them is called."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        main(["check", "-C", str(project)])
        for path in sorted(project.glob("tools/*")):
            if path.name != "tool_registry.json":
                # Each into a project of its own, because all tools of a project are read for every addition.
                other = project / "others" / path.name
                other.mkdir(parents=True)
                (other / "toolcrib.toml").write_text("")
                main(["add", "-C", str(other), str(path)])
    with Crib(project) as crib:
        problems = [problem.message for problem in crib.problems]
    said = "\n".join([out.getvalue(), err.getvalue(), *problems])
    assert [wrong for command in named_commands(said) if (wrong := what_is_wrong(command))] == []
    return problems


@pytest.mark.parametrize(
    "line",
    [
        "frobnicate X",
        "bundle frobnicate",
        "bundle load --frobnicate X",
        "call X --frobnicate",
        "check --observe X --frobnicate",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert named_commands(f"it is wrong; run: crib {line}; then go on") == [line]
    assert "frobnicate" in what_is_wrong(line)
