"""What a Bash file says about its arguments, read off its text."""

import pytest

from toolcrib.lib.bash_program import read_bash_program, uses_odd_places
from toolcrib.lib.command_line import command_words
from toolcrib.model.errors import ToolError


def shape(text):
    line = read_bash_program(text.encode())
    return [(one.name, one.option, one.takes, one.required) for one in line.parameters]


def words(text, /, **arguments):
    line = read_bash_program(text.encode())
    return list(command_words(line.to_config(), arguments).words)


GETOPTS = """#!/bin/bash
# Repeat a text
usage() { echo "Usage: $0 [-n COUNT] [-u] TEXT" >&2; exit 1; }
count=1
while getopts "n:uh" opt; do
  case "$opt" in
    n) count="$OPTARG" ;;
    u) upper=true ;;
    h|*) usage ;;
  esac
done
shift $((OPTIND - 1))
text="${1:?text is required}"
for ((i = 0; i < count; i++)); do echo "$text"; done
"""
LOOP = """#!/bin/bash
while [[ $# -gt 0 ]]; do
  case "$1" in
    -n|--name) NAME="$2"; shift 2 ;;
    --env=*) ENV="${1#*=}"; shift ;;
    -v|--verbose)
      VERBOSE=true
      shift
      ;;
    -h|--help) usage; exit 0 ;;
    *) echo "unknown: $1"; exit 1 ;;
  esac
done
[[ -z "$NAME" ]] && { echo "a name is needed"; exit 2; }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo $(($1 + $2))", [("arg1", "", "value", True), ("arg2", "", "value", True)]),
        (
            "# Usage: x.sh NAME [GREETING]\necho ${2:-Hi} $1",
            [("name", "", "value", True), ("greeting", "", "value", False)],
        ),
        ('src="$1"; dst="$2"; cp "$src" "$dst"', [("src", "", "value", True), ("dst", "", "value", True)]),
        (
            'main() {\n  local a=$1 b=$2\n  echo $((a * b))\n}\nmain "$@"',
            [("a", "", "value", True), ("b", "", "value", True)],
        ),
        ('log() { echo "$1"; }\nlog start\necho "${1:-World}"', [("arg1", "", "value", False)]),
        ('for n in "$@"; do echo $n; done', [("args", "", "spread", False)]),
        (
            'first=$1; shift; second=$1; echo "$first $second"',
            [("first", "", "value", True), ("second", "", "value", True)],
        ),
        ('name=$1\nif [ -n "$2" ]; then echo $2; fi', [("name", "", "value", True), ("arg2", "", "value", False)]),
        ("echo 'costs $1' # and $2\ncat <<'END'\n$3\nEND", []),
        (GETOPTS, [("count", "-n", "value", False), ("upper", "-u", "flag", False), ("text", "", "value", True)]),
        (
            LOOP,
            [
                ("name", "--name", "value", True),
                ("env", "--env=", "value", False),
                ("verbose", "--verbose", "flag", False),
            ],
        ),
    ],
)
def test_names_and_places_are_those_that_the_code_reads(text, expected):
    assert shape(text) == expected


def test_an_argument_that_is_calculated_with_is_an_integer():
    line = read_bash_program(b"a=$1\necho $((a + $2))")
    assert [one.schema["type"] for one in line.parameters] == ["integer", "integer"]


def test_the_words_of_a_case_that_refuses_all_others_are_described():
    text = 'case "$1" in\n  start) echo up ;;\n  stop|halt) echo down ;;\n  *) exit 1 ;;\nesac'
    assert read_bash_program(text.encode()).parameters[0].schema["description"] == "One of start, stop, halt."


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('echo hi\necho "name, please\necho $1', 2, "a quote is opened here"),
        ("echo 'open", 1, "a quote is opened here"),
        ("select x in a b; do echo $x; done", 1, "select asks a person"),
        ("# lib\nset -eu\nup() {\n  echo $1\n}\n", 1, "it only defines functions and runs nothing"),
    ],
)
def test_a_file_that_cannot_be_called_says_why(text, line, words):
    [(number, problem)] = read_bash_program(text.encode()).problems
    assert number == line
    assert problem.startswith(words)


@pytest.mark.parametrize(
    "text",
    [
        'echo "it\'s $(date "+%Y") ${x:-"a b"}"',
        "cat <<END\nit's fine\nEND\necho done",
        "x=${#a}; echo $# # don't\necho $'it\\'s'",
        "case $1 in\n  a) echo \"x\" ;;\n  *) echo 'y' ;;\nesac",
        'echo "a `date "+%s"` b"',
    ],
)
def test_quotes_in_quotes_are_no_open_quotes(text):
    assert read_bash_program(text.encode()).problems == ()


@pytest.mark.parametrize(
    "text", ["text=$(cat)", "cat | wc -l", "tr a-z A-Z", "while read -r line; do echo $line; done", "sort < /dev/stdin"]
)
def test_a_file_that_reads_standard_input_says_so(text):
    assert read_bash_program(text.encode()).stdin == "stdin"


@pytest.mark.parametrize(
    "text",
    ["cat file.txt", "echo x | cat", "while read -r line; do echo $line; done < list.txt", "sort names.txt", "date"],
)
def test_a_file_that_reads_other_things_does_not(text):
    assert read_bash_program(text.encode()).stdin == ""


def test_options_stand_first_and_a_dashed_word_behind_the_end_of_options():
    assert words(GETOPTS, count=2, upper=True, text="-x") == ["-n", "2", "-u", "--", "-x"]
    assert words(LOOP, name="-x", env="prod", verbose=False) == ["--name", "-x", "--env=prod"]
    assert words("echo $(($1 + $2))", arg1=-2, arg2=3) == ["-2", "3"]


def test_a_place_behind_one_that_is_not_given_is_refused():
    with pytest.raises(ToolError, match="greeting is taken by its place behind name"):
        words("# Usage: x.sh [NAME] [GREETING]\necho ${2:-Hi} ${1:-you}", greeting="Hello")


def test_only_files_that_read_odd_places_as_values_do_not_follow_the_form_of_options():
    assert uses_odd_places(b"echo $1 $2")
    assert not uses_odd_places(b"file=$2; echo $file")
    assert not uses_odd_places(b'echo "$@"')


@pytest.mark.parametrize(
    "text",
    [
        "$1" * 80_000,
        "f() {\n" * 30_000,
        "shift\n" * 40_000,
        'case "$1" in\n' * 15_000,
        "read;" * 50_000,
        "while " * 40_000,
        "((" * 100_000,
        "'" * 100_001,
        "<<A\n" * 60_000,
        '"$@"' * 60_000,
        "a|" * 100_000 + ")",
        "usage: " * 30_000,
    ],
)
def test_a_hostile_file_costs_little(text):
    line = read_bash_program(text.encode()[:256_000])
    assert len(line.parameters) < 250
