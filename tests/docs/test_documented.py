"""Nothing public is without words: names, members, commands, options, settings and kinds of errors."""

import inspect

import click
import pytest

import toolcrib
from toolcrib.core.plugins import Plugins
from toolcrib.features.functions.decorators import Options
from toolcrib.interfaces.cli.program import cli
from toolcrib.model import protocols
from toolcrib.toolkit.cli.group import WordsCommand


def commands_of(group: click.Group, words: str) -> dict[str, click.Command]:
    """Every command by the words that start it, those of groups too."""
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found[f"{words} {name}"] = command
        if isinstance(command, click.Group):
            found |= commands_of(command, f"{words} {name}")
    return found


COMMANDS = commands_of(cli, "crib")


@pytest.fixture
def reference(root) -> str:
    return (root / "docs" / "reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", toolcrib.__all__)
def test_every_public_name_and_every_member_of_it_is_documented(name, reference):
    value = getattr(toolcrib, name)
    assert f"\n### {name}\n" in reference
    assert inspect.getdoc(value)
    members = vars(value) if isinstance(value, type) else {}
    public = {key: member for key, member in members.items() if not key.startswith("_") and _is_described(member)}
    assert [key for key, member in public.items() if not member.__doc__] == []
    assert [key for key in public if f"- `{key}" not in reference] == []


def test_every_part_that_a_plug_in_can_be_is_documented(generate, reference):
    parts = {name for name, part in vars(protocols).items() if getattr(part, "__module__", "") == protocols.__name__}
    assert parts == set(generate.PROTOCOLS)
    assert [name for name in parts if f"\n### {name}\n" not in reference] == []


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_every_option_is_documented(words, reference):
    command = COMMANDS[words]
    section = reference.partition(f"# {words}\n")[2].partition("\n###")[0]
    assert command.help
    assert command.help.splitlines()[0] in section
    options = command.options if isinstance(command, WordsCommand) else ()
    texts = {option.spellings[0]: option.help for option in options}
    texts |= {known.opts[0]: known.help for known in command.params if known.param_type_name == "option"}
    assert [option for option, text in texts.items() if not text or option not in section] == []


def test_every_command_is_told_about_on_a_page_for_people(pages):
    told = "".join(page.read_text(encoding="utf-8") for page in pages if page.name != "reference.md")
    assert [words for words in COMMANDS if words not in told] == []


def test_every_setting_is_documented_and_every_earlier_name_leads_to_one(root):
    page = (root / "docs" / "settings.md").read_text(encoding="utf-8")
    tables, earlier = page.split("## Names from before there were tables")
    declared = [each for table in Plugins().tables().values() for each in table.declared.values()]
    keys = {
        each.name: "a name" if Plugins().tables()[each.table].is_map else f"`{each.key or each.name}`"
        for each in declared
    }
    assert [name for name, key in keys.items() if f"| {key} |" not in tables] == []
    assert [each.name for each in declared if each.summary not in tables] == []
    now = {row.split("`")[3].strip("[]") for row in earlier.splitlines() if row.startswith("| `")}
    assert now - {each.name for each in declared} == set()


def test_every_kind_of_error_is_documented_and_nothing_else(generate, reference):
    assert set(generate.read_texts("kinds")) == {str(kind) for kind in toolcrib.Kind}
    assert generate.NO_TEXT not in reference


def test_every_option_of_the_decorator_is_told_about(root):
    page = (root / "docs" / "write-a-tool.md").read_text(encoding="utf-8")
    assert [name for name in Options.__annotations__ if f"`{name}`" not in page] == []


def _is_described(member: object) -> bool:
    return isinstance(member, property) or inspect.isfunction(member)
