"""Each gate stands in its place, says why, and stops the call before the tool runs."""

import pytest

from toolcrib import ALLOW, Call, Kind, Session, Verdict, confirm, deny, tool


class Recording:
    """A tool that remembers being called."""

    def __init__(self):
        self.calls = []

    def make(self, **options):
        @tool(**options)
        def touch(n: int = 0, label: str = "") -> int:
            """Remember the call."""
            self.calls.append((n, label))
            return n

        return touch


class Says:
    """A rule that says one thing to everybody."""

    def __init__(self, verdict: Verdict, name: str = "says"):
        self.verdict = verdict
        self.name = name
        self.asked: list[object] = []

    def concerns(self, tool):
        return True

    def __call__(self, tool, call):
        self.asked.append((tool, call))
        return self.verdict


@pytest.fixture
def recording():
    return Recording()


async def test_a_call_that_every_gate_allows_runs_and_returns_its_value(crib_of, recording):
    result = await crib_of(recording.make()).call("touch", n=3)
    assert result.ok
    assert result.value == 3
    assert recording.calls == [(3, "")]
    assert result.meta["tool"] == "touch"
    assert result.meta["version"] == "1.0.0"
    assert result.meta["durationMs"] > 0


async def test_defaults_are_filled_in_before_the_tool_runs(crib_of):
    @tool(
        parameters={
            "type": "object",
            "properties": {
                "top_k": {"type": "integer", "default": 5},
                "deep": {"type": "object", "properties": {"x": {"default": 1}}},
            },
            "additionalProperties": False,
        }
    )
    def see(**arguments) -> dict:
        """See the arguments."""
        return arguments

    given = {"deep": {}}
    result = await crib_of(see).call("see", given)
    assert result.value == {"top_k": 5, "deep": {"x": 1}}
    assert given == {"deep": {}}


@pytest.mark.spec("S4-21")
async def test_a_rule_speaks_before_the_look_up_and_the_tool_stays_untouched(crib_of, recording):
    rule = Says(deny("not today", rule="says", where="here", cure="wait"))
    crib = crib_of(recording.make(), rules=[rule])
    for name in ("touch", "nobody"):
        result = await crib.call(name, n=1)
        assert result.error.kind is Kind.BLOCKED
        assert result.error.message == "not today; wait"
        assert result.error.details["gate"] == "rules"
        assert result.error.details["rule"] == "says"
        assert result.error.details["where"] == "here"
    assert recording.calls == []
    assert rule.asked[0][0].name == "touch"
    assert rule.asked[1][0] is None


async def test_a_rule_sees_the_raw_arguments_without_defaults(crib_of, recording):
    rule = Says(ALLOW)
    crib = crib_of(recording.make(), rules=[rule])
    await crib.call("touch", label="x")
    assert rule.asked[0][1].arguments == {"label": "x"}


async def test_a_rule_added_later_judges_tools_that_were_called_before(crib_of, recording):
    crib = crib_of(recording.make())
    assert (await crib.call("touch")).ok
    crib.add_rule(Says(deny("no more")))
    assert (await crib.call("touch")).error.kind is Kind.BLOCKED


async def test_a_rule_that_breaks_refuses_the_call(crib_of, recording, caplog):
    class Broken:
        name = "broken"

        def concerns(self, tool):
            return True

        def __call__(self, tool, call):
            raise ZeroDivisionError

    result = await crib_of(recording.make(), rules=[Broken()]).call("touch")
    assert result.error.kind is Kind.BLOCKED
    assert "broken" in result.error.message
    assert recording.calls == []


async def test_an_unknown_tool_is_reported_with_the_name_that_was_perhaps_meant(crib_of, recording):
    result = await crib_of(recording.make()).call("tuch")
    assert result.error.kind is Kind.NOT_FOUND
    assert "'tuch' not found" in result.error.message
    assert "did you mean touch" in result.error.message
    assert result.error.details["gate"] == "look-up"


async def test_a_tool_that_is_switched_off_says_where(crib_of, recording):
    result = await crib_of(recording.make(), catalog={"disabled": ["touch"]}).call("touch")
    assert result.error.kind is Kind.DISABLED
    assert "disabled" in result.error.message
    assert recording.calls == []


@pytest.mark.spec("S2-13")
@pytest.mark.parametrize(
    ("mode", "session_mode", "runs"),
    [("text", None, True), ("voice", None, False), (None, "voice", False), (None, "text", True), (None, None, True)],
)
async def test_a_tool_is_callable_only_in_its_modes(crib_of, recording, mode, session_mode, runs):
    crib = crib_of(recording.make(modes=["text"]))
    session = None if session_mode is None else Session(id="s", mode=session_mode)
    result = await crib.call(Call(name="touch", mode=mode, session=session))
    assert result.ok is runs
    assert bool(recording.calls) is runs
    if not runs:
        assert result.error.kind is Kind.MODE_RESTRICTED
        assert "text mode only" in result.error.message


@pytest.mark.spec("S3-14", "S3-55")
async def test_a_missing_capability_is_named_before_anything_runs(crib_of, recording):
    crib = crib_of(recording.make(requires=["net.http", "db.read"]), grants={"*": ["net.*"]})
    result = await crib.call("touch", n=1)
    assert result.error.kind is Kind.CAPABILITY_MISSING
    assert result.error.details["missing"] == ["db.read"]
    assert "--grant db.read" in result.error.message
    assert recording.calls == []


@pytest.mark.parametrize(
    ("grants", "runs"),
    [
        (["net.http"], True),
        (["net.*"], True),
        (["*"], True),
        (["net.other"], False),
        (["fs.*"], False),
    ],
)
async def test_a_grant_is_a_name_or_everything_below_a_dot(crib_of, recording, grants, runs):
    crib = crib_of(recording.make(requires=["net.http"]), grants={"*": grants})
    assert (await crib.call("touch")).ok is runs


async def test_a_call_can_only_narrow_what_was_granted(crib_of, recording):
    crib = crib_of(recording.make(requires=["net.http"]), grants={"*": ["net.http"]})
    assert (await crib.call(Call(name="touch", grants=frozenset({"fs.read"})))).error.kind is Kind.CAPABILITY_MISSING
    assert (await crib.call(Call(name="touch", grants=frozenset({"net.*", "db.*"})))).ok


@pytest.mark.spec("S4-23", "S2-16", "S2-17")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": "3"}, ["n", "integer", '"3"']),
        ({"n": True}, ["n", "integer"]),
        ({"n": 3.5}, ["n", "3.5"]),
        ({"m": 1}, ["m", "unknown"]),
        ({"label": None}, ["label"]),
    ],
)
async def test_arguments_outside_the_schema_are_refused_by_name_and_value(crib_of, recording, arguments, words):
    result = await crib_of(recording.make()).call("touch", arguments)
    assert result.error.kind is Kind.VALIDATION
    assert result.error.message.startswith("Invalid arguments for touch: ")
    assert all(word in result.error.message for word in words)
    assert result.error.details["gate"] == "arguments"
    assert recording.calls == []


async def test_unknown_arguments_are_passed_on_where_the_schema_is_open(crib_of):
    @tool
    def anything(**rest) -> dict:
        """Take anything."""
        return rest

    result = await crib_of(anything).call("anything", {"x": "5", "self": [1]})
    assert result.value == {"x": "5", "self": [1]}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 2**70, float("nan"), {1: 2}, "\ud800"])
async def test_arguments_that_are_not_json_are_refused(crib_of, value):
    @tool
    def anything(**rest) -> int:
        """Take anything."""
        return 1

    result = await crib_of(anything).call("anything", x=value)
    assert result.error.kind is Kind.VALIDATION


async def test_a_rate_limit_says_when_to_try_again(crib_of, recording):
    crib = crib_of(recording.make(calls_per_minute=2))
    results = [await crib.call("touch") for _ in range(4)]
    assert [result.ok for result in results] == [True, True, False, False]
    assert results[2].error.kind is Kind.RATE_LIMIT
    assert results[2].error.retryable
    assert 0 < results[2].error.details["retryAfter"] <= 60
    assert len(recording.calls) == 2


async def test_a_refused_call_does_not_count_against_the_rate(crib_of, recording):
    crib = crib_of(recording.make(calls_per_minute=1))
    for _ in range(3):
        assert (await crib.call("touch", n="x")).error.kind is Kind.VALIDATION
    assert (await crib.call("touch")).ok


@pytest.mark.spec("S4-29")
async def test_a_session_ends_with_its_calls_and_shows_how_many_are_left(crib_of, recording):
    crib = crib_of(recording.make())
    session = crib.session(max_calls=2)
    results = [await crib.call(Call(name="touch", session=session)) for _ in range(3)]
    assert results[1].meta["steps"] == {"used": 2, "max": 2}
    assert results[2].error.kind is Kind.BUDGET_EXCEEDED
    assert "all of its 2 calls" in results[2].error.message
    assert crib.session().max_calls == 20


async def test_one_session_does_not_use_up_another(crib_of, recording):
    crib = crib_of(recording.make())
    one, two = crib.session(max_calls=1), crib.session(max_calls=1)
    assert (await crib.call(Call(name="touch", session=one))).ok
    assert (await crib.call(Call(name="touch", session=two))).ok


async def test_the_gates_speak_in_the_order_of_the_call(crib_of, recording):
    """One call that every gate would refuse: removing reasons one by one shows the next gate."""
    rule = Says(deny("rule"))
    make = recording.make(modes=["voice"], requires=["x.y"], confirm=True, calls_per_minute=1)
    bad = {"n": "x"}
    steps = [
        ({"rules": [rule], "catalog": {"disabled": ["touch"]}}, "text", bad, Kind.BLOCKED),
        ({"catalog": {"disabled": ["touch"]}}, "text", bad, Kind.DISABLED),
        ({}, "text", bad, Kind.MODE_RESTRICTED),
        ({}, "voice", bad, Kind.CAPABILITY_MISSING),
        ({"grants": {"*": ["x.y"]}}, "voice", bad, Kind.VALIDATION),
        ({"grants": {"*": ["x.y"]}}, "voice", {"n": 1}, Kind.CONFIRMATION_REQUIRED),
    ]
    for settings, mode, arguments, kind in steps:
        result = await crib_of(make, **settings).call(Call(name="touch", mode=mode, arguments=arguments))
        assert result.error.kind is kind
        assert not result.error.partial_side_effects
    assert recording.calls == []


async def test_the_strictest_rule_decides_and_the_question_of_another_is_not_lost(crib_of, recording):
    asks, denies, allows = Says(confirm("sure?", rule="asks")), Says(deny("no")), Says(ALLOW)
    assert (await crib_of(recording.make(), rules=[asks, denies]).call("touch")).error.kind is Kind.BLOCKED
    result = await crib_of(recording.make(), rules=[allows, asks]).call("touch")
    assert result.error.kind is Kind.CONFIRMATION_REQUIRED
    assert "sure?" in result.error.message
    assert result.error.details["rule"] == "asks"


async def test_a_rule_added_later_ends_the_short_way_too(crib_of):
    @tool
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    crib = crib_of(double)
    for _ in range(2):
        assert (await crib.call("double", n=1)).value == 2
    crib.add_rule(Says(deny("no more")))
    assert (await crib.call("double", n=1)).error.kind is Kind.BLOCKED


async def test_a_mode_that_does_not_exist_is_refused(crib_of, recording):
    result = await crib_of(recording.make()).call(Call(name="touch", mode="sms"))
    assert result.error.message == "there is no mode 'sms'; use text or voice"


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**400])
async def test_an_integer_that_64_bits_cannot_hold_is_refused_beside_any_other_argument(crib_of, value):
    @tool
    def numbers(n: int) -> int:
        """Take a number."""
        return 1

    @tool
    def both(n: int, text: str = "") -> int:
        """Take a number and a text."""
        return 1

    crib = crib_of(numbers, both)
    for name in ("numbers", "numbers", "both"):
        assert (await crib.call(name, n=value)).error.kind is Kind.VALIDATION
        assert (await crib.call(name, n=2**63)).ok


async def test_a_call_refused_for_its_deadline_uses_nothing_up(crib_of):
    @tool(confirm=True, calls_per_minute=1)
    def pay(n: int) -> int:
        """Pay."""
        return n

    crib = crib_of(pay)
    token = (await crib.call("pay", n=1)).error.details["confirmation"]
    for passed in (0.0, float("nan"), float("-inf")):
        late = Call(name="pay", arguments={"n": 1}, confirmation=token, deadline=passed)
        assert not crib.explain(late).allowed
        assert (await crib.call(late)).error.kind is Kind.TIMEOUT
    assert (await crib.call(Call(name="pay", arguments={"n": 1}, confirmation=token))).value == 1
