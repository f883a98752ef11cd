"""Files of cases, read strictly."""

import json
import os

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.testing.case_files import read_cases
from toolcrib.lib.documents import MAX_DEFINITION_BYTES
from toolcrib.testing import FakeContext, load_cases

WHOLE = [
    {
        "name": "all that can be said",
        "arguments": {"a": [1, None]},
        "context": {
            "clientId": "phone",
            "mode": "voice",
            "session": {"isActive": False, "state": {"step": 2}},
            "send": "closed",
            "confirm": False,
        },
        "expect": {
            "ok": False,
            "value": None,
            "contains": {"a": 1},
            "error": {"type": "CONFLICT", "message_contains": "a", "retryable": True, "partialSideEffects": True},
            "intents": [{"type": "SUPPRESS_AUDIO"}],
            "sent": [{"type": "hello"}],
            "audit": [{"event": "greeted", "data": {"who": "Ada"}}],
        },
    },
    {"name": "next to nothing", "expect": {"ok": True}},
]


def read(value, place="cases.json"):
    return read_cases(json.dumps(value, indent=1).encode(), place)


def refusal_of(value, place="cases.json"):
    with pytest.raises(ToolError) as caught:
        read(value, place)
    assert caught.value.kind is Kind.VALIDATION
    return caught.value.message


def with_case(**fields):
    return [{"name": "a", "expect": {"ok": True}, **fields}]


@pytest.mark.parametrize("place", ["cases.json", "cases.yaml"])
def test_everything_that_a_case_may_say_is_read_from_json_and_from_yaml(place):
    whole, little = read(WHOLE, place)
    assert whole.name == str(whole) == "all that can be said"
    assert whole.arguments == {"a": [1, None]}
    assert whole.context == FakeContext(
        client_id="phone", mode="voice", is_active=False, state={"step": 2}, send="closed", confirm=False
    )
    assert whole.expect == WHOLE[0]["expect"]
    assert (whole.place, whole.problem) == (f"{place}:2", "")
    assert (little.arguments, little.context) == ({}, FakeContext())
    line = json.dumps(WHOLE, indent=1).split('"next to nothing"')[0].count("\n")
    assert little.place == f"{place}:{line}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, 'c.json:1: a file of cases is a list; write [{"name": …, "arguments": …, "expect": …}, …]'),
        (None, 'c.json:1: a file of cases is a list; write [{"name": …, "arguments": …, "expect": …}, …]'),
        ([1], 'c.json:1: a case is an object; write {"name": …, "arguments": …, "expect": …}'),
        ([{"expect": {"ok": True}}], 'c.json:2: a case has a name that says what it shows; write "name": "…"'),
        (with_case(name=" "), 'c.json:3: a case has a name that says what it shows; write "name": "…"'),
        ([{"name": "a"}], 'c.json:2: \'a\' expects nothing; write "expect": {"ok": true} or more'),
        (with_case(expect={}), 'c.json:4: \'a\' expects nothing; write "expect": {"ok": true} or more'),
        (with_case(expect=["ok"]), "c.json:4: expect is an object, not a list; correct it"),
        (with_case(argument={}), "c.json:7: unknown key 'argument'; did you mean arguments?"),
        (with_case(zzz=1), "c.json:7: unknown key 'zzz'; known are name, arguments, context, expect"),
        (with_case(arguments=[1]), "c.json:7: arguments is an object, not a list; correct it"),
        (with_case(arguments=None), "c.json:7: arguments is an object, not null; correct it"),
        (with_case(context={"modus": 1}), "c.json:8: unknown key 'modus'; did you mean mode?"),
        (with_case(context={"mode": "sms"}), "c.json:8: mode is 'sms'; write one of text, voice"),
        (with_case(context={"mode": None}), "c.json:8: mode is 'None'; write one of text, voice"),
        (with_case(context={"send": "fail"}), "c.json:8: send is 'fail'; did you mean fails?"),
        (with_case(context={"confirm": "yes"}), "c.json:8: confirm is true or false, not text; correct it"),
        (with_case(context={"clientId": 5}), "c.json:8: clientId is text, not a number; correct it"),
        (with_case(context={"session": {"active": True}}), "c.json:9: unknown key 'active'; did you mean isActive?"),
        (
            with_case(context={"session": {"isActive": 1}}),
            "c.json:9: isActive is true or false, not a number; correct it",
        ),
        (with_case(context={"session": {"state": []}}), "c.json:9: state is an object, not a list; correct it"),
        (with_case(expect={"okay": True}), "c.json:5: unknown key 'okay'; did you mean ok?"),
        (with_case(expect={"ok": "yes"}), "c.json:5: ok is true or false, not text; correct it"),
        (with_case(expect={"sent": {}}), "c.json:5: sent is a list, not an object; correct it"),
        (
            with_case(expect={"error": {"kind": "AUTH"}}),
            "c.json:6: unknown key 'kind'; known are type, message_contains, retryable, partialSideEffects",
        ),
        (with_case(expect={"error": {"type": "CONFLICTS"}}), "c.json:6: type is 'CONFLICTS'; did you mean CONFLICT?"),
        (
            with_case(expect={"error": {"retryable": 0}}),
            "c.json:6: retryable is true or false, not a number; correct it",
        ),
        (
            with_case(expect={"ok": True, "error": {}}),
            "c.json:5: a call that is ok has no error; remove one of the two",
        ),
        (with_case(expect={"audit": [{"events": "x"}]}), "c.json:7: unknown key 'events'; did you mean event?"),
        (with_case(expect={"audit": ["x"]}), "c.json:6: 0 is an object, not text; correct it"),
        (with_case() * 2, "c.json:9: the name 'a' stands twice; rename one of the cases"),
    ],
)
def test_what_means_nothing_is_refused_with_line_and_cure(value, message):
    assert refusal_of(value, "c.json") == message


@pytest.mark.parametrize("place", ["c.json", "c.yaml"])
def test_everything_that_is_wrong_with_a_file_is_told_at_once(place):
    value = [
        {"name": "a", "argument": {}, "expect": {"okay": 1, "sent": {}}},
        7,
        {"name": "b", "context": {"mode": "sms", "session": {"isActive": 1}}, "expect": {"error": {"type": "NO"}}},
        {"name": "a", "expect": {"ok": True, "error": {"retryable": 0}, "audit": ["x"]}},
        {"expect": []},
    ]
    told = [line.removeprefix(place).split(": ", 1) for line in refusal_of(value, place).split("\n")]
    assert [words.split(";")[0] for _, words in told] == [
        "unknown key 'argument'",
        "unknown key 'okay'",
        "sent is a list, not an object",
        "a case is an object",
        "mode is 'sms'",
        "isActive is true or false, not a number",
        "type is 'NO'",
        "a call that is ok has no error",
        "retryable is true or false, not a number",
        "0 is an object, not text",
        "the name 'a' stands twice",
        "a case has a name that says what it shows",
        "'the case' expects nothing",
    ]
    lines = json.dumps(value, indent=1).split("\n")
    assert '"isActive"' in lines[int(told[5][0].strip(":")) - 1]


def test_a_slip_in_yaml_has_its_line_too():
    text = b"- name: a\n  arguments: {}\n  expct:\n    ok: true\n"
    with pytest.raises(ToolError, match=r"cases.yaml:3: unknown key 'expct'; did you mean expect\?"):
        read_cases(text, "cases.yaml")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{number + 1}: &a{number + 1} [{', '.join([f'*a{number}'] * 9)}]\n" for number in range(9)
)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("c.yaml", BOMB.encode()),
        ("c.yaml", b"- !!python/object/apply:os.system [id]\n"),
        ("c.yaml", b"[" * 100_000),
        ("c.yaml", b"- name: a\n  name: b\n"),
        ("c.yaml", b"- name: \xff\n"),
        ("c.json", b"[" * 100_000),
        ("c.json", b'[{"name": "a", "name": "b"}]'),
        ("c.json", b'[{"name": "a", "arguments": {"n": NaN}, "expect": {"ok": true}}]'),
        ("c.json", b'[{"name": "a", "arguments": {"n": 99999999999999999999}, "expect": {"ok": true}}]'),
        ("c.json", b'[{"name": "\\ud800", "expect": {"ok": true}}]'),
        ("c.json", b"not json"),
        ("c.json", b""),
        ("c.yaml", b""),
    ],
)
def test_a_hostile_document_is_refused_in_words(name, document):
    with pytest.raises(ToolError, match=rf"^{name}:") as caught:
        read_cases(document, name)
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_a_huge_document_is_refused_before_it_is_read(name, tmp_path):
    (tmp_path / name).write_bytes(b" " * (MAX_DEFINITION_BYTES + 1))
    with pytest.raises(ToolError, match="at most 256000 bytes"):
        load_cases(tmp_path / name)
    with pytest.raises(ToolError) as caught:
        read_cases(b" " * (MAX_DEFINITION_BYTES + 1), name)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


def test_what_is_no_file_holds_up_no_one_else(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", tmp_path):
        with pytest.raises(ToolError, match="is not a file that can be read"):
            load_cases(path)
    with pytest.raises(ToolError, match="there is no such file"):
        load_cases(tmp_path / "none.json")


def test_cases_are_loaded_from_a_file(tmp_path):
    (tmp_path / "cases.yaml").write_text("- name: a\n  arguments: {when: 2024-01-01, no: no}\n  expect: {ok: true}\n")
    [case] = load_cases(str(tmp_path / "cases.yaml"))
    assert case.arguments == {"when": "2024-01-01", "no": "no"}
    assert case.place == f"{tmp_path}/cases.yaml:1"
