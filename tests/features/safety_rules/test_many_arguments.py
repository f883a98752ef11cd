"""Calls with very many arguments: judged in a short time, or refused; and nothing in them is overlooked."""

from __future__ import annotations

from pathlib import Path

import pytest

from sample_tools import host_tool
from toolcrib import ALLOW, Call, Kind, RuleEngine, Tool, Verdict
from toolcrib.features.safety_rules import arguments as reading

SHELL = host_tool(parameters={}, requires=frozenset({"shell.execute"}))


def judge(arguments: dict[str, object], tool: Tool | None = None) -> Verdict:
    return RuleEngine(workspace=Path("/tmp")).judge(tool, Call(name="sample", arguments=arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"words": [f"w{number}" for number in range(25_000)]},
        {"words": {f"w{number}": number for number in range(25_000)}},
        {"words": [{f"w{number}": number} for number in range(25_000)]},
        {"paths": [f"./w{number}" for number in range(3_000)]},
        {"commands": [f"ls {number}" for number in range(1_100)]},
        {"commands": ["ls " + "a " * 8_000 + str(number) for number in range(3)]},
        {"path": "a/" * 450_000},
        {"paths": ["a/" * 2_000 + str(number) for number in range(200)]},
        {"data": ["x" * 1_000_000 + str(number) for number in range(5)]},
    ],
)
def test_more_than_can_be_judged_is_refused_with_the_cure(arguments):
    verdict = judge(arguments)
    assert (verdict.decision, verdict.kind) == ("deny", Kind.LIMIT_EXCEEDED)
    assert verdict.cure == "send fewer of them in one call"


@pytest.mark.parametrize(
    "arguments",
    [
        {"points": [{"x": number} for number in range(60_000)]},
        {"points": [{"x": number, "y": 0.5, "z": None} for number in range(60_000)]},
        {"points": list(range(60_000))},
        {"points": [[number, 1.5] for number in range(30_000)]},
        {"words": ["same"] * 60_000},
        {"words": [f"w{number}" for number in range(15_000)]},
        {"content": "a b " * 2_000_000},
        {"data": ("A" * 63 + "/") * 31_250},  # as many slashes as Base64 has
    ],
)
def test_numbers_and_long_texts_pass(arguments):
    assert judge(arguments) == ALLOW


def test_the_default_rules_read_the_arguments_once(monkeypatch):
    walks = []
    walk = reading._read
    monkeypatch.setattr(reading, "_read", lambda tool, call: walks.append(call) or walk(tool, call))
    assert judge({"command": "ls"}) == ALLOW
    assert len(walks) == 1


def test_more_than_can_be_judged_is_read_once_and_no_key_of_a_large_object(monkeypatch):
    walks, looks = [], []
    walk, look = reading._read, reading._inside
    monkeypatch.setattr(reading, "_read", lambda tool, call: walks.append(call) or walk(tool, call))
    monkeypatch.setattr(reading, "_inside", lambda *given: looks.append(given) or look(*given))
    assert judge({f"k{number}": "v" for number in range(90_000)}).kind is Kind.LIMIT_EXCEEDED
    assert (len(walks), looks) == (1, [])


@pytest.mark.parametrize(
    "name", ["args", "argv", "outputFlags", "my-options2", "PARAMS", "the_parameters", "arguments"]
)
def test_words_for_a_program_are_found_beside_it_among_many_others(name):
    more = {f"k{number}": number for number in range(1_000)}
    assert judge({**more, "command": "kill", name: ["-9", "-1"]}).decision == "deny"


def test_what_was_read_for_one_judgement_is_not_used_for_the_next():
    call = Call(name="sample", arguments={"command": "ls"})
    engine = RuleEngine(workspace=Path("/tmp"))
    assert engine.judge(None, call) == ALLOW
    call.arguments["command"] = "rm -rf /"
    assert engine.judge(None, call).decision == "deny"


def test_keys_beside_numbers_are_still_read():
    assert judge({"files": [{"a": 1}, {"/etc/shadow": 1}]}).decision == "deny"
    assert judge({"o": [{"x": 1}] * 1000 + [{"~/.ssh/id_rsa": None}]}).decision == "deny"


def test_a_list_of_words_and_numbers_is_still_one_command():
    assert judge({"command": ["kill", -9, -1]}).decision == "deny"


def test_what_a_name_says_does_not_hide_what_a_value_says():
    hidden = {"odd)": {"reboot": 1}, "z": {"odd)": "reboot"}}
    places = {argument.place for argument in reading.read_arguments(SHELL, Call(name="sample", arguments=hidden))}
    assert "z.odd)" in places
    assert judge(hidden, SHELL).decision == "deny"
