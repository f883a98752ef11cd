"""The patterns of the authoring guide, as functions: plan then commit, read-modify-write, graceful degradation."""

from dataclasses import replace

import pytest

from toolcrib import Call, Kind, ToolError, tool, tool_of
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Behaviour, SideEffects


class Calendar:
    """A calendar that is planned in, written to and read."""

    def __init__(self):
        self.events = {"9:00": "stand-up"}

    def get_availability(self, start: str) -> bool:
        """Say whether a time is free."""
        return start not in self.events

    def create_event(self, start: str, title: str) -> dict:
        """Create an event."""
        if start in self.events:
            raise ToolError(Kind.CONFLICT, f"{start} is taken by {self.events[start]}")
        self.events[start] = title
        return {"start": start, "title": title}

    def tools(self):
        plan = replace(
            tool_of(self.get_availability),
            behaviour=Behaviour.RETRIEVAL,
            side_effects=SideEffects.READ_ONLY,
            idempotent=True,
        )
        commit = replace(
            tool_of(self.create_event),
            behaviour=Behaviour.ACTION,
            side_effects=SideEffects.WRITES,
            requires_confirmation=True,
        )
        return plan, commit


@pytest.fixture
def calendar():
    return Calendar()


async def confirmed(crib, name, **arguments):
    asked = await crib.call(name, arguments)
    assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
    return await crib.call(
        Call(name=name, arguments=arguments, confirmation=asked.error.details["confirmation"], caller=crib.caller)
    )


@pytest.mark.spec("S2-61", "S2-63")
async def test_a_plan_is_made_unasked_and_its_commit_waits_for_a_person(crib_of, calendar):
    crib = crib_of(*calendar.tools())
    assert (await crib.call("get_availability", start="10:00")).value is True
    asked = await crib.call("create_event", start="10:00", title="review")
    assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
    assert not asked.error.partial_side_effects
    assert calendar.events == {"9:00": "stand-up"}
    other = Call(
        name="create_event",
        arguments={"start": "10:00", "title": "something else"},
        confirmation=asked.error.details["confirmation"],
        caller=crib.caller,
    )
    assert (await crib.call(other)).error.kind is Kind.CONFIRMATION_REQUIRED
    assert calendar.events == {"9:00": "stand-up"}
    done = await confirmed(crib, "create_event", start="10:00", title="review")
    assert (done.ok, done.value) == (True, {"start": "10:00", "title": "review"})
    assert calendar.events == {"9:00": "stand-up", "10:00": "review"}


@pytest.mark.spec("S2-64")
async def test_what_changed_meanwhile_is_a_conflict_and_nothing_is_modified(crib_of, calendar):
    crib = crib_of(*calendar.tools())
    before = dict(calendar.events)
    result = await confirmed(crib, "create_event", start="9:00", title="review")
    assert result.to_json()["error"] == {
        "type": "CONFLICT",
        "message": "9:00 is taken by stand-up",
        "retryable": False,
        "partialSideEffects": False,
        "details": {},
    }
    assert calendar.events == before


@pytest.mark.spec("S2-65")
async def test_an_answer_by_the_second_best_way_says_so_and_is_a_success(crib_of):
    def primary(query):
        raise LookupError("NOT_AVAILABLE")

    @tool
    def search(query: str) -> dict:
        """Search, and fall back."""
        try:
            return primary(query)
        except LookupError:
            return {"results": [query], "degraded": True}

    result = await crib_of(search).call("search", query="x")
    assert result.ok
    assert result.value == {"results": ["x"], "degraded": True}


@pytest.mark.spec("S2-11", "S2-61")
@pytest.mark.parametrize("is_raised", [True, False])
@pytest.mark.parametrize(("idempotent", "attempts"), [(False, 1), (True, 3)])
async def test_an_action_that_may_have_had_an_effect_is_repeated_only_if_that_is_harmless(
    crib_of, is_raised, idempotent, attempts
):
    """Only what its author declared idempotent, or gave a policy, has more than one attempt at all."""
    tried = []

    @tool(idempotent=idempotent)
    def act():
        """Begin to act, and fail."""
        tried.append(1)
        error = ToolError(Kind.TRANSIENT, "lost", retryable=True, partial_side_effects=True)
        if is_raised:
            raise error
        return Outcome(error=error)

    crib = crib_of(act)

    async def no_wait(seconds):
        """Take no time."""

    crib._pipeline._sleep = no_wait
    result = await crib.call("act")
    assert result.error.kind is Kind.TRANSIENT
    assert result.error.partial_side_effects
    assert len(tried) == attempts
