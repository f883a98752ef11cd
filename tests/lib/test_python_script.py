"""What a Python script reads of its words and its standard input, read off its syntax tree."""

import ast

import pytest

from toolcrib.lib.command_line import command_words
from toolcrib.lib.python_script import read_python_script


def line_of(text):
    return read_python_script(ast.parse(text))


def shape(text):
    line = line_of(text)
    assert line.problems == ()
    return [(one.name, one.takes, one.required) for one in line.parameters]


WORDS = "import sys\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = sys.argv[1]\nprint(name)", [("name", "value", True)]),
        ("_, a, b = sys.argv\nprint(a, b)", [("a", "value", True), ("b", "value", True)]),
        ("a, b = map(int, sys.argv[1:3])\nprint(a + b)", [("a", "value", True), ("b", "value", True)]),
        (
            "first, second = sys.argv[1], sys.argv[2]\nprint(first)",
            [("first", "value", True), ("second", "value", True)],
        ),
        ("command, *words = sys.argv[1:]\nprint(words)", [("command", "value", True), ("words", "spread", False)]),
        ("for word in sys.argv[1:]:\n    print(word)", [("word", "spread", False)]),
        ("print(sum(map(int, sys.argv[1:])))", [("args", "spread", False)]),
        (
            "args = sys.argv[1:]\nif not args:\n    sys.exit(1)\nname = args[0]\nn = int(args[1]) if len(args) > 1 else 1",
            [("name", "value", True), ("n", "value", False)],
        ),
        ("try:\n    n = int(sys.argv[1])\nexcept IndexError:\n    n = 3\nprint(n)", [("n", "value", False)]),
        ("try:\n    n = sys.argv[1]\nexcept IndexError:\n    sys.exit('usage')\nprint(n)", [("n", "value", True)]),
        (
            "def main():\n    name = sys.argv[1]\n    print(name)\nif __name__ == '__main__':\n    main()",
            [("name", "value", True)],
        ),
        ("def total(path):\n    return len(path)\nprint(total(sys.argv[1]))", [("arg1", "value", True)]),
        ("print('report')", []),
        ("def _go():\n    print('go')\nif __name__ == '__main__':\n    _go()", []),
    ],
)
def test_words_are_those_that_the_script_reads(text, expected):
    assert shape(WORDS + text) == expected


def test_argv_may_be_imported_by_its_bare_name():
    assert shape("from sys import argv\nscript, first = argv\nprint(first)") == [("first", "value", True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# usage: roman.py NUMBER\nn = int(sys.argv[1])\nprint(n)", [("number", "value", True)]),
        (
            "'Usage: rename.py CAMERA [SUFFIX]'\ndef main():\n    args = sys.argv[1:]\n    print(*args)\nmain()",
            [("camera", "value", True), ("suffix", "value", False)],
        ),
    ],
)
def test_a_usage_line_names_the_words(text, expected):
    line = read_python_script(ast.parse(WORDS + text), WORDS + text)
    assert [(one.name, one.takes, one.required) for one in line.parameters] == expected


def test_a_word_that_is_made_a_number_is_one():
    line = line_of("import sys\nw = float(sys.argv[1])\nn = int(sys.argv[2])\nprint(w * n)")
    assert [one.schema["type"] for one in line.parameters] == ["number", "integer"]
    assert command_words(line.to_config(), {"w": -1.5, "n": 2}).words == ("-1.5", "2")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("import sys\nprint(len(sys.stdin.read()))", True),
        ("name = input('Name? ')\nprint(name)", True),
        ("import sys\nf = open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin\nprint(f.read())", False),
    ],
)
def test_standard_input_is_an_argument(text, needs):
    line = line_of(text)
    assert (line.stdin, line.needs_stdin) == ("stdin", needs)


@pytest.mark.parametrize(
    "text",
    [
        "X = 1",
        "class A:\n    pass",
        "def area(w: int) -> int:\n    return w\nif __name__ == '__main__':\n    import sys\n    print(area(int(sys.argv[1])))",
        "def area(w):\n    return w\nprint('loaded')",
        "from flask import Flask\napp = Flask(__name__)\nif __name__ == '__main__':\n    app.run()",
    ],
)
def test_what_offers_a_function_or_prints_nothing_is_no_script(text):
    assert line_of(text) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("print('all' if '--all' in sys.argv else 'some')", 2, "searches sys.argv for options"),
        ("sys.argv.pop(0)\nprint(1)", 2, "uses sys.argv.pop"),
        ("print(sys.argv)", 2, "passes sys.argv on"),
        ("i = 1\nprint(sys.argv[i])", 3, "indexes sys.argv with a computed value"),
        ("print(sys.argv[1:-1])", 2, "slices sys.argv in a way"),
        ("print(sys.argv[99])", 2, "reads too many words of sys.argv"),
    ],
)
def test_words_that_cannot_be_told_are_refused_with_their_line(text, line, words):
    [(number, problem)] = line_of(WORDS + text).problems
    assert (number, problem) == (line, problem)
    assert problem.startswith(words)
    assert "read it with argparse, or write a function that takes it" in problem


@pytest.mark.parametrize(
    "text",
    [
        "print(sys.argv[1])\n" * 20_000,
        "".join(f"a{n} = sys.argv[1:]\nprint(a{n})\n" for n in range(10_000)),
        "print(" + "(" * 80 + "sys.argv[1]" + ")" * 80 + ")",
        "".join(f"{' ' * n}if len(sys.argv) > {n}:\n" for n in range(80)) + " " * 80 + "print(sys.argv[1])",
    ],
)
def test_a_hostile_script_costs_little(text):
    line = line_of(WORDS + text)
    assert len(line.parameters) <= 40
