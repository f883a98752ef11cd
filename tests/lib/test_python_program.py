"""What a Python program says about its options, read off its syntax tree."""

import ast

import pytest

from toolcrib.lib.command_line import command_words
from toolcrib.lib.python_program import read_python_program

ARGPARSE = """
import argparse
def main():
    parser = argparse.ArgumentParser(description="Count words")
    group = parser.add_argument_group("words")
    parser.add_argument("text", help="the text")
    parser.add_argument("files", nargs="*")
    group.add_argument("-n", "--top-words", type=int, default=3)
    parser.add_argument("--sort", choices=["alpha", "count"])
    parser.add_argument("--tag", action="append")
    parser.add_argument("-v", action="count", dest="verbosity")
    parser.add_argument("--quiet", dest="loud", action="store_false")
    parser.add_argument("--color", action=argparse.BooleanOptionalAction)
    parser.add_argument("--version", action="version", version="1")
    args = parser.parse_args()
if __name__ == "__main__":
    main()
"""
CLICK = """
import click
@click.command()
@click.argument("name")
@click.option("--times", "-t", type=click.IntRange(1, 5), default=1, help="How often")
@click.option("--shout/--no-shout")
@click.option("--tag", multiple=True)
@click.option("--mode", type=click.Choice(["a", "b"]), required=True)
def greet(name, times, shout, tag, mode):
    \"\"\"Greet a person.\"\"\"
if __name__ == "__main__":
    greet()
"""
TYPER = """
import typer
app = typer.Typer()
@app.command()
def add(name: str, count: int = 1, loud: bool = False, tags: list[str] = typer.Option([])):
    \"\"\"Add something.\"\"\"
@app.command("rm")
def remove(name: str): ...
if __name__ == "__main__":
    app()
"""


def shape(line):
    return [(one.name, one.option, one.takes, one.required) for one in line.parameters]


def test_options_of_argparse_are_read():
    line = read_python_program(ast.parse(ARGPARSE))
    assert line.summary == "Count words"
    assert shape(line) == [
        ("text", "", "value", True),
        ("files", "", "spread", False),
        ("top_words", "--top-words", "value", False),
        ("sort", "--sort", "value", False),
        ("tag", "--tag", "repeat", False),
        ("verbosity", "-v", "count", False),
        ("loud", "--", "flag", False),
        ("color", "--color", "flag", False),
    ]
    arguments = {"text": "-x", "top_words": 2, "tag": ["a", "b"], "verbosity": 2, "loud": False, "color": False}
    expected = ("--top-words", "2", "--tag", "a", "--tag", "b", "-v", "-v", "--quiet", "--no-color", "--", "-x")
    assert command_words(line.to_config(), arguments).words == expected


def test_options_of_click_are_read():
    line = read_python_program(ast.parse(CLICK))
    assert line.summary == "Greet a person."
    assert shape(line) == [
        ("name", "", "value", True),
        ("times", "--times", "value", False),
        ("shout", "--shout", "flag", False),
        ("tag", "--tag", "repeat", False),
        ("mode", "--mode", "value", True),
    ]
    schemas = line.to_schema()["properties"]
    assert schemas["times"] == {"type": "integer", "description": "How often", "default": 1}
    assert schemas["mode"] == {"enum": ["a", "b"]}


def test_commands_of_typer_are_actions():
    line = read_python_program(ast.parse(TYPER))
    assert {name: shape(part) for name, part in line.actions.items()} == {
        "add": [
            ("name", "", "value", True),
            ("count", "--count", "value", False),
            ("loud", "--loud", "flag", False),
            ("tags", "--tags", "repeat", False),
        ],
        "rm": [("name", "", "value", True)],
    }
    assert line.actions["rm"].before == ("rm",)


def test_sub_parsers_are_actions():
    code = """
import argparse
parser = argparse.ArgumentParser()
sub = parser.add_subparsers(dest="command", required=True)
find = sub.add_parser("find", help="find parts")
find.add_argument("name")
sub.add_parser("count")
args = parser.parse_args()
print(args)
"""
    line = read_python_program(ast.parse(code))
    assert {name: (part.summary, part.names) for name, part in line.actions.items()} == {
        "find": ("find parts", ("name",)),
        "count": ("", ()),
    }


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("for n in names:\n    parser.add_argument(n)", "an argument is added in a loop"),
        ("parser.add_argument(name)", "the name of an argument is not a literal"),
        ("parser.add_argument('rest', nargs=argparse.REMAINDER)", "rest takes the rest of the words"),
        ("parser.add_argument('--x', action=Own)", "--x has an action of its own"),
        ("parser.add_argument('--x')\nparser.add_argument('-x', '--x')", "two arguments are called x"),
    ],
)
def test_what_only_running_code_could_tell_is_refused(more, words):
    code = f"import argparse\nparser = argparse.ArgumentParser()\n{more}\nparser.parse_args()\n"
    [(_, problem)] = read_python_program(ast.parse(code)).problems
    assert problem.startswith(words)


@pytest.mark.parametrize(
    "code",
    ["import argparse\ndef main(): argparse.ArgumentParser()", "import json\nprint(1)", "def f(): ..."],
)
def test_a_file_that_starts_nothing_or_parses_nothing_is_no_program(code):
    assert read_python_program(ast.parse(code)) is None


PARENTS = """
import argparse
common = argparse.ArgumentParser(add_help=False)
common.add_argument("--verbose", action="store_true")
parser = argparse.ArgumentParser(parents=[common])
parser.add_argument("name")
parser.add_argument("--json", dest="as_json", action="store_true")
parser.add_argument("--csv", dest="as_json", action="store_false")
parser.parse_args()
"""


def test_a_parser_has_the_arguments_of_its_parents_and_two_flags_of_one_name_are_one():
    line = read_python_program(ast.parse(PARENTS))
    assert line is not None
    assert [one.name for one in line.parameters] == ["verbose", "name", "as_json"]
    assert command_words(line.to_config(), {"name": "a", "as_json": True}).words == ("--json", "a")
    assert command_words(line.to_config(), {"name": "a", "as_json": False}).words == ("--csv", "a")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "a = argparse.ArgumentParser()\nb = argparse.ArgumentParser()\nb.parse_args()",
            "more than one ArgumentParser",
        ),
        ("p = argparse.ArgumentParser(parents=[elsewhere])\np.parse_args()", "its parents are not parsers"),
        (
            "def add(p): p.add_argument('--x')\nq = argparse.ArgumentParser()\nadd(q)",
            "added to p, which is not a parser that this file makes",
        ),
    ],
)
def test_arguments_that_only_running_code_knows_are_refused_and_not_left_out(code, words):
    line = read_python_program(ast.parse(f"import argparse\n{code}"))
    assert line is not None
    ((_, text),) = line.problems
    assert words in text
