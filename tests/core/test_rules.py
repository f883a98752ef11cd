"""The engine asks all rules; rules of the operator say what they forbid."""

import logging

import pytest

from sample_tools import host_tool
from toolcrib import ALLOW, AuthRule, Call, Cure, Kind, Rule, RuleEngine, SafetyRule, Tool, ToolError, confirm, deny
from toolcrib.core.rules import TooMuchToReadError, default_rules
from toolcrib.features.safety_rules.dangerous_commands import DangerousCommands
from toolcrib.features.safety_rules.sensitive_files import SensitiveFiles


class Saying:
    """A rule that always says the same."""

    def __init__(self, name, verdict, concerned=True):
        self.name = name
        self.verdict = verdict
        self.concerned = concerned
        self.asked = 0

    def concerns(self, tool):
        return self.concerned

    def __call__(self, tool, call):
        self.asked += 1
        return self.verdict


class Failing:
    name = "broken"

    def concerns(self, tool):
        raise RuntimeError("cannot say")

    def __call__(self, tool, call):
        raise RuntimeError("the password is hunter2")


def sample(name="sample", **schema) -> Tool:
    return host_tool(name, parameters=schema)


NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
CALL = Call(name="sample")


def network() -> SafetyRule:
    return SafetyRule(name="no_network_access", forbidden_patterns=["curl", "wget", "nc"])


def test_every_rule_meets_the_protocol(tmp_path):
    assert all(isinstance(rule, Rule) for rule in (*default_rules(tmp_path), network(), AuthRule(["x"])))


def test_an_engine_starts_with_the_default_rules_and_rules_replace_them(tmp_path):
    names = [DangerousCommands.name, SensitiveFiles.name, "data_flow"]
    assert [rule.name for rule in RuleEngine(workspace=tmp_path).rules] == names
    assert [rule.name for rule in RuleEngine().rules] == names
    assert RuleEngine(rules=[]).rules == ()
    chosen = network()
    assert RuleEngine(rules=[chosen]).rules == (chosen,)


def test_an_added_rule_is_asked_after_the_others_and_those_who_prepared_are_told(tmp_path):
    engine, rule = RuleEngine(workspace=tmp_path), network()
    told = []
    engine.when_changed(lambda: told.append(len(engine.rules)))
    engine.add_rule(rule)
    assert engine.rules[-1] is rule
    assert engine.added == (rule,)
    assert told == [len(engine.rules)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_all_rules_are_asked_and_the_strictest_answer_counts(order):
    rules = [Saying("a", ALLOW), Saying("c", confirm("ask", rule="c")), Saying("d", deny("no", rule="d"))]
    verdict = RuleEngine(rules=[rules[position] for position in order]).judge(None, CALL)
    assert (verdict.decision, verdict.rule) == ("deny", "d")
    assert [rule.asked for rule in rules] == [1, 1, 1]
    assert RuleEngine(rules=rules[:2]).judge(None, CALL).decision == "confirm"
    assert RuleEngine(rules=rules[:1]).judge(None, CALL) is ALLOW
    assert RuleEngine(rules=[]).judge(None, CALL) is ALLOW


def test_of_equally_strict_rules_the_first_gives_the_reason():
    rules = [Saying("x", deny("first", rule="x")), Saying("y", deny("second", rule="y"))]
    assert RuleEngine(rules=rules).judge(None, CALL).reason == "first"


def test_a_rule_that_does_not_concern_the_tool_is_not_asked():
    rule = Saying("off", deny("no"), concerned=False)
    engine = RuleEngine(rules=[rule])
    assert engine.concerning(sample()) == ()
    assert engine.judge(sample(), CALL) is ALLOW
    assert engine.judge(None, CALL).decision == "deny"


def test_a_rule_that_fails_refuses_the_call_and_is_logged(caplog):
    engine = RuleEngine(rules=[Failing(), Saying("a", ALLOW)])
    with caplog.at_level(logging.ERROR):
        verdict = engine.judge(sample(), CALL)
    assert verdict.decision == "deny"
    assert verdict.reason == "rule 'broken' failed, so the call is refused"
    assert "hunter2" not in repr(verdict)
    assert [record.rule for record in caplog.records] == ["broken", "broken"]


def test_a_rule_that_gives_no_verdict_refuses_the_call():
    verdict = RuleEngine(rules=[Saying("silent", None)]).judge(None, CALL)
    assert verdict.reason.startswith("rule 'silent' gave no verdict")
    assert verdict.decision == "deny"


@pytest.mark.spec("S4-20")
@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("nc -l 1", "deny"),
        ("/usr/bin/nc -l 1", "deny"),
        ("'n'c -l 1", "deny"),
        ("n\\c -l 1", "deny"),
        ("sudo nc -l 1", "deny"),
        ("sh -c 'n\"\"c -l 1'", "deny"),
        ("echo nc", "deny"),
        ("ls;nc", "deny"),
        ("CURL x", "deny"),
        ("$X -l 1", "confirm"),
        ("echo 'open", "deny"),
        ("sync", "allow"),
        ("function f { ls; }", "allow"),
        ("nc_like x", "allow"),
        ("ñnc x", "allow"),
        ("curly x", "allow"),
    ],
)
def test_forbidden_words_are_found_in_commands_and_not_in_other_words(command, decision):
    engine = RuleEngine(rules=[])
    engine.add_rule(network())
    verdict = engine.judge(None, Call(name="shell", arguments={"command": command}))
    assert verdict.decision == decision
    assert verdict is ALLOW or "no_network_access" in verdict.reason


def test_a_refusal_names_rule_pattern_value_place_and_cure():
    rule = SafetyRule("no_network_access", ["nc"], where="toolcrib.toml: rules")
    verdict = rule(None, Call(name="shell", arguments={"command": "nc -l 1"}))
    assert verdict.reason == "rule 'no_network_access' forbids 'nc', found in command 'nc -l 1'"
    assert (verdict.rule, verdict.where) == ("no_network_access", "toolcrib.toml: rules")
    assert verdict.cure == "take 'nc' out of forbidden_patterns to allow it"


@pytest.mark.parametrize("command", ["rm -rf x", "rm  -fr x", "rm -r -f x", "/bin/rm -vrf x", "ls && \\rm -rf x"])
def test_a_pattern_with_options_matches_by_name_and_options(command):
    assert SafetyRule("x", ["rm -rf"])(None, Call(name="t", arguments={"command": command})).decision == "deny"


@pytest.mark.parametrize("command", ["rm -r x", "rm x", "ls -rf"])
def test_a_pattern_with_options_needs_all_of_them(command):
    assert SafetyRule("x", ["rm -rf"])(None, Call(name="t", arguments={"command": command})) is ALLOW


@pytest.mark.parametrize(
    ("pattern", "arguments", "hit"),
    [
        (".env", {"path": "config/.env"}, True),
        (".env", {"path": "src/.environment.py"}, False),
        ("/etc", {"path": "/tmp/../etc/hosts"}, True),
        ("/etc", {"path": "\\etc\\hosts"}, True),
        ("format", {"content": "the format is"}, False),
        ("format", {"kind": "the format is"}, True),
        ("format", {"kind": ["a", {"b": ("the format",)}]}, True),
        ("format", {"kind": "reformatted"}, False),
        ("a*b", {"kind": "xa*by"}, False),
        ("a*b", {"kind": "x a*b y"}, True),
        ("a*b", {"kind": "aab"}, False),
        ("DROP TABLE", {"sql": "drop table x"}, True),
        ("->", {"kind": "a->b"}, True),
    ],
)
def test_patterns_are_plain_text_at_the_ends_of_words(pattern, arguments, hit):
    verdict = SafetyRule("x", [pattern])(None, Call(name="t", arguments=arguments))
    assert verdict.decision == ("deny" if hit else "allow")


def test_free_text_is_looked_at_when_the_rule_asks():
    call = Call(name="write_file", arguments={"path": "x", "content": "the format is"})
    assert SafetyRule("x", ["format"])(None, call) is ALLOW
    assert SafetyRule("x", ["format"], include_text=True)(None, call).decision == "deny"


@pytest.mark.parametrize(
    ("name", "hit"), [("format_datetime", False), ("format-datetime", False), ("format", True), ("reformat", False)]
)
def test_a_pattern_matches_the_whole_words_of_a_tool_name(name, hit):
    rule = SafetyRule("x", ["format"])
    assert rule.concerns(sample(name, **NUMBERS)) is hit
    assert (rule(None, Call(name=name)).decision == "deny") is hit
    assert (rule(sample(name), Call(name=name)).decision == "deny") is hit


def test_dashes_and_underscores_are_the_same_in_a_forbidden_name():
    assert SafetyRule("x", ["send-mail"])(None, Call(name="send_mail")).decision == "deny"


@pytest.mark.parametrize("patterns", [[""], ["  "], [None], "curl"])
def test_a_pattern_that_cannot_be_meant_is_refused_at_once(patterns):
    with pytest.raises(ToolError, match=r"rule 'x': .*; write "):
        SafetyRule("x", patterns)


def test_only_allowed_tools_may_be_called_in_either_spelling():
    rule = AuthRule(["read_file", "list-files"])
    assert rule.name == "auth"
    for name in ("read_file", "read-file", "list_files"):
        assert rule(None, Call(name=name)) is ALLOW
        assert rule(sample(name), Call(name=name)) is ALLOW
        assert not rule.concerns(sample(name))
    assert rule.concerns(sample("shell", **NUMBERS))
    verdict = rule(sample("shell"), Call(name="shell"))
    assert verdict.reason == "rule 'auth' does not allow the tool 'shell'"
    assert verdict.cure == Cure("add its name to allowed_tools", "ask the operator to allow it")
    assert AuthRule([], name="mine")(None, Call(name="read_file")).rule == "mine"


ORIGIN_DEFECTS = [
    ("shell", {"command": "rm -rf build"}, "deny"),
    ("shell", {"command": "rm -fr /"}, "deny"),
    ("shell", {"command": "rm  -rf /"}, "deny"),
    ("read_file", {"path": ".ssh/id_ed25519"}, "deny"),
    ("read_files", {"paths": ["/etc/passwd"]}, "deny"),
    ("format_datetime", {"value": "2024-01-01"}, "allow"),
    ("write_file", {"path": "x.txt", "content": "the format is"}, "allow"),
    ("shell", {"command": "ls 2> /dev/null"}, "allow"),
    ("read_file", {"path": "src/.environment.py"}, "allow"),
]


@pytest.mark.parametrize(("name", "arguments", "decision"), ORIGIN_DEFECTS)
def test_rules_judge_what_is_meant_and_not_substrings(name, arguments, decision, tmp_path):
    engine = RuleEngine(workspace=tmp_path)
    engine.add_rule(SafetyRule("old_habits", ["format"]))
    assert engine.judge(None, Call(name=name, arguments=arguments)).decision == decision


class TooMuch:
    name = "reader"

    def concerns(self, tool):
        return True

    def __call__(self, tool, call):
        raise TooMuchToReadError


UNDECIDED = "so the call is refused"
CURE = Cure("see the log, and fix or remove the rule")


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (Failing(), deny(f"rule 'broken' failed, {UNDECIDED}", rule="broken", where=__name__, cure=CURE)),
        (Saying("odd", "yes"), deny(f"rule 'odd' gave no verdict, {UNDECIDED}", rule="odd", where=__name__, cure=CURE)),
        (
            TooMuch(),
            deny(
                "rule 'reader': the arguments hold more strings than can be judged",
                rule="reader",
                where=__name__,
                cure="send fewer of them in one call",
                kind=Kind.LIMIT_EXCEEDED,
            ),
        ),
        (
            AuthRule(["other"]),
            deny(
                "rule 'auth' does not allow the tool 'sample'",
                rule="auth",
                where="a rule of the host program",
                cure=Cure("add its name to allowed_tools", "ask the operator to allow it"),
            ),
        ),
    ],
    ids=["failed", "no verdict", "too much", "not allowed"],
)
def test_a_refusal_says_who_refused_why_where_and_the_cure(rule, verdict):
    assert RuleEngine([rule]).judge(sample(), CALL) == verdict


def test_a_failing_rule_is_logged_with_its_name_and_the_tool(caplog):
    with caplog.at_level(logging.ERROR):
        RuleEngine([Failing()]).judge(sample("delete_all"), Call(name="delete_all"))
    told = [(record.message, record.rule, record.tool) for record in caplog.records]
    assert told == [
        ("rule failed; it is asked about every call", "broken", "delete_all"),
        ("rule failed; the call is refused", "broken", "delete_all"),
    ]


def test_a_tool_is_judged_by_its_own_name_and_an_unknown_one_by_what_was_called():
    rule = AuthRule(["get_time"], name="few", where="toolcrib.toml")
    called_otherwise = Call(name="project/get_time@1.0.0")
    assert rule(sample("get_time"), called_otherwise) == ALLOW
    assert rule(None, Call(name="get-time")) == ALLOW
    refused = rule(None, called_otherwise)
    assert (refused.rule, refused.where) == ("few", "toolcrib.toml")
    assert rule.concerns(sample("other"))
    assert not rule.concerns(sample("get-time"))


def test_a_command_that_cannot_be_read_is_refused_with_its_place(tmp_path):
    verdict = RuleEngine(workspace=tmp_path).judge(
        sample("shell", type="object", properties={"command": {"type": "string"}}),
        Call(name="shell", arguments={"command": "echo 'open"}),
    )
    assert (verdict.decision, verdict.rule, verdict.details) == (
        "deny",
        DangerousCommands.name,
        {"argument": "command"},
    )
    assert verdict.reason.startswith(f"rule {DangerousCommands.name!r}: command: ")
    assert verdict.where
