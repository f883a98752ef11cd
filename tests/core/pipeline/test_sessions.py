"""Sessions in the pipeline: budgets of a turn, loops, and the registry that a session keeps to."""

import asyncio
from dataclasses import replace

import pytest

from toolcrib import Call, Context, Crib, Cure, Kind, RuleEngine, Session, ToolError, tool, tool_of
from toolcrib.core.call_state import Policy
from toolcrib.core.confirmations import Confirmations
from toolcrib.core.journal import MemoryJournal
from toolcrib.core.pipeline import Pipeline
from toolcrib.features.functions.runner import FunctionRunner
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.expiring import KeptResults
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.errors import NO_CURE
from toolcrib.model.session import CountedCall
from toolcrib.model.tool import Behaviour, Entry, Function


def touch(n: int = 0) -> int:
    """Give a number back."""
    return n


def search(query: str = "x", answer: object = "found"):
    """Look something up."""
    return answer


def look_up():
    return replace(tool_of(search), behaviour=Behaviour.RETRIEVAL)


async def kinds(crib, session, *calls):
    results = [await crib.call(Call(name=name, arguments=arguments, session=session)) for name, arguments in calls]
    return ["ok" if result.ok else str(result.error.kind) for result in results]


@pytest.mark.parametrize(
    ("limits", "cure"),
    [
        (
            {"max_calls": 1},
            Cure("open a new session or raise max_calls", "open a new session", model="answer with what is known"),
        ),
        (
            {"max_turn_calls": 1},
            Cure("answer the user with what is known, or raise max_turn_calls", "answer the user with what is known"),
        ),
        (
            {"max_turn_retrievals": 1},
            Cure(
                "answer the user with what was found, or raise max_turn_retrievals",
                "answer the user with what was found",
            ),
        ),
    ],
    ids=["calls", "calls of a turn", "retrievals of a turn"],
)
async def test_each_reader_is_told_what_helps_when_a_budget_is_used_up(crib_of, limits, cure):
    crib = crib_of(look_up())
    session = Session(id="s", **limits)
    assert await kinds(crib, session, ("search", {}), ("search", {"query": "y"})) == ["ok", "BUDGET_EXCEEDED"]
    finding = next(
        each for each in crib.explain(Call(name="search", session=session)).findings if each.gate == "budget"
    )
    assert finding.verdict.cure == cure


class BrokenSession(Session):
    def used_up(self, *, is_retrieval):
        raise RuntimeError("the count is lost")


async def test_a_gate_that_fails_refuses_the_call_and_the_log_says_which(crib_of, caplog):
    crib = crib_of(touch)
    refused = await crib.call(Call(name="touch", session=BrokenSession(id="s")))
    assert refused.error.kind is Kind.INTERNAL
    assert refused.error.message == "the gate 'budget' failed, so the call is refused; the log has the details"
    (line,) = [record for record in caplog.records if "the gate" in record.message]
    assert line.message == f"call {refused.meta['callId']}: the gate budget failed"
    assert line.exc_info[1].args == ("the count is lost",)


async def test_a_turn_has_so_many_calls_and_the_next_turn_begins_anew(crib_of):
    crib = crib_of(touch)
    session = Session(id="s", max_turn_calls=2)
    three = [("touch", {"n": n}) for n in range(3)]
    assert await kinds(crib, session, *three) == ["ok", "ok", "BUDGET_EXCEEDED"]
    refused = await crib.call(Call(name="touch", session=session))
    assert refused.error.message == (
        "this turn has made all of its 2 calls; answer the user with what is known, or raise max_turn_calls"
    )
    assert refused.error.details["gate"] == "budget"
    assert refused.error.details["rule"] == "max_turn_calls"
    assert not refused.error.retryable
    session.next_turn()
    assert await kinds(crib, session, *three) == ["ok", "ok", "BUDGET_EXCEEDED"]


async def test_a_turn_may_look_up_so_much_and_still_do_other_things(crib_of):
    crib = crib_of(touch, look_up())
    session = Session(id="s", max_turn_retrievals=1)
    calls = [("search", {"query": "a"}), ("search", {"query": "b"}), ("touch", {})]
    assert await kinds(crib, session, *calls) == ["ok", "BUDGET_EXCEEDED", "ok"]
    refused = await crib.call(Call(name="search", session=session))
    assert refused.error.message == (
        "this turn has made all of its 1 retrievals; answer the user with what was found, or raise max_turn_retrievals"
    )
    session.next_turn()
    assert await kinds(crib, session, *calls[:1]) == ["ok"]


async def test_the_calls_of_the_whole_session_are_counted_over_all_turns(crib_of):
    crib = crib_of(touch)
    session = Session(id="s", max_calls=2)
    for n in range(2):
        assert await kinds(crib, session, ("touch", {"n": n})) == ["ok"]
        session.next_turn()
    assert await kinds(crib, session, ("touch", {})) == ["BUDGET_EXCEEDED"]


async def test_the_third_identical_call_of_a_turn_is_a_loop(crib_of):
    crib = crib_of(touch)
    session = Session(id="s", max_repeats=2)
    # The default is part of a call: leaving it out or writing it down is the same call.
    same = [("touch", {}), ("touch", {"n": 0}), ("touch", {})]
    assert await kinds(crib, session, *same, ("touch", {"n": 1})) == ["ok", "ok", "LOOP_DETECTED", "ok"]
    refused = await crib.call(Call(name="touch", session=session))
    assert refused.error.message == (
        "touch was called 2 times in this turn with the very same arguments; "
        "try something else, or answer the user with what is known"
    )
    assert refused.error.details["gate"] == "loop"
    session.next_turn()
    assert await kinds(crib, session, *same) == ["ok", "ok", "LOOP_DETECTED"]


async def test_the_order_of_arguments_does_not_hide_a_loop_and_another_tool_is_none(crib_of):
    def one(a: str, b: dict) -> str:
        """Take two."""
        return a

    def other(a: str, b: dict) -> str:
        """Take two."""
        return a

    crib = crib_of(one, other)
    session = Session(id="s", max_repeats=1)
    first, again = {"a": "x", "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": "x"}
    assert await kinds(crib, session, ("one", first), ("other", first), ("one", again)) == [
        "ok",
        "ok",
        "LOOP_DETECTED",
    ]


async def test_a_call_that_failed_or_was_refused_is_remembered_only_if_it_was_made(crib_of):
    @tool
    def fails(n: int) -> int:
        """Fail."""
        raise ToolError(Kind.PERMANENT, "no")

    crib = crib_of(fails)
    session = Session(id="s", max_repeats=2, max_calls=2)
    bad = [("fails", {"n": "x"})] * 3
    assert await kinds(crib, session, *bad) == ["VALIDATION"] * 3
    assert session.calls == 0
    assert await kinds(crib, session, *[("fails", {"n": 1})] * 2) == ["PERMANENT"] * 2
    assert session.calls == 2


@pytest.mark.parametrize("empty", [None, "", [], {}])
async def test_a_tool_that_found_nothing_twice_in_a_turn_is_not_asked_a_third_time(crib_of, empty):
    crib = crib_of(look_up(), touch)
    session = Session(id="s", max_repeats=5)
    calls = [("search", {"query": query, "answer": empty}) for query in "abc"]
    assert await kinds(crib, session, *calls, ("touch", {})) == ["ok", "ok", "LOOP_DETECTED", "ok"]
    refused = await crib.call(Call(name="search", session=session))
    assert refused.error.message.startswith("search found nothing 2 times in this turn; ")
    session.next_turn()
    assert await kinds(crib, session, *calls[:1]) == ["ok"]


@pytest.mark.parametrize("value", [0, False, 0.0, "x", [None], {"results": []}])
async def test_what_is_something_is_not_nothing(crib_of, value):
    crib = crib_of(look_up())
    calls = [("search", {"query": query, "answer": value}) for query in "abcd"]
    assert await kinds(crib, Session(id="s", max_repeats=2), *calls) == ["ok"] * 4


async def test_a_tool_that_promises_to_return_nothing_has_not_failed_to_find_something(crib_of):
    @tool
    def note(text: str) -> None:
        """Write something down."""

    calls = [("note", {"text": text}) for text in "abcd"]
    assert await kinds(crib_of(note), Session(id="s", max_repeats=2), *calls) == ["ok"] * 4


async def test_without_a_bound_on_repeats_loops_are_not_looked_for(crib_of):
    crib = crib_of(look_up())
    assert await kinds(crib, Session(id="s"), *[("search", {"answer": []})] * 5) == ["ok"] * 5


async def test_calls_that_a_tool_makes_use_the_budget_and_are_no_loop_of_the_agent(crib_of):
    @tool
    async def polls(times: int, context: Context) -> list:
        """Ask another tool again and again."""
        results = [await context.call("touch", n=1) for _ in range(times)]
        return [result.ok for result in results]

    crib = crib_of(touch, polls)
    session = Session(id="s", max_turn_calls=5, max_repeats=2)
    result = await crib.call(Call(name="polls", arguments={"times": 6}, session=session))
    assert result.value == [True] * 4 + [False] * 2
    session.next_turn()
    assert await kinds(crib, session, ("touch", {"n": 1})) == ["ok"]


async def test_what_a_tool_did_not_find_for_another_says_nothing_about_the_agents_own_question(crib_of):
    @tool
    async def asks(context: Context) -> str:
        """Look for something that is not there."""
        for query in "abc":
            await context.call("search", query=query, answer=[])
        return "done"

    crib = crib_of(look_up(), asks)
    assert await kinds(crib, Session(id="s", max_repeats=5), ("asks", {}), ("search", {})) == ["ok", "ok"]


def test_explaining_counts_nothing_and_says_what_the_call_would():
    with Crib(tools=[look_up()]) as crib:
        for bounds, kind in (
            ({"max_turn_calls": 1}, Kind.BUDGET_EXCEEDED),
            ({"max_turn_retrievals": 1}, Kind.BUDGET_EXCEEDED),
            ({"max_repeats": 1}, Kind.LOOP_DETECTED),
        ):
            session = Session(id="s", **bounds)
            call = Call(name="search", session=session)
            for _ in range(3):
                assert crib.explain(call).allowed
            assert session.calls == 0
            assert crib.call_sync(call).ok
            refusal, result = crib.explain(call).refusal, crib.call_sync(call)
            assert refusal.verdict.kind is result.error.kind is kind
            assert refusal.gate == result.error.details["gate"]
            assert refusal.verdict.reason in result.error.message


async def test_many_calls_at_once_take_no_more_places_than_there_are(crib_of):
    @tool
    async def wait(n: int) -> int:
        """Take a turn of the loop."""
        await asyncio.sleep(0)
        return n

    crib = crib_of(wait)
    session = Session(id="s", max_turn_calls=7)
    calls = [Call(name="wait", arguments={"n": n}, session=session) for n in range(30)]
    results = await crib.call_all(calls)
    assert [result.ok for result in results].count(True) == session.calls == 7


class Meanwhile:
    """Does something between the judgement of a call and its admission, as another thread could."""

    def __init__(self):
        self.act = lambda: None

    def __call__(self, arguments):
        self.act()


def overtaken(**facts):
    meanwhile = Meanwhile()
    canonical = replace(tool_of(touch), **facts)
    return replace(canonical, run=replace(canonical.run, check=meanwhile)), meanwhile


@pytest.mark.parametrize(
    ("bounds", "gate", "kind"),
    [
        ({"max_calls": 1}, "budget", Kind.BUDGET_EXCEEDED),
        ({"max_turn_calls": 1}, "budget", Kind.BUDGET_EXCEEDED),
        ({"max_repeats": 1}, "loop", Kind.LOOP_DETECTED),
    ],
)
async def test_a_call_that_is_overtaken_on_its_last_step_is_refused_after_all(crib_of, bounds, gate, kind):
    canonical, meanwhile = overtaken()
    crib = crib_of(canonical)
    session = Session(id="s", **bounds)
    call = Call(name="touch", session=session)
    # The same call, made in the moment in which this one was already judged.
    other = []

    def overtake():
        meanwhile.act = lambda: None
        with pytest.raises(StopIteration) as end:
            crib.call(call).send(None)
        other.append(end.value.value)

    meanwhile.act = overtake
    result = await crib.call(call)
    assert other[0].ok
    assert result.error.kind is kind
    assert result.error.details["gate"] == gate
    assert session.calls == 1


async def test_a_turn_that_begins_in_the_last_moment_has_room(crib_of):
    canonical, meanwhile = overtaken()
    session = Session(id="s", max_turn_calls=1)

    def overtake():
        session.admit(CountedCall(tool="other"))
        session.next_turn()

    meanwhile.act = overtake
    assert (await crib_of(canonical).call(Call(name="touch", session=session))).ok


class Interrupted(Session):
    """A session in which the user speaks just after a call found no place in the turn before."""

    is_over = False

    def admit(self, step):
        if self.is_over:
            return super().admit(step)
        self.is_over = True
        assert super().admit(CountedCall(tool="other")) is not None
        assert super().admit(step) is None
        self.next_turn()
        return None


async def test_a_turn_that_begins_while_a_call_is_being_refused_counts_that_call(crib_of):
    session = Interrupted(id="s", max_turn_calls=1)
    assert await kinds(crib_of(touch), session, ("touch", {}), ("touch", {})) == ["ok", "BUDGET_EXCEEDED"]
    assert session.calls == 2


async def test_a_call_that_lost_its_confirmation_to_another_uses_no_place_up(crib_of):
    canonical, meanwhile = overtaken(requires_confirmation=True)
    crib = crib_of(canonical)
    token = (await crib.call("touch")).error.details["confirmation"]
    session = Session(id="s", max_calls=1)
    meanwhile.act = lambda: crib._resources.get("confirmations").use(token)
    result = await crib.call(Call(name="touch", confirmation=token, session=session))
    assert result.error.kind is Kind.CONFIRMATION_REQUIRED
    assert "used before" in result.error.message
    assert session.calls == 0


async def test_a_call_without_a_place_leaves_its_confirmation_unused(crib_of):
    canonical, meanwhile = overtaken(requires_confirmation=True)
    crib = crib_of(canonical)
    token = (await crib.call("touch")).error.details["confirmation"]
    session = Session(id="s", max_calls=1)
    meanwhile.act = lambda: session.admit(CountedCall(tool="other"))
    refused = await crib.call(Call(name="touch", confirmation=token, session=session))
    assert refused.error.kind is Kind.BUDGET_EXCEEDED
    meanwhile.act = lambda: None
    assert (await crib.call(Call(name="touch", confirmation=token))).ok


async def test_a_session_that_is_closed_still_calls_because_tools_decide_that_themselves(crib_of):
    @tool
    def bids_farewell(context: Context) -> bool:
        """Look whether the client is still connected."""
        return context.session.is_active

    session = Session(id="s")
    crib = crib_of(bids_farewell)
    assert (await crib.call(Call(name="bids_farewell", session=session))).value is True
    session.close()
    assert (await crib.call(Call(name="bids_farewell", session=session))).value is False


def pipeline_over(find):
    store, ledger = MemoryStore(), UsageLedger(None)
    return Pipeline(
        find=find,
        cure_for=lambda name: NO_CURE,
        rules=RuleEngine(),
        runners={Function.kind: FunctionRunner()},
        journal=MemoryJournal(),
        confirmations=lambda: Confirmations(lambda: b"k" * 32, lambda: ledger),
        kept=lambda: KeptResults(lambda: store),
        policy=Policy(),
    )


async def test_a_session_finds_its_tools_in_the_registry_that_it_was_opened_with_and_so_do_the_tools_it_calls():
    @tool
    async def asks(context: Context) -> object:
        """Call another tool."""
        return (await context.call("touch", n=3)).value

    tools = {"asks": tool_of(asks), "touch": tool_of(touch)}
    found = []

    def find(name, bundle=None, version=None, session=None):
        found.append((name, session))
        return Entry(tool=tools[name])

    pipeline = pipeline_over(find)
    await pipeline.call(Call(name="touch", session=Session(id="s")))
    await pipeline.call(Call(name="touch"))
    assert found == [("touch", None), ("touch", None)]
    found.clear()
    session = Session(id="s", tools_version="1.0.abc")
    assert (await pipeline.call(Call(name="asks", session=session))).value == 3
    assert found == [("asks", session), ("touch", session)]


async def test_a_registry_that_is_forgotten_is_a_refusal_that_explain_tells_too():
    def find(name, bundle=None, version=None, session=None):
        raise ToolError(Kind.CONFLICT, f"the registry {session.tools_version} is not loaded here; open a new session")

    pipeline = pipeline_over(find)
    call = Call(name="touch", session=Session(id="s", tools_version="1.0.abc"))
    result, refusal = await pipeline.call(call), pipeline.explain(call).refusal
    assert result.error.kind is refusal.verdict.kind is Kind.CONFLICT
    assert result.error.details["gate"] == refusal.gate == "look-up"
    assert result.error.message == "the registry 1.0.abc is not loaded here; open a new session"
