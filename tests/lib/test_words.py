import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.command_arguments import MAX_WORD_BYTES, as_text, check_words, spell

pytestmark = pytest.mark.spec("S3-61")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "Ann"}, ["--name", "Ann"]),
        ({"name": ""}, ["--name", ""]),
        ({"count": 3, "ratio": 0.5}, ["--count", "3", "--ratio", "0.5"]),
        ({"force": True}, ["--force"]),
        ({"force": False, "name": None}, []),
        ({"filter": {"a": [1, "ä"]}}, ["--filter", '{"a":[1,"ä"]}']),
        ({"names": ["a b", "c"]}, ["--names", '["a b","c"]']),
        ({"name": "-rf"}, ["--name=-rf"]),
        ({"name": "--help"}, ["--name=--help"]),
        ({"offset": -5}, ["--offset=-5"]),
        (
            {"a_b": "1", "c-d": "2", "e.f": "3", "größe": "4"},
            ["--a_b", "1", "--c-d", "2", "--e.f", "3", "--größe", "4"],
        ),
    ],
)
def test_arguments_become_words(arguments, words):
    assert spell(arguments) == words


def test_the_action_is_the_first_word():
    assert spell({"name": "Ann"}, "deploy") == ["deploy", "--name", "Ann"]


@pytest.mark.parametrize("name", ["", "-x", "--x", "a=b", "a b", "a\nb", "1a", "_", "é;", "a'b"])
def test_a_name_that_would_be_read_as_something_else_is_refused(name):
    with pytest.raises(ToolError, match="cannot be written as an option") as caught:
        spell({name: "x"})
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (None, ""), (True, "true"), (False, "false"), (1, "1"), ({"a": 1}, '{"a":1}'), ([], "[]")],
)
def test_a_value_as_one_word(value, text):
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["a\0b"], "an argument of a program cannot contain a NUL; leave it out"),
        (["\ud800"], "an argument of a program contains a lone surrogate; leave it out"),
        (["x" * MAX_WORD_BYTES], "a program takes words of"),
        (["x" * 100_000] * 11, "a program takes words of"),
    ],
)
def test_what_no_program_can_be_handed_is_refused(words, problem):
    with pytest.raises(ToolError, match=f"sample: {problem}") as caught:
        check_words(words, "sample")
    assert caught.value.kind is Kind.VALIDATION


def test_the_longest_word_that_is_let_through_is_one_that_linux_takes():
    word = "x" * (MAX_WORD_BYTES - 1)
    check_words([word], "sample")
    assert subprocess.run(["/bin/true", word], check=False).returncode == 0


names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
values = st.one_of(
    st.none(), st.booleans(), st.integers(), texts, st.lists(texts, max_size=3), st.dictionaries(names, texts)
)


@given(st.dictionaries(names, values, max_size=5))
def test_a_program_that_reads_options_gets_every_value_back(arguments):
    words = iter(spell(arguments))
    read = {}
    waiting = [name for name, value in arguments.items() if value is not None and value is not False]
    for name in waiting:
        word = next(words)
        option, glued, text = word.partition("=")
        assert option == f"--{name}"
        if arguments[name] is True:
            assert not glued
            read[name] = True
        else:
            text = text if glued else next(words)
            assert glued or not text.startswith("-")
            read[name] = text if isinstance(arguments[name], str) else json.loads(text)
    assert list(words) == []
    assert read == {name: arguments[name] for name in waiting}


def test_argparse_takes_a_value_with_a_dash_for_a_value():
    code = "import argparse; p = argparse.ArgumentParser(); p.add_argument('--name'); print(p.parse_args().name)"
    ran = subprocess.run([sys.executable, "-c", code, *spell({"name": "--evil"})], capture_output=True, check=True)
    assert ran.stdout == b"--evil\n"
