"""What a Bash file says about its arguments, read off its text."""

import pytest

from toolcrib import ToolError
from toolcrib.lib.bash_program import read_bash_program, uses_odd_places
from toolcrib.lib.command_line import command_words


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
OPTION_IN_BRACKETS = """# Usage: x.sh [-l] NAME [GREETING]
while getopts l o; do case $o in l) loud=1;; esac; done
shift $((OPTIND-1))
name="$1"
greeting="${2:-Hello}"
echo "$greeting, $name"
"""
ONE_WORD_IN_A_LOOP = """while [[ $# -gt 0 ]]; do
  case "$1" in
    --dry-run) DRY=true; shift ;;
    *) SERVICE="$1"; shift ;;
  esac
done
: "${SERVICE:?a service is needed}"
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
        (
            OPTION_IN_BRACKETS,
            [("loud", "-l", "flag", False), ("name", "", "value", True), ("greeting", "", "value", False)],
        ),
        (
            ONE_WORD_IN_A_LOOP,
            [("dry_run", "--dry-run", "flag", False), ("service", "", "value", True)],
        ),
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
    "text",
    [
        "text=$(cat)",
        "cat | wc -l",
        "tr a-z A-Z",
        "while read -r line; do echo $line; done",
        "sort < /dev/stdin",
        "name=$(python3 -c 'import json, sys; print(json.load(sys.stdin)[\"name\"])')",
        "node -e 'process.stdin.pipe(process.stdout)' | sort",
    ],
)
def test_a_file_that_reads_standard_input_says_so(text):
    assert read_bash_program(text.encode()).stdin == "stdin"


@pytest.mark.parametrize(
    "text",
    [
        "encode() { base64; }\nencode",
        "take() { cat; }\ntext=$(take)",
        "set -e\necho top\ncut -d , -f 2 | sort -u",
        "grep -v '^#'",
    ],
)
def test_a_filter_and_a_function_that_read_standard_input_are_found(text):
    assert read_bash_program(text.encode()).stdin == "stdin"


@pytest.mark.parametrize(
    "text",
    [
        "encode() { base64; }\necho x | encode",
        "take() { cat; }\ntake < file.txt",
        "unused() { cat; }\ndate",
        'grep -v x "$1"',
        "sort -o out.txt in.txt",
        'sed -e s/a/b/ "$1"',
        "echo x |\n  tr a b",
        "if grep -q x file; then echo; fi",
        "echo x | python3 -c 'import sys; print(sys.stdin.read())'",
        "python3 -c 'import sys; print(sys.stdin.read())' < a.txt",
    ],
)
def test_what_is_fed_or_names_a_file_does_not_read_standard_input(text):
    assert read_bash_program(text.encode()).stdin == ""


def test_standard_input_in_place_of_a_file_may_be_left_out():
    line = read_bash_program(b'cat "${1:-/dev/stdin}" | wc -w')
    assert (line.stdin, line.needs_stdin, line.to_schema()["required"]) == ("stdin", False, [])


COMMANDS = """#!/bin/bash
# Keep values.
usage() { cat <<EOF
Usage: $0 COMMAND
  put KEY [VALUE]   Store a value
  get KEY           Read a value
EOF
exit 1; }
cmd_put() { local key=$1; local value=${2:-empty}; echo "$key=$value"; }
cmd_get() { local key="$1"; echo "get $key"; }
cmd_build() {
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -j|--jobs) jobs="$2"; shift 2 ;;
      *) exit 1 ;;
    esac
  done
}
main() {
  local cmd="${1:-}"
  shift || true
  case "$cmd" in
    put|set) cmd_put "$@" ;;
    get) cmd_get "$@" ;;
    build) cmd_build "$@" ;;
    help|-h) usage ;;
    *) usage ;;
  esac
}
main "$@"
"""


def commands(text):
    line = read_bash_program(text.encode())
    return {
        name: [(one.name, one.option, one.required) for one in part.parameters] for name, part in line.actions.items()
    }


def test_each_command_of_a_case_over_the_first_word_has_arguments_of_its_own():
    assert commands(COMMANDS) == {
        "put": [("key", "", True), ("value", "", False)],
        "get": [("key", "", True)],
        "build": [("jobs", "--jobs", False)],
    }
    actions = read_bash_program(COMMANDS.encode()).actions
    assert [part.summary for part in actions.values()] == ["Store a value", "Read a value", ""]
    assert command_words(actions["put"].to_config(), {"key": "a", "value": "b"}).words == ("put", "a", "b")
    assert command_words(actions["build"].to_config(), {"jobs": 4}).words == ("build", "--jobs", "4")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'case $1 in\n  add) echo "$2" "$3" ;;\n  rm) echo "$2" ;;\n  *) echo "usage: $0 add WHAT WHERE"; exit 1 ;;\nesac',
            {"add": [("what", "", True), ("where", "", True)], "rm": [("arg1", "", True)]},
        ),
        (
            'add() { local name="$1" role="$2"; }\ncase "$1" in\n  add-user) add "$2" "$3" ;;\n  bye) echo bye ;;\nesac',
            {"add-user": [("name", "", True), ("role", "", True)], "bye": []},
        ),
        (
            'case "$1" in\n  show)\n    case "$2" in\n      long) echo l ;;\n      *) exit 1 ;;\n    esac ;;\n  say) shift; echo "$@" ;;\nesac',
            {"show": [("arg1", "", True)], "say": [("args", "", False)]},
        ),
        (
            'case "$1" in\n  start|stop) echo "$1 $2" ;;\nesac',
            {"start": [("arg1", "", True)], "stop": [("arg1", "", True)]},
        ),
        (
            'cmd_get() { echo "$1"; }\ncmd_all() { echo all; }\nsub=$1\nshift\ncase $sub in\n  get|all) "cmd_$sub" "$@" ;;\nesac',
            {"get": [("arg1", "", True)], "all": []},
        ),
    ],
)
def test_commands_are_found_in_the_forms_that_people_write(text, expected):
    assert commands(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'op=$1; a=$2; b=$3\ncase "$op" in\n  add) echo $((a + b)) ;;\n  sub) echo $((a - b)) ;;\nesac',
        'case "$1" in json) f=$1 ;; yaml) f=$1 ;; *) exit 1 ;; esac\necho "$f $2"',
        'while [ $# -gt 0 ]; do case "$1" in a) x=$2 ;; b) y=$2 ;; esac; shift; done',
    ],
)
def test_a_choice_among_values_makes_no_commands(text):
    assert commands(text) == {}


def test_values_in_a_usage_line_do_not_name_an_argument():
    text = 'op=$1; n=$2\necho "usage: $0 {add|sub} N"\necho "$op $n"'
    assert [one.name for one in read_bash_program(text.encode()).parameters] == ["op", "n"]


def test_an_option_with_the_letter_of_help_is_one_like_any_other():
    text = 'while true; do case "$1" in -w|--width) W="$2"; shift 2 ;; -h|--height) H="$2"; shift 2 ;; *) break ;; esac; done'
    assert [one.name for one in read_bash_program(text.encode()).parameters if one.option] == ["width", "height"]


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        (b"\xef\xbb\xbf#!/bin/bash\necho hi\n", 1, "it begins with a byte order mark"),
        (b"#!/bin/bash\necho hi\r\n", 2, "it has line ends of Windows"),
    ],
)
def test_a_file_that_bash_cannot_run_says_how_to_convert_it(code, line, words):
    [(number, problem)] = read_bash_program(code).problems
    assert number == line
    assert problem.startswith(words)
    assert "sed -i" in problem


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
    with pytest.raises(ToolError, match="greeting is a positional argument after name"):
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
        'case "$1" in a) f "$@";; b) case x in\n' * 6_000,
        'case "$1" in\n' + "".join(f'c{n}) f{n} "$@" ;;\n' for n in range(5_000)),
        'case "$1" in\na) x $2;;\nb) y;;\nesac\n' * 4_000,
        "".join(f"f{n}() {{ f{n + 1}; }}\n" for n in range(5_000)) + "f0",
        "tr " * 60_000,
        'case "$1" in\n  add) echo $2 ;;\n  rm) echo ;;\nesac\n' + "# add x\n" * 20_000,
    ],
)
def test_a_hostile_file_costs_little(text):
    line = read_bash_program(text.encode()[:256_000])
    assert len(line.parameters) < 250
