"""Reading a command line: every command is seen, with the words that the shell would hand to it."""

import shlex
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.lib.shell import GLOB, UNKNOWN
from toolcrib.lib.shell.reader import MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, read_line


def read_commands(line: str):
    return read_line(line).commands


def spoken(line: str) -> list[list[str]]:
    """The words of every command that has any."""
    return [[word.text for word in command.words] for command in read_commands(line) if command.words]


def outcome(line: str) -> str:
    """Whether a line was read, or refused in the one way a line may be refused."""
    try:
        read_commands(line)
    except ToolError as error:
        return "refused" if error.message.startswith("the command cannot be parsed") else error.message
    return "read"


@pytest.mark.parametrize(
    "line",
    [
        "true; hit me",
        "true && hit me",
        "false || hit me",
        "true | hit me",
        "true |& hit me",
        "true & hit me",
        "! hit me",
        "(hit me)",
        "{ hit me; }",
        "if hit me; then true; fi",
        "if true; then hit me; fi",
        "if true; then true; elif hit me; then true; fi",
        "if true; then true; else hit me; fi",
        "for x in a; do hit me; done",
        "for ((i=0; i<$(hit me); i++)); do true; done",
        "while hit me; do true; done",
        "until true; do hit me; done",
        "select x in a; do hit me; done",
        "case a in a) hit me;; esac",
        "case $(hit me) in a) true;; esac",
        "f() { hit me; }",
        "function f { hit me; }",
        "f() ( hit me )",
        "echo $(hit me)",
        'echo "a $(hit me) b"',
        "echo `hit me`",
        'echo "`hit me`"',
        "echo `echo \\`hit me\\``",
        "cat <(hit me)",
        "tee >(hit me)",
        "echo ${x:-$(hit me)}",
        'echo ${x:-"$(hit me)"}',
        "echo ${x#$(hit me)}",
        "echo ${x%%`hit me`}",
        "echo ${x/a/$(hit me)}",
        'echo "${x[$(hit me)]}"',
        "a[$(hit me)]=1",
        "a=(b $(hit me))",
        "a=$(hit me)",
        "export a=$(hit me)",
        "unset $(hit me)",
        "echo $(( 1 + $(hit me) ))",
        "(( x = $(hit me) ))",
        "[[ -n $(hit me) ]]",
        "[ -n $(hit me) ]",
        "cat <<END\n$(hit me)\nEND",
        "cat <<END\n`hit me`\nEND",
        "cat <<END | hit me\ntext\nEND",
        "cat <<END && hit me\ntext\nEND",
        "cat <<'END'\ntext\nEND\nhit me",
        "cat <<-END\n\ttext\n\tEND\nhit me",
        "cat <<< $(hit me)",
        "> out hit me",
        "hit me > out",
        "hit < in me",
        "hit <<END >out me\ntext\nEND",
        "hi\\\nt me",
        "# a comment \\\nhit me",
        "A=1 B=2 hit me",
        "\\hit me",
        "h'i't \"me\"",
        "$'hit' me",
        "$'\\x68it' me",
        "$'\\150it' $'\\u006de'",
        '$"hit" me',
        "X=hit; $X me",
        "X=hit; ${X} me",
        "for X in hit; do $X me; done",
        "ls x\n\\hit me",
        "ls\n\\\nhit me",
        "ls >x\n\\hit me",
        "! eval > x hit me",
        "x=\\\n\nhit me",
        "ls &> x hit me",
        "ls &>> x 2> y hit me",
        "unset $\nhit me",
        "time { hit me; }",
        "coproc N { hit me; }",
        "ls ``\nhit me",
        "2>x function f\nhit me",
        "é=1; echo ü“ñ”; hit me",
        "echo '日本語' \"ключ\"; hit me",
    ],
)
def test_a_command_is_found_at_any_place_of_the_line(line):
    assert ["hit", "me"] in spoken(line)


@pytest.mark.parametrize(
    "line",
    [
        "sh -c 'hit me'",
        "bash -lc 'hit me'",
        "dash -ec 'hit me'",
        "zsh -c -e 'hit me'",
        "ksh -o errexit -c 'hit me'",
        "bash --norc --rcfile x -c 'hit me' zero one",
        "/bin/sh -c 'hit me'",
        "sh -c \"sh -c 'hit me'\"",
        "eval hit me",
        "eval 'hit me'",
        "eval \"hit\" 'me'",
        "env hit me",
        "env -i A=b -u C -C /tmp hit me",
        "env --unset=C --chdir /tmp hit me",
        "env -S 'hit me'",
        "env -iS 'A=b hit me'",
        "env --split-string='hit me'",
        "env -S hit me",
        "xargs -n 1 -P4 sh -c 'hit me'",
        "find . -name x -exec hit me \\;",
        "find . -execdir hit me +",
        "find . -ok hit me ';' -exec true \\;",
        "sudo hit me",
        "sudo -u root -E A=b hit me",
        "sudo -nu root -- hit me",
        "sudo --unheard-of value hit me",
        "sudo --unheard-of hit me",
        "doas -u root hit me",
        "nohup hit me &",
        "nice -n 5 hit me",
        "nice -5 hit me",
        "time -p hit me",
        "time ! A=b hit me",
        "coproc A=b hit me",
        "true && sh <<END\nhit me\nEND",
        "if x; then sh; fi <<< 'hit me'",
        "{ sh; } <<END\nhit me\nEND",
        "timeout -k 1 -s KILL 5 hit me",
        "timeout --signal=KILL 5 hit me",
        "command -p hit me",
        "exec -a zero hit me",
        "builtin eval hit me",
        "setsid hit me",
        "stdbuf -oL -e 0 hit me",
        "busybox hit me",
        "busybox sh -c 'hit me'",
        "watch -n 1 'hit me'",
        "watch hit me",
        "parallel -j 4 'hit me' ::: a",
        "parallel ::: 'hit me'",
        "coproc hit me",
        "chroot /srv hit me",
        "flock /tmp/lock hit me",
        "flock /tmp/lock -c 'hit me'",
        "su root -c 'hit me'",
        "trap 'hit me' EXIT",
        "alias ls='hit me'",
        "sh <<END\nhit me\nEND",
        "sh -s <<'END'\nhit me\nEND",
        "bash <<< 'hit me'",
        ". /dev/stdin <<< 'hit me'",
        "X='hit me'; eval $X",
        "sudo env A=1 nohup nice -n 5 timeout 5 bash -c 'eval \"hit me\"'",
    ],
)
def test_a_command_inside_a_command_is_found(line):
    assert ["hit", "me"] in spoken(line)


@pytest.mark.parametrize(
    "line",
    [
        "echo 'hit me'",
        "echo hit me",
        'echo "hit me"',
        "# hit me",
        "true # hit me",
        "cat <<'END'\n$(hit me)\nEND",
        "cat <<END\nhit me\nEND",
        "echo '$(hit me)'",
        "echo '`hit me`'",
        "echo \\$\\(hit me\\)",
        'echo "\\$(hit me)"',
        "ssh host hit me",
        "command -v hit me",
    ],
)
def test_text_is_not_taken_for_a_command(line):
    assert ["hit", "me"] not in spoken(line)


@pytest.mark.parametrize("line", ["xargs -I{} hit me", "ls | xargs hit", "parallel hit me ::: a b"])
def test_what_a_command_is_fed_with_is_an_unknown_word_of_what_it_runs(line):
    guessed = next(command for command in read_commands(line) if command.name == "hit")
    assert guessed.guessed
    assert guessed.words[-1].outlines == (UNKNOWN,)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("f() { ls; }", "a function"),
        ("function f { ls; }", "a function"),
        ("ls <(ls)", "<(…)"),
        ("cat <<< x", "<<<"),
        ("[[ a ]]", "[["),
        ("((i++))", "a parenthesis inside a command"),
        ("a=(b c)", "a parenthesis inside a command"),
        ("for ((;;)); do ls; done", "for ((…))"),
        ("case a in a) ls;; esac", "case"),
        ("ls !(x)", "a parenthesis inside a command"),
        ("ls $'x'", "$'"),
        ('ls $"x"', '$"'),
        ("ls $[1]", "$["),
        ("echo $((ls); ls)", "$((…)"),
        ("x='a[$(ls)]'", "a command in an index"),
    ],
)
def test_what_sh_and_bash_may_read_differently_is_named(line, what):
    assert what in read_line(line).unclear


def test_what_only_the_shell_knows_is_marked_in_the_outline_of_a_word():
    (command,) = read_commands("cp *.py a$X'$Y'b {1,2} '*' \\* {} ~/x")
    assert [word.outlines for word in command.words] == [
        ("cp",), (f"{GLOB}.py",), (f"a{UNKNOWN}$Yb",), (UNKNOWN,), ("*",), ("*",), ("{}",), ("~/x",),
    ]  # fmt: skip
    assert [word.computed for word in command.words] == [False, False, True, True, False, False, False, False]
    assert [word.certain for word in command.words] == [True, False, False, False, True, True, True, True]


def test_a_guess_from_the_line_itself_stays_computed():
    guessed = read_commands("X=rm; $X y")[1].words[0]
    assert (guessed.text, guessed.outlines, guessed.computed) == ("rm", ("rm",), True)


def test_an_empty_substitution_is_an_expansion_that_adds_nothing():
    (command,) = read_commands("hit``''")
    assert (command.name, command.words[0].computed) == ("hit", True)


def test_redirections_and_assignments_are_part_of_a_command():
    (command,) = read_commands("A=1 B='b c' run x >out 2>>err <in 2>&1")
    assert [(found.name, found.value.text) for found in command.assignments] == [("A", "1"), ("B", "b c")]
    assert [(found.operator, found.target.text) for found in command.redirections] == [
        (">", "out"), (">>", "err"), ("<", "in"),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["> a", "while true; do :; done < a", "x=$(<a)", "{ ls; } 2>a"])
def test_a_redirection_without_a_command_is_seen(line):
    bare = [command.redirections for command in read_commands(line) if not command.words and command.redirections]
    assert [redirection.target.text for redirections in bare for redirection in redirections] == ["a"]


@pytest.mark.parametrize(
    "line",
    [
        "((hit me))",
        "[[ a || hit me ]]",
        "[[ a && hit me ]] && true",
        "((hit me # x\n))",
        "((hit # ; done)f{   me\n\\\n))",
    ],
)
def test_what_only_bash_takes_for_a_condition_is_also_read_as_commands(line):
    assert outcome(line) == "refused" or "hit" in {command.name for command in read_commands(line)}


def test_values_of_loops_are_assignments():
    commands = read_commands("for f in a 'b c'; do :; done")
    values = [(found.name, found.value.text) for command in commands for found in command.assignments]
    assert values == [("f", "a"), ("f", "b c")]


@pytest.mark.parametrize(
    "line",
    [
        "echo 'open",
        'echo "open',
        "echo $(open",
        "echo `open",
        "cat <<END\nnever ends",
        "cat <<A\nB\\\nA\n",
        "a\0b",
        "rm\r-rf x",
        "\x1b[31m",
        "a\x7f",
        "\ud800",
        "eval 'echo \"open'",
        "{hit,me}",
        "(ls",
        "x=$(cat <<E)\nE\n)",
    ],
)
def test_what_cannot_be_read_is_refused(line):
    with pytest.raises(ToolError, match=r"the command cannot be parsed: .*; write it plainer") as caught:
        read_commands(line)
    assert caught.value.kind is Kind.VALIDATION


def test_a_line_may_be_as_long_as_the_limit_and_no_longer():
    assert len(read_commands("echo " + "a" * (MAX_LENGTH - 5))) == 1
    with pytest.raises(ToolError, match=f"longer than {MAX_LENGTH} bytes"):
        read_commands("echo " + "a" * (MAX_LENGTH - 4))
    with pytest.raises(ToolError, match="bytes"):
        read_commands("echo " + "é" * (MAX_LENGTH // 2))


def test_a_blank_beyond_ascii_is_a_part_of_a_word():
    assert spoken("ls\u00a0-la \u2003 a\x85b") == [["ls\u00a0-la", "\u2003", "a\x85b"]]


def test_the_number_of_commands_is_bounded():
    assert len(read_commands(";".join("a" * MAX_COMMANDS))) == MAX_COMMANDS
    with pytest.raises(ToolError, match=f"more than {MAX_COMMANDS} commands"):
        read_commands(";".join("a" * (MAX_COMMANDS + 1)))


def test_the_depth_of_commands_in_commands_is_bounded():
    assert ["hit"] in spoken("sudo " * MAX_DEPTH + "hit")
    for line in ("sudo " * (MAX_DEPTH + 2) + "hit", "sudo " * 3000 + "hit"):
        with pytest.raises(ToolError, match=f"more than {MAX_DEPTH} deep"):
            read_commands(line)
    line = "hit"
    for _ in range(8):
        line = f"eval {shlex.quote(line)}"
    assert ["hit"] in spoken(line)


@pytest.mark.parametrize(
    "line",
    [
        "$(" * 2000 + "a" + ")" * 2000,
        "(" * 5000,
        "a&&" * 5000 + "a",
        "echo $((" + "1+" * 7000 + "1))",
        "`" * 16000,
        "\\" * 16000,
        "a=(" * 2500,
        "<<a " * 2000,
        "{a," * 4000 + "}" * 4000,
        "echo " + "{a," * 2000 + "}" * 2000,
        "sudo --x " * 1500 + "a",
        "eval " * 3000 + "a",
        "[[" * 8000,
        'a$(b`c"d${e' * 1300,
        "echo " + "$((" * 1000 + "1" + "))" * 1000,
        "echo " + "${x:-" * 2000 + "}" * 2000,
    ],
)
def test_hostile_nesting_is_read_or_refused(line):
    assert outcome(line) in {"read", "refused"}


@settings(max_examples=examples(150))
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12), min_size=1, max_size=5))
def test_quoted_words_are_read_back_exactly(words):
    (first, *_) = read_commands(shlex.join(["echo", *words]))
    assert [word.text for word in first.words] == ["echo", *words]
    assert all(word.certain for word in first.words)


@pytest.mark.parametrize(
    ("line", "outlines"),
    [
        ("see a", {"a"}),
        ("see $x", {UNKNOWN}),
        ("see a*[b-c]/$x", {f"a{GLOB}{GLOB}/{UNKNOWN}"}),
        ("x=a; see $x/y", {"a/y"}),
        ("see $x; x=a", {"a"}),
        ("x=a; x=b; see $x", {"a", "b"}),
        ("for x in a b*; do see $x; done", {"a", f"b{GLOB}"}),
        ("x='a b?'; see $x", {f"a b{GLOB}", "a", f"b{GLOB}"}),
        ("x=a; y=$x/b; z=$y/c; see $z", {"a/b/c"}),
        ("x=a; x=$x/b; see $x", {UNKNOWN}),
        ("x=a; x+=b; see $x", {"a", "b", UNKNOWN}),
        ("x=a; read x; see $x", {"a", UNKNOWN}),
        ("x=a; printf -v x %s b; see $x", {"a", UNKNOWN}),
        ("x=a; see ${x%b}", {UNKNOWN}),
        ("see $HOME/a $PWD", {"~/a"}),
        ("HOME=/b; see $HOME/a", {"/b/a"}),
        ("see $((1 + 1))$?", {"00"}),
        ("see $(date)", {UNKNOWN}),
        ("x={a,b}; see {a,b}", {UNKNOWN}),
        ("cut x | xargs see", {UNKNOWN}),
    ],
)
def test_an_outline_holds_what_the_line_says_of_its_variables(line, outlines):
    (command,) = [command for command in read_commands(line) if command.name == "see"]
    assert set(command.words[1].outlines) == outlines


@pytest.mark.parametrize(
    "line",
    [
        "p=a;" + "p=$p$p;" * 400,
        "for f in " + " ".join(f"a{number}" for number in range(31)) + "; do " + "cat $f/x;" * 400 + " done",
    ],
)
def test_variables_that_grow_are_unknown_or_refused(line):
    assert outcome(line) == "refused" or UNKNOWN in read_commands(line)[-1].assignments[0].value.outlines


WORD_PARTS = st.sampled_from(
    ["a", "é", "'b c'", '"d e"', "\\ ", "\\\\", '"\\""', "\\'", "f\\\ng", "$'h\\ti'", "''", '"', "x=1", "-r", "y#", "%"]
)


@settings(max_examples=60)
@given(st.lists(st.lists(WORD_PARTS, min_size=1, max_size=5).map("".join), min_size=1, max_size=4))
def test_words_are_what_bash_hands_over(words):
    line = "printf '%s\\0' " + " ".join(words)
    try:
        (command,) = read_commands(line)
    except ToolError:
        return
    ran = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=20, env={"HOME": "~"}, check=False
    )
    if ran.returncode == 0:
        assert [word.text for word in command.words[2:]] == ran.stdout.split("\0")[:-1]


@settings(max_examples=examples(300))
@given(st.text(st.sampled_from("ab \n\t'\"`$(){}[]<>|&;\\#!=*?~-é\0/:+@,.%^0\u00a0\u2003\x85"), max_size=60))
def test_random_text_is_read_or_refused(text):
    assert outcome(text) in {"read", "refused"}


CODE_PARTS = st.sampled_from(
    [
        "hit", "hit ", "hi", "t", " me", " ", ";", " && ", " || ", "|", "(", ")", "{ ", "; }", "$(", "`", '"', "'", "\n", "\t", "$ ",
        "\\\n", "\\", "\n\\", "\n\\\n", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "\tE\n", "E ", "#", " # ", "<", ">o ", "<<<", "${x:-",
        "}", "${x#", "$x", "$((", "))", "[[ ", " ]]", "if ", "; then ", "; fi", "case a in a) ", ";; esac", "x=", "a[", "]=", "x=(",
        "eval ", "env ", "command ", "! ", "<(", "$'", "\\'", '\\"', "{a,b}", "*", "\\`", "\\$", "é", "unset ", "declare ", "$\n", "``",
    ]
)  # fmt: skip
TELL_ON_ME = 'command_not_found_handle() { [ "$1" = hit ] && : >told; return 0; }\nPATH=/nonexistent\n'


@settings(max_examples=examples(250))
@given(parts=st.lists(CODE_PARTS, min_size=2, max_size=12))
@example(parts=["$'", "\\`", "<<'E'\n"])
def test_a_command_that_bash_runs_is_found_or_the_line_is_refused(tmp_path_factory, parts):
    line = "".join(parts)
    try:
        commands = read_commands(line)
    except ToolError:
        return
    if any(command.words and (command.name == "hit" or not command.words[0].certain) for command in commands):
        return
    folder = tmp_path_factory.mktemp("bash")
    subprocess.run(
        ["bash", "-c", TELL_ON_ME + line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert not (folder / "told").exists()
