"""Cases, tried through a crib with every gate in place."""

import time
from dataclasses import replace
from itertools import count

import pytest

from toolcrib import Context, Crib, Kind, ToolError, tool, tool_of
from toolcrib.model.tool import Behaviour
from toolcrib.testing import Case, FakeContext, try_cases


@tool
async def tell(word: str, context: Context) -> dict[str, object]:
    """Tell the client a word."""
    session = context.session
    if not session.is_active:
        raise ToolError(Kind.SESSION_INACTIVE, "the conversation is over")
    await session.send({"type": "word", "word": word})
    context.audit("told", {"word": word})
    return {"word": word, "mode": context.mode, "client": context.caller, "state": dict(session.state)}


@pytest.fixture
def run():
    """Try cases of a tool in a crib of its own."""

    def run(function, *cases, mode=None, **settings):
        made = function if not callable(function) else tool_of(function)
        with Crib(tools=[made], **settings) as crib:
            [found] = [known for known in crib.tools if known.name == made.name]
            return try_cases(crib, found, cases, mode=mode)

    return run


def case(name="a case", **facts):
    return Case(name=name, **facts)


def word(expect=None, context=None):
    return case(arguments={"word": "hello"}, expect=expect or {"ok": True}, context=context or FakeContext())


def test_what_the_client_is_sees_and_hears_is_what_the_case_says(run):
    context = FakeContext(client_id="phone", mode="voice", state={"step": 2})
    value = {"word": "hello", "mode": "voice", "client": "phone", "state": {"step": 2}}
    sent, audit = [{"type": "word", "word": "hello"}], [{"event": "told", "data": {"word": "hello"}}]
    [result] = run(tell, word({"value": value, "sent": sent, "audit": audit}, context))
    assert result.passed
    assert result.reasons == result.warnings == ()
    assert result.result.value == value
    assert (context.sent, context.audited) == ([], [])


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (FakeContext(send="fails"), "TRANSIENT"),
        (FakeContext(send="closed"), "SESSION_INACTIVE"),
        (FakeContext(is_active=False), "SESSION_INACTIVE"),
    ],
)
def test_a_client_that_is_not_there_hears_nothing(run, context, kind):
    [result] = run(tell, word({"error": {"type": kind}, "sent": [], "audit": []}, context))
    assert result.reasons == ()
    assert result.passed


def test_every_case_has_a_session_and_a_record_of_its_own(run):
    seen = []

    @tool
    async def look(context: Context) -> int:
        """Say how often it was called."""
        seen.append(context.session)
        await context.session.send(len(seen))
        context.audit("seen")
        return len(seen)

    cases = [
        case(f"{number}", expect={"value": number, "sent": [number], "audit": [{"event": "seen"}]}) for number in (1, 2)
    ]
    assert [result.reasons for result in run(look, *cases)] == [(), ()]
    assert len({session.id for session in seen}) == 2


def test_cases_are_told_as_they_end_with_all_that_differs():
    heard = []
    wrong = {"value": {"word": "bye", "mode": "text"}, "sent": [{"word": "bye"}, {}], "audit": []}
    with Crib(tools=[tell]) as crib:
        results = try_cases(crib, tool_of(tell), [word(wrong), word()], heard=heard.append)
    assert heard == results
    assert [result.passed for result in results] == [False, True]
    assert [result.failed for result in results] == [True, False]
    assert results[0].reasons == (
        'value.word: expected "bye", got "hello"',
        'value.client: expected nothing, got "test"',
        "value.state: expected nothing, got {}",
        'sent: expected 2 items, got 1 item: [{"type": "word", "word": "hello"}]',
        'sent[0].word: expected "bye", got "hello"',
        'audit: expected 0 items, got 1 item: [{"event": "told", "data": {"word": "hello"}}]',
    )


def test_of_a_thousand_differences_only_the_first_are_told(run):
    @tool
    def numbers() -> list[int]:
        """Count."""
        return list(range(1_000))

    [result] = run(numbers, case(expect={"value": [-1] * 1_000}))
    assert len(result.reasons) == 101
    assert result.reasons[-1] == "… and more"


def test_a_case_that_cannot_be_read_fails_without_a_call(run):
    @tool
    def never() -> None:
        """Never run."""
        raise AssertionError

    [result] = run(never, case(place="doc.md:7", problem="line 9 is not JSON"))
    assert (result.failed, result.place, result.reasons, result.result) == (
        True,
        "doc.md:7",
        ("line 9 is not JSON",),
        None,
    )


@tool(requires=["net.http"])
def fetch_it() -> str:
    """Fetch."""
    return "fetched"


def test_a_tool_that_needs_what_is_not_granted_is_skipped_and_says_what_it_needs(run):
    [result] = run(fetch_it, case())
    cure = 'write "fetch_it" = ["net.http"] under [grants] in toolcrib.toml, or for one call: --grant net.http'
    assert result.skipped == f"needs net.http; {cure}"
    assert not result.passed
    assert not result.failed
    assert run(fetch_it, case(expect={"value": "fetched"}), grants={"*": ["net.http"]})[0].passed


def test_a_case_about_a_refusal_is_not_skipped(run):
    assert run(fetch_it, case(expect={"error": {"type": "CAPABILITY_MISSING"}}))[0].passed
    assert run(fetch_it, case(expect={"error": {"type": "VALIDATION"}}))[0].skipped


def test_a_tool_that_only_claims_that_something_is_missing_fails(run):
    @tool
    def pretend() -> str:
        """Pretend."""
        raise ToolError(Kind.CAPABILITY_MISSING, "no", details={"missing": ["net.http"], "gate": "capabilities"})

    [result] = run(pretend, case())
    assert result.failed
    assert result.reasons == ("ok: expected true, got false: CAPABILITY_MISSING: no",)


def test_a_tool_that_is_switched_off_is_skipped(run):
    [result] = run(fetch_it, case(), catalog={"disabled": ["fetch_it"]})
    assert "disabled" in result.skipped


@tool(modes=["voice"])
def speak(context: Context) -> str:
    """Speak."""
    return context.mode


@tool
def any_mode(context: Context) -> str:
    """Do as it is told."""
    return context.mode


def test_a_tool_is_called_in_a_mode_that_it_allows(run):
    assert run(speak, case(expect={"value": "voice"}))[0].passed
    assert run(any_mode, case(expect={"value": "text"}))[0].passed
    assert run(any_mode, case(expect={"value": "voice"}), mode="voice")[0].passed
    assert run(any_mode, case(context=FakeContext(mode="text"), expect={"value": "text"}), mode="voice")[0].passed


def test_a_mode_that_the_tool_does_not_allow_is_a_reason_to_skip_unless_the_case_asks_for_it(run):
    [result] = run(speak, case(), mode="text")
    assert result.skipped == "speak may be called in voice mode only, and this call is in text mode"
    assert run(speak, case(context=FakeContext(mode="text")))[0].failed
    restricted = {"error": {"type": "MODE_RESTRICTED"}}
    assert run(speak, case(context=FakeContext(mode="text"), expect=restricted))[0].passed


def test_a_call_that_asks_is_confirmed_unless_the_client_does_not(run):
    @tool(confirm=True)
    def wipe(what: str) -> str:
        """Wipe."""
        return f"wiped {what}"

    arguments = {"what": "all"}
    refused = {"error": {"type": "CONFIRMATION_REQUIRED", "retryable": False}}
    yes = case(arguments=arguments, expect={"value": "wiped all"})
    no = case(arguments=arguments, expect=refused, context=FakeContext(confirm=False))
    assert [result.reasons for result in run(wipe, yes, no)] == [(), ()]


def test_a_tool_that_only_claims_to_ask_is_called_once(run):
    calls = []

    @tool
    def pretend() -> str:
        """Pretend."""
        calls.append(1)
        raise ToolError(Kind.CONFIRMATION_REQUIRED, "sure?", details={"confirmation": "x", "gate": "confirmation"})

    [result] = run(pretend, case(expect={"error": {"type": "CONFIRMATION_REQUIRED"}}))
    assert result.passed
    assert calls == [1]


def utility(function, **facts):
    return replace(tool_of(function), behaviour=Behaviour.UTILITY, **facts)


@pytest.mark.spec("S2-72")
def test_a_utility_that_gives_something_else_the_second_time_is_warned_of(run):
    numbers = count(1)

    @tool
    def draw() -> dict[str, int]:
        """Draw a number."""
        return {"drawn": next(numbers)}

    [result] = run(utility(draw), case(expect={"value": {"drawn": 1}}))
    assert result.passed
    assert result.warnings == (
        "not deterministic: the same arguments gave something else the second time: value.drawn: expected 1, got 2",
    )
    assert next(numbers) == 3


@pytest.mark.spec("S2-72")
def test_a_utility_that_keeps_its_word_is_not_warned_of_though_it_changes_its_arguments(run):
    @tool
    def sort(words: list[str]) -> list[str]:
        """Sort."""
        words.append("z")
        return sorted(words)

    given = {"words": ["b", "a"]}
    [result] = run(utility(sort), case(arguments=given, expect={"value": ["a", "b", "z"]}))
    assert result.passed
    assert result.warnings == ()
    assert given == {"words": ["b", "a"]}


def test_what_is_no_utility_or_writes_or_failed_is_called_once(run):
    calls = []

    @tool(side_effects="writes")
    def write() -> int:
        """Write."""
        calls.append("write")
        return len(calls)

    @tool
    def read() -> int:
        """Read."""
        calls.append("read")
        return len(calls)

    @tool
    def fail() -> int:
        """Fail."""
        calls.append("fail")
        raise ToolError(Kind.CONFLICT, "no")

    for made in (utility(write), tool_of(read), utility(fail)):
        assert run(made, case())[0].warnings == ()
    assert calls == ["write", "read", "fail"]


def test_more_time_than_the_budget_is_a_warning(run):
    @tool(latency_budget_ms=1, thread=True)
    def slow() -> None:
        """Take its time."""
        time.sleep(0.01)

    [result] = run(slow, case())
    assert result.passed
    [warning] = result.warnings
    assert warning == result.result.meta["warnings"][0]
    assert warning.startswith("slow took ")
    assert warning.endswith(" ms, its budget is 1 ms")


def test_the_budget_of_a_utility_is_about_the_call_that_counts_and_not_about_its_repetition(run):
    calls = []

    @tool(latency_budget_ms=50, thread=True)
    def slow_once() -> str:
        """Take its time once."""
        time.sleep(0 if calls else 0.1)
        calls.append(None)
        return "done"

    [result] = run(utility(slow_once), case())
    assert (result.passed, len(calls)) == (True, 2)
    [warning] = result.warnings
    assert warning.endswith(" ms, its budget is 50 ms")


def test_a_result_tells_all_as_json(run):
    [result] = run(tell, word({"ok": False}))
    told = result.to_json()
    assert told["result"]["value"]["word"] == "hello"
    assert told["reasons"] == list(result.reasons)
    assert (told["passed"], told["skipped"], told["name"]) == (False, None, "a case")
