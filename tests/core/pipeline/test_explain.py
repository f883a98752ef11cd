"""`explain` and the call itself can never disagree: they ask the same gates."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_tools import host_tool
from soaks import examples
from toolcrib import Call, Crib, Kind, Session, confirm, deny, tool

ORDER = [
    "rules",
    "look-up",
    "enabled",
    "mode",
    "capabilities",
    "arguments",
    "rate",
    "budget",
    "loop",
    "confirmation",
    "prepare",
]


def test_every_gate_has_its_say_in_the_order_of_the_call():
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with Crib(tools=[add]) as crib:
        explanation = crib.explain("add", a=1, b=2)
        assert [finding.gate for finding in explanation.findings] == ORDER
        assert explanation.allowed
        assert {finding.verdict.decision for finding in explanation.findings} == {"allow"}
        assert explanation.to_json()["tool"] == "host/add@1.0.0"


def test_what_is_explained_of_an_unknown_tool_is_told_by_the_name_that_was_asked_for():
    with Crib() as crib:
        explanation = crib.explain("nowhere")
    assert (explanation.tool, explanation.allowed) == ("nowhere", False)


def test_a_refusal_names_the_file_of_a_tool(project):
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "double.py").write_text('def double(n: int) -> int:\n    """Double."""\n    return 2 * n\n')
    with Crib(project) as crib:
        finding = next(each for each in crib.explain("double", n="x").findings if each.gate == "arguments")
    assert finding.verdict.where == f"parameters of double in {project / 'tools' / 'double.py'}:1"


def test_a_refusal_names_the_rule_where_it_is_set_and_what_would_allow_it(project):
    (project / "toolcrib.toml").write_text('grants."*" = ["fs.read"]\ncatalog.disabled = ["read_file"]\n')
    with Crib(project) as crib:
        shell = crib.explain("shell", command="ls").to_json()["findings"][4]
        assert shell == {
            "gate": "capabilities",
            "decision": "deny",
            "reason": "shell requires shell.execute, which is not granted",
            "rule": "requires",
            "where": 'grants."*" in toolcrib.toml',
            "cure": 'write "shell" = ["shell.execute"] under [grants] in toolcrib.toml, or for one call: --grant shell.execute',
        }
        off = crib.explain("read_file", path="x").to_json()["findings"][2]
        assert "disabled in toolcrib.toml" in off["reason"]
        assert "take 'read_file' out" in off["cure"]


def test_gates_after_bad_arguments_are_not_reached_but_others_still_speak():
    @tool(requires=["x.y"], modes=["voice"])
    def touch(n: int) -> int:
        """Touch."""
        return n

    with Crib(tools=[touch]) as crib:
        decisions = {item["gate"]: item["decision"] for item in crib.explain("touch", n="x").to_json()["findings"]}
    assert decisions["mode"] == decisions["capabilities"] == decisions["arguments"] == "deny"
    assert decisions["rate"] == decisions["confirmation"] == "not reached"


def test_explaining_uses_nothing_up_and_runs_nothing():
    ran = []

    @tool(calls_per_minute=1, confirm=True)
    def touch() -> None:
        """Touch."""
        ran.append(1)

    with Crib(tools=[touch]) as crib:
        token = crib.call_sync("touch").error.details["confirmation"]
        session = crib.session(max_calls=1)
        call = Call(name="touch", confirmation=token, session=session)
        for _ in range(3):
            assert crib.explain(call).allowed
        assert ran == []
        assert crib.call_sync(call).ok
        assert not crib.explain(call).allowed


class Moody:
    """A rule that judges by what is in the arguments."""

    name = "moody"

    def concerns(self, tool):
        return tool.name != "plain"

    def __call__(self, tool, call):
        word = call.arguments.get("word")
        if word == "no":
            return deny("no means no", rule=self.name)
        return (
            confirm("maybe", rule=self.name)
            if word == "maybe"
            else deny("unknown", rule=self.name)
            if tool is None and word == "x"
            else _allow()
        )


def _allow():
    from toolcrib import ALLOW

    return ALLOW


def make_crib(disabled):
    def body(n: int = 0, word: str = "") -> int:
        """Take a number and a word."""
        return n

    tools = [
        tool(name="plain")(lambda n=0, word="": n),
        tool(name="voice_only", modes=["voice"])(lambda n=0, word="": n),
        tool(name="needy", requires=["net.http"])(body),
        tool(name="asking", confirm=True)(lambda n=0, word="": n),
        tool(name="rare", calls_per_minute=2)(lambda n=0, word="": n),
    ]
    for function in tools:
        function.__doc__ = "Take a number and a word."
    return Crib(
        tools=tools, rules=[Moody()], catalog={"disabled": disabled}, environment={}, builtins={"enabled": False}
    )


calls = st.builds(
    lambda name, arguments, mode, session, grants, deep, token: (name, arguments, mode, session, grants, deep, token),
    st.sampled_from(["plain", "voice_only", "needy", "asking", "rare", "nobody", "plain@9", "host/plain"]),
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.sampled_from([0, 1, "1", None, True]),
            "word": st.sampled_from(["", "no", "maybe", "x", 5]),
            "extra": st.just(1),
        },
    ),
    st.sampled_from([None, "text", "voice"]),
    st.sampled_from([None, "text", "voice"]),
    st.sampled_from([None, frozenset(), frozenset({"net.*"})]),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=examples(150))
@given(st.lists(calls, min_size=1, max_size=8), st.sampled_from([[], ["plain"], ["needy", "asking"]]), st.booleans())
def test_what_explain_says_is_what_the_call_does(made, disabled, grant):
    crib = make_crib(disabled)
    if grant:
        crib = Crib(
            tools=[entry.tool for entry in crib._catalog.host.entries()],
            rules=[Moody()],
            grants={"*": ["net.http"]},
            catalog={"disabled": disabled},
            environment={},
            builtins={"enabled": False},
        )
    session = {
        mode: Session(id=mode, mode=mode, max_calls=4, max_turn_calls=3, max_repeats=2) for mode in ("text", "voice")
    }

    async def compare():
        for name, arguments, mode, session_mode, grants, deep, confirmed in made:
            parent = None
            for _ in range(11 if deep else 0):
                parent = Call(name="plain", parent=parent)
            call = Call(
                name=name,
                arguments=arguments,
                mode=mode,
                session=session.get(session_mode),
                grants=grants,
                parent=parent,
            )
            if confirmed:
                asked = await crib.call(call)
                token = asked.error.details.get("confirmation") if asked.error else None
                call = Call(
                    name=name,
                    arguments=arguments,
                    mode=mode,
                    session=session.get(session_mode),
                    grants=grants,
                    parent=parent,
                    confirmation=token,
                )
            explanation = crib.explain(call)
            result = await crib.call(call)
            if explanation.refusal is None:
                assert result.ok, (call, result)
            else:
                assert result.error is not None, (call, explanation)
                assert result.error.details["gate"] == explanation.refusal.gate
                assert result.error.kind is explanation.refusal.verdict.kind
                assert explanation.refusal.verdict.reason in result.error.message
        await crib.close()

    asyncio.run(compare())


@pytest.mark.parametrize("name", ["plain", "voice_only", "needy", "asking", "rare"])
def test_the_quick_way_and_the_full_way_agree(name):
    """A plain call skips gates that do not concern the tool; a call with a session passes them all."""
    for arguments in ({}, {"n": "x"}, {"word": "no"}, {"word": "maybe"}, {"extra": 1}):
        with make_crib([]) as crib:
            quick = crib.call_sync(name, arguments)
            full = crib.call_sync(Call(name=name, arguments=arguments))
            assert (quick.ok, quick.error and quick.error.kind) == (full.ok, full.error and full.error.kind)
            assert quick.error is None or quick.error.kind is not Kind.INTERNAL


odd_values = st.one_of(
    st.integers(),
    st.integers(min_value=2**62, max_value=2**70),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.builds(object),
    st.complex_numbers(),
    st.sets(st.integers(), max_size=1),
)


def double(n: int, times: int = 2) -> int:
    """Multiply."""
    return n * times


def half(n: float, by: float | None = 2.0) -> float:
    """Divide."""
    return n / (by or 1)


@settings(max_examples=examples(200))
@given(
    st.sampled_from(["double", "half", "async_double"]),
    st.dictionaries(st.sampled_from(["n", "times", "by", "x", "self", ""]), odd_values, max_size=3),
)
def test_the_short_way_and_the_long_way_come_to_the_same(name, arguments):
    """Tools of numbers alone may take the short way; a Call never does."""

    async def async_double(n: int, times: int = 2) -> int:
        """Multiply after a turn."""
        await asyncio.sleep(0)
        return n * times

    async def compare():
        async with Crib(tools=[double, half, async_double], environment={}, builtins={"enabled": False}) as crib:
            short = [await crib.call(name, arguments) for _ in range(2)]
            long = await crib.call(Call(name=name, arguments=arguments))
            assert crib.explain(name, arguments).allowed is (long.ok or "gate" not in long.error.details)
        for result in short:
            assert result.ok is long.ok
            assert result.value == long.value
            assert (result.error and result.error.to_json()) == (long.error and long.error.to_json())
            assert set(result.meta) == set(long.meta)

    asyncio.run(compare())


def test_tools_of_numbers_alone_really_take_the_short_way():
    with Crib(tools=[double], environment={}, builtins={"enabled": False}) as crib:
        crib.call_sync("double", n=1)
        assert [plan.simple is not None for plan in crib._pipeline._plans.values()] == [True]


def test_explain_answers_as_the_call_does(tmp_path):
    """Tools that cannot be made ready, odd confirmations, a key that cannot be read."""

    @tool(confirm=True)
    def pay(n: int) -> int:
        """Pay."""
        return n

    broken = host_tool("broken", parameters={"type": "objekt"}, bundle="host")
    alien = host_tool("alien", bundle="host")
    (tmp_path / ".toolcrib").mkdir(mode=0o700)
    (tmp_path / ".toolcrib" / "key").write_bytes(b"short")
    (tmp_path / ".toolcrib" / "key").chmod(0o600)
    with Crib(tools=[pay]) as crib, Crib(tmp_path, tools=[pay]) as keyless:
        crib._catalog.add(broken)
        crib._catalog.add(alien)
        crib._resources.runners["function"] = None
        cases = [
            (crib, Call(name="broken")),
            (crib, Call(name="alien")),
            (crib, Call(name=None)),
            (keyless, Call(name="pay", arguments={"n": 1}, confirmation=5)),
            (keyless, Call(name="pay", arguments={"n": 1}, confirmation="x" * 70)),
        ]
        for owner, call in cases:
            result, refusal = owner.call_sync(call), owner.explain(call).refusal
            assert result.error.details["gate"] == refusal.gate
            assert result.error.kind is refusal.verdict.kind


def test_a_tool_made_by_hand_is_checked_when_it_is_handed_in():
    from toolcrib import ToolError

    for parameters in (
        {"type": "objekt"},
        {"type": "string"},
        {"type": "object", "properties": {"x": {"pattern": "(?=a)"}}},
    ):
        broken = host_tool("broken", parameters=parameters)
        with pytest.raises(ToolError, match="broken: parameters"):
            Crib(tools=[broken])
