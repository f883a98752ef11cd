"""`crib call` in this process: arguments, answers, refusals, questions without a person to answer them."""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.toolkit.cli import CALL_OPTIONS, WrongUseError, read_arguments, read_line


def test_a_number_is_read_because_the_schema_asks_for_one(crib):
    ended = crib("call", "add", "first=2", "second=3")
    assert (ended.code, ended.out, ended.err) == (0, "5\n", "")


@pytest.mark.parametrize(
    ("typed", "arrives"),
    [
        ("text=5", {"text": "5"}),
        ("text=true", {"text": "true"}),
        ("text=a=b", {"text": "a=b"}),
        ("text=", {"text": ""}),
        ('text:="@x"', {"text": "@x"}),
        ("number=1.5", {"number": 1.5}),
        ("switch=true", {"switch": True}),
        ("list=[1, null]", {"list": [1, None]}),
        ('object={"a": {"b": 1}}', {"object": {"a": {"b": 1}}}),
        ("either=7", {"either": 7}),
        ("either=null", {"either": None}),
        ("named=7", {"named": 7}),
        ("mixed=7", {"mixed": "7"}),
        ("mixed:=7", {"mixed": 7}),
        ("free=7", {"free": "7"}),
        ("undeclared=7", {"undeclared": "7"}),
        ("undeclared:=[7]", {"undeclared": [7]}),
    ],
)
def test_a_typed_argument_arrives_as_its_schema_says_and_as_text_otherwise(crib, typed, arrives):
    ended = crib("call", "echo", typed)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out) == arrives


@pytest.mark.parametrize("typed", ["number=1,5", "switch=True", "switch=yes", "list=1", "number=NaN", 'number="1"'])
def test_what_is_not_of_the_type_is_left_to_the_schema_to_refuse(crib, typed):
    ended = crib("call", "echo", typed)
    assert ended.code == 3
    assert "Invalid arguments for echo" in ended.err
    assert "crib show echo" in ended.err


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_an_integer_arrives_exactly(number):
    line = read_line(["t", f"n={number}"], CALL_OPTIONS)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert read_arguments(line, line.words[1:], schema) == {"n": number}


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_arrives_exactly_unless_it_names_a_file(text):
    schema = {"type": "object", "properties": {"t": {"type": "string"}}}
    line = read_line(["x", "--", f"t={text}" if not text.startswith("@") else f"t:={json.dumps(text)}"], CALL_OPTIONS)
    assert read_arguments(line, line.words[1:], schema) == {"t": text}


@given(words=st.lists(st.text(max_size=12), max_size=6))
def test_any_words_are_read_or_refused_as_wrong_use(words):
    words = [word for word in words if "@" not in word]
    with suppress(WrongUseError):
        line = read_line(words, CALL_OPTIONS)
        assert read_arguments(line, line.words, {}).keys() <= {
            word.partition("=")[0].removesuffix(":") for word in words
        }


def test_an_argument_can_be_the_text_of_a_file(crib, host_module):
    (host_module / "letter.txt").write_text("Dear Ada,\n")
    assert crib("call", "say", "text=@letter.txt").out == "Dear Ada,\n\n"


def test_a_json_argument_can_come_from_a_file(crib, host_module):
    (host_module / "list.json").write_text("[1, 2]")
    assert json.loads(crib("call", "echo", "list=@list.json").out) == {"list": [1, 2]}
    assert json.loads(crib("call", "echo", "free:=@list.json").out) == {"free": [1, 2]}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["text=@absent"], "'absent' cannot be read (No such file or directory); for a text that begins with @ write"),
        (["text=@."], "'.' cannot be read (Is a directory)"),
        (["text=@binary"], "'binary' is not UTF-8 text (byte 0)"),
        (["text=@/dev/zero"], "has more than 1000000 bytes"),
        (["text"], "'text' is not an argument; write key=value, key:=json or key=@file"),
        (["=text"], "'=text' is not an argument"),
        ([":=5"], "':=5' is not an argument"),
        (["text:={"], "text:1:2: "),
        (["text=a", "text=b"], "the argument 'text' is given twice"),
        (["text=a", "--args", '{"text": "b"}'], "the argument 'text' is given twice"),
        (["--args", "[1]"], "--args: this is JSON but not an object; --args takes a JSON object such as '{"),
        (["--args", '{"a": 1, "a": 2}'], "stands twice"),
        (["--args", "{"], "--args:1:2: "),
        (["--args", "@absent"], "--args: 'absent' cannot be read (No such file or directory); write @FILE or JSON"),
        (["--args=@binary"], "--args: 'binary' is not UTF-8 text (byte 0)"),
        (["--args"], "--args needs a value: --args JSON"),
        (["--grnt", "x"], "there is no option --grnt; did you mean --grant?"),
        (["--text=5"], "there is no option --text; did you mean --timeout? Arguments are written key=value"),
        (["--yes=no"], "--yes takes no value"),
        (["--mode", "loud"], "--mode 'loud': write one of text, voice"),
        (["--timeout", "0"], "--timeout '0': write a number of seconds greater than 0"),
        (["--timeout", "nan"], "--timeout 'nan'"),
        (["--timeout", "inf"], "--timeout 'inf'"),
        (["--timeout", "soon"], "--timeout 'soon'"),
        (["--grant", ""], 'grants."say" must hold texts only'),
    ],
)
def test_wrong_use_ends_with_2_and_one_line_that_says_how_to_write_it(crib, host_module, words, complaint):
    (host_module / "binary").write_bytes(b"\xff\xfe")
    ended = crib("call", "say", *words)
    assert ended.code == 2
    assert ended.out == ""
    assert complaint in ended.err
    assert ended.err.count("\n") == 1


def test_a_document_that_is_none_is_refused_with_an_example(crib):
    cure = """--args takes a JSON object such as '{"name": "Ada"}'"""
    expected = f"crib: --args:1:1: expecting value; correct the JSON there; {cure}\n"
    assert crib("call", "say", "--args", "text=Ada").err == expected
    assert crib("call", "say", "--args=text=Ada").err == expected


def test_a_json_object_among_the_words_is_sent_to_args(crib):
    ended = crib("call", "say", "--json", '{"text": "=Ada"}')
    assert ended.code == 2
    assert ended.err == """crib: '{"text": "=Ada"}' is not an argument; give a JSON object with --args\n"""


def test_a_call_without_a_name_is_wrong_use(crib):
    assert crib("call").code == 2


def test_all_arguments_can_come_as_one_document(crib, host_module, monkeypatch):
    document = '{"first": 2, "second": 3}'
    (host_module / "arguments.json").write_text(document)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(document.encode())))
    assert crib("call", "add", "--args", document).out == "5\n"
    assert crib("call", "add", "--args=@arguments.json").out == "5\n"
    assert crib("call", "add", "--args", "-").out == "5\n"
    assert crib("call", "add", "--args", '{"first": 2}', "second=3").out == "5\n"


def test_options_may_stand_anywhere_and_end_at_two_dashes(crib):
    assert crib("call", "--mode", "text", "add", "first=1", "--timeout=5", "--", "second=1").out == "2\n"
    assert crib("call", "echo", "--", "--free=1").out == '{\n  "--free": "1"\n}\n'


def test_text_is_printed_as_it_is_and_everything_else_as_json(crib):
    assert crib("call", "say", "text=größer").out == "größer\n"
    assert crib("call", "echo", "text=ö").out == '{\n  "text": "ö"\n}\n'


def test_json_prints_the_canonical_result(crib):
    ended = crib("call", "add", "first=1", "--json")
    result = json.loads(ended.out)
    assert (result["ok"], result["value"], result["error"], result["meta"]["tool"]) == (True, 2, None, "add")
    refused = json.loads(crib("call", "add", "--json").out)
    assert refused["error"]["details"]["gate"] == "arguments"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["half"], 1, "the second half is missing"),
        (["missing"], 1, "no such file"),
        (["add", "first=x"], 3, 'first: "x" is not of type integer'),
        (["speak"], 3, "speak may be called in voice mode only"),
        (["send", "to=Ada"], 3, "send requires mail.send, net.http, which is not granted"),
        (["read_file", "path=../secret"], 3, "BLOCKED"),
        (["ad", "first=1"], 4, "did you mean add"),
        (["nothing-like-it"], 4, "crib list"),
        (["wipe", "what=disk"], 5, "wipe needs confirmation"),
    ],
)
def test_the_exit_code_says_how_the_call_ended(crib, words, code, complaint):
    ended = crib("call", *words)
    assert (ended.code, complaint in ended.err) == (code, True), ended.err
    assert "Traceback" not in ended.err


def test_a_partial_value_is_printed_beside_the_error(crib):
    assert crib("call", "half").out == "the first half\n"


def test_a_tool_of_another_mode_is_called_in_it(crib):
    assert crib("call", "speak", "--mode", "voice").out == "spoken\n"


def test_what_is_granted_on_the_command_line_is_granted(crib):
    assert crib("call", "send", "to=Ada", "--grant", "net.http").code == 3
    assert crib("call", "send", "to=Ada", "--grant", "net.*", "--grant=mail.send").out == "sent to Ada\n"


def test_yes_confirms_a_call_ahead(crib):
    assert crib("call", "wipe", "what=disk", "--yes").out == "wiped disk\n"


def test_the_token_of_a_refusal_confirms_exactly_that_call_once(crib):
    token = crib("call", "wipe", "what=disk").err.split("--confirm ")[1].strip()
    assert crib("call", "wipe", "what=else", "--confirm", token).code == 5
    assert crib("call", "wipe", "what=disk", "--confirm", token).out == "wiped disk\n"
    assert crib("call", "wipe", "what=disk", "--confirm", token).code == 5


def test_an_exception_is_told_in_one_line_and_whole_when_asked(crib):
    ended = crib("call", "crash")
    assert ended.code == 1
    assert "ZeroDivisionError: no \\x1b[31mred" in ended.err
    assert "crib_cli_host.py:" in ended.err
    assert "Traceback" not in ended.err
    assert "\x1b" not in ended.err
    assert "Traceback (most recent call last)" in crib("call", "crash", "--verbose").err


def test_a_large_result_is_kept_aside_and_read_piece_by_piece(crib):
    ended = crib("call", "large", "letters=300000")
    assert ended.code == 0
    assert "the result has 300000 bytes, 2000 characters are shown" in ended.err
    _, handle, _, offset = ended.err.split("the rest: crib ")[1].split()
    rest = crib("result", handle, "--offset", offset)
    assert (rest.code, len(ended.out) + len(rest.out)) == (0, 300_000 + 2)
    piece = crib("result", handle, "--offset", "10", "--length", "5")
    assert piece.out == "xxxxx\n"
    assert "characters left: 299985; continue with --offset 15" in piece.err
    assert crib("result", "0" * 40).code == 1
    assert crib("result", handle, "--offset", "-1").code == 2


def test_what_keeps_other_tools_from_loading_does_not_stop_a_call(crib, host_module):
    (host_module / "tools" / "broken.py").write_text("def broken(:\n")
    assert crib("call", "add", "first=1").err == ""
    assert "not every tool could be loaded (problems: 1); see: crib check" in crib("call", "broken").err


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_project_can_be_named(crib, host_module, tmp_path_factory, monkeypatch, place):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    option = ["-C", str(host_module)]
    words = [*option, "call", "add", "first=1"] if place == "before" else ["call", "add", "first=1", *option]
    assert crib(*words).out == "2\n"


def test_settings_that_cannot_be_obeyed_end_with_2_and_name_the_file(crib, host_module):
    (host_module / "toolcrib.toml").write_text("timeout = 5\n")
    ended = crib("call", "add", "first=1")
    assert ended.code == 2
    assert "toolcrib.toml: timeout stands in no table; did you mean calls.timeout_ms?" in ended.err


def test_an_argument_that_is_no_text_is_refused_and_shown_safely(crib):
    ended = crib("call", "say", "text=\udcff\x1b]0;x\x07")
    assert ended.code in {1, 3}
    assert "\x1b" not in ended.err


def test_a_call_outside_every_project_leaves_nothing_behind(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    assert cli("call", "list_files", "path=.").code == 0
    assert cli("call", "nobody").code == 4
    assert list(tmp_path.iterdir()) == []
