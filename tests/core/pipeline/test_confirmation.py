"""A confirmation lets exactly one call run once."""

import sqlite3
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Call, Crib, Kind, Session, ToolError, tool, tool_of
from toolcrib.core.confirmations import Confirmations, bound_to
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.usage_ledger import UsageLedger


@tool(confirm=True)
def pay(amount: int, currency: str = "EUR") -> str:
    """Pay."""
    return f"{amount} {currency}"


@tool(confirm=True)
def wipe(amount: int = 0, currency: str = "EUR") -> str:
    """Wipe."""
    return "wiped"


async def ask(crib, name="pay", caller="ann", **arguments):
    return await crib.call(Call(name=name, arguments=arguments, caller=caller))


async def answer(crib, token, name="pay", caller="ann", **arguments):
    return await crib.call(Call(name=name, arguments=arguments, caller=caller, confirmation=token))


@pytest.mark.spec("S2-12", "S2-61")
async def test_the_first_call_asks_and_the_confirmed_one_runs(crib_of):
    crib = crib_of(pay, wipe)
    asked = await ask(crib, amount=5)
    assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
    assert asked.error.details["expiresAt"] > time.time()
    token = asked.error.details["confirmation"]
    assert (await answer(crib, token, amount=5)).value == "5 EUR"


@pytest.mark.spec("S2-12")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"amount": 6}, "other arguments"),
        ({"amount": 5, "currency": "USD"}, "other arguments"),
        ({"amount": 5, "caller": "bob"}, "another caller"),
        ({"amount": 5, "name": "wipe"}, "another tool"),
    ],
)
async def test_a_confirmation_is_valid_for_nothing_else(crib_of, change, reason):
    crib = crib_of(pay, wipe)
    token = (await ask(crib, amount=5)).error.details["confirmation"]
    refused = await answer(crib, token, **change)
    assert refused.error.kind is Kind.CONFIRMATION_REQUIRED
    assert reason in refused.error.message
    assert (await answer(crib, token, amount=5)).ok


async def test_arguments_that_mean_the_same_are_the_same(crib_of):
    crib = crib_of(pay)
    token = (await ask(crib, amount=5)).error.details["confirmation"]
    assert (await answer(crib, token, currency="EUR", amount=5)).ok


@pytest.mark.spec("S2-12")
async def test_a_confirmation_works_once(crib_of):
    crib = crib_of(pay)
    token = (await ask(crib, amount=5)).error.details["confirmation"]
    assert (await answer(crib, token, amount=5)).ok
    again = await answer(crib, token, amount=5)
    assert again.error.kind is Kind.CONFIRMATION_REQUIRED
    assert "used before" in again.error.message


async def test_of_many_calls_at_once_one_uses_the_confirmation(crib_of):
    import asyncio

    @tool(confirm=True)
    async def slow(n: int) -> int:
        """Be slow."""
        await asyncio.sleep(0)
        return n

    crib = crib_of(slow)
    token = (await ask(crib, "slow", n=1)).error.details["confirmation"]
    results = await asyncio.gather(*(answer(crib, token, "slow", n=1) for _ in range(20)))
    assert [result.ok for result in results].count(True) == 1


async def test_a_call_that_another_gate_refuses_leaves_the_confirmation_unused(crib_of):
    @tool(confirm=True, calls_per_minute=1)
    def rare(n: int) -> int:
        """Be rare."""
        return n

    crib, moment = crib_of(rare), [100.0]
    crib._resources.lend(usage_ledger=UsageLedger(None, clock=lambda: moment[0]))
    token = (await ask(crib, "rare", n=1)).error.details["confirmation"]
    other = (await ask(crib, "rare", n=2)).error.details["confirmation"]
    assert (await answer(crib, other, "rare", n=2)).ok
    assert (await answer(crib, token, "rare", n=1)).error.kind is Kind.RATE_LIMIT
    moment[0] += 60
    assert (await answer(crib, token, "rare", n=1)).ok


async def test_a_confirmation_expires(crib_of):
    crib = crib_of(pay, calls={"confirmation_seconds": 1})
    confirmations = crib._resources.get("confirmations")
    token = (await ask(crib, amount=5)).error.details["confirmation"]
    confirmations._clock = lambda: time.time() + 2.5
    assert "has expired" in (await answer(crib, token, amount=5)).error.message


async def test_a_tool_that_changed_must_be_confirmed_again(crib_of, project):
    file = project / "tools" / "touch.py"
    file.write_text('def touch(n: int) -> int:\n    """Touch."""\n    return n\n')
    crib = crib_of(pay, project=project, rules=[Asks()])
    token = (await ask(crib, "touch", n=1)).error.details["confirmation"]
    file.write_text('def touch(n: int) -> int:\n    """Touch."""\n    return -n\n')
    changed = await answer(crib, token, "touch", n=1)
    assert changed.error.kind is Kind.CONFIRMATION_REQUIRED
    assert (await answer(crib, changed.error.details["confirmation"], "touch", n=1)).value == -1


class Asks:
    """A rule that wants everything confirmed."""

    name = "asks"

    def concerns(self, tool):
        return True

    def __call__(self, tool, call):
        from toolcrib import confirm

        return confirm("everything is confirmed here", rule=self.name, where="here")


async def test_a_rule_can_ask_for_a_confirmation_too(crib_of):
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    crib = crib_of(add, rules=[Asks()])
    asked = await ask(crib, "add", a=1, b=2)
    assert asked.error.details["rule"] == "asks"
    assert asked.error.details["where"] == "here"
    assert (await answer(crib, asked.error.details["confirmation"], "add", a=1, b=2)).value == 3


def test_a_confirmation_holds_across_processes_of_one_project_and_is_used_up_for_all(project):
    with Crib(project, tools=[pay]) as one, Crib(project, tools=[pay]) as two:
        asked = one.call_sync(Call(name="pay", arguments={"amount": 5}))
        confirmed = Call(name="pay", arguments={"amount": 5}, confirmation=asked.error.details["confirmation"])
        assert two.call_sync(confirmed).ok
        assert "used before" in one.call_sync(confirmed).error.message
    with Crib(project, tools=[pay]) as later:
        assert "used before" in later.call_sync(confirmed).error.message
    assert (project / ".toolcrib" / "key").stat().st_mode & 0o777 == 0o600


def test_cribs_of_different_projects_do_not_believe_each_other(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Crib(tmp_path / "a", tools=[pay]) as one, Crib(tmp_path / "b", tools=[pay]) as two:
        asked = one.call_sync(Call(name="pay", arguments={"amount": 5}))
        confirmed = Call(name="pay", arguments={"amount": 5}, confirmation=asked.error.details["confirmation"])
        assert two.call_sync(confirmed).error.kind is Kind.CONFIRMATION_REQUIRED


LEDGER = UsageLedger(None)
# It is issued when the module is loaded, and has to hold until the last test of a long run.
CONFIRMATIONS = Confirmations(lambda: b"k" * 32, lambda: LEDGER, seconds=86_400)
PAY = tool_of(pay)
CALL = Call(name="pay", arguments={"amount": 5})
TOKEN, _ = CONFIRMATIONS.issue(PAY, CALL.arguments, CALL)


@given(st.text(max_size=100) | st.binary(max_size=60).map(lambda raw: raw.hex()))
def test_no_other_text_is_a_confirmation(text):
    assert CONFIRMATIONS.problem_with(text, PAY, CALL.arguments, CALL)
    assert not CONFIRMATIONS.use(text)


@given(
    st.integers(0, len(TOKEN) - 1),
    st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ "),
)
def test_no_letter_of_a_confirmation_can_be_changed(place, letter):
    altered = TOKEN[:place] + letter + TOKEN[place + 1 :]
    problem = CONFIRMATIONS.problem_with(altered, PAY, CALL.arguments, CALL)
    assert (problem == "") is (altered == TOKEN)


def test_a_confirmation_has_one_spelling():
    for spelling in (
        TOKEN + "=",
        TOKEN + "==",
        " " + TOKEN,
        TOKEN + "\n",
        TOKEN.replace("-", "+").replace("_", "/") + "=",
    ):
        assert CONFIRMATIONS.problem_with(spelling, PAY, CALL.arguments, CALL)


def test_used_confirmations_are_forgotten_when_they_would_have_expired(tmp_path):
    now, since_boot = [1000.0], [500.0]
    ledger = UsageLedger(tmp_path / "limits.sqlite3", clock=lambda: since_boot[0])
    confirmations = Confirmations(lambda: b"k" * 32, lambda: ledger, seconds=10, clock=lambda: now[0])

    def count():
        with closing(sqlite3.connect(tmp_path / "limits.sqlite3")) as connection:
            return connection.execute("SELECT count(*) FROM once").fetchone()[0]

    for _ in range(3):
        assert confirmations.use(confirmations.issue(PAY, {}, CALL)[0])
    assert count() == 3
    now[0] += 100
    since_boot[0] += 100
    assert confirmations.use(confirmations.issue(PAY, {}, CALL)[0])
    assert count() == 1
    ledger.close()


@pytest.mark.parametrize(("forward", "back"), [(100, 100), (0, 100)])
def test_no_clock_that_is_set_brings_a_used_confirmation_to_life(forward, back):
    now, since_boot = [1000.0], [500.0]
    ledger = UsageLedger(None, clock=lambda: since_boot[0])
    confirmations = Confirmations(lambda: b"k" * 32, lambda: ledger, seconds=10, clock=lambda: now[0])
    token = confirmations.issue(PAY, CALL.arguments, CALL)[0]
    assert confirmations.use(token)
    now[0] += forward
    since_boot[0] += 1 if forward else 20
    # What is used meanwhile sweeps what has expired by the clock of that moment.
    assert confirmations.use(confirmations.issue(PAY, {}, CALL)[0])
    now[0] -= back
    since_boot[0] += 1
    assert confirmations.use(confirmations.issue(PAY, {}, CALL)[0])
    assert "used before" in confirmations.problem_with(token, PAY, CALL.arguments, CALL)
    assert not confirmations.use(token)


async def test_a_store_of_the_host_program_remembers_used_confirmations_for_every_machine(tmp_path):
    store = MemoryStore()
    (tmp_path / "toolcrib.toml").write_text("")
    async with Crib(tmp_path, tools=[pay], store=store) as one:
        token = (await ask(one, amount=5)).error.details["confirmation"]
        assert (await answer(one, token, amount=5)).ok
        assert "used before" in (await answer(one, token, amount=5)).error.message
    assert len(store.keys("confirmations/")) == 1


async def test_a_confirmation_that_cannot_be_remembered_confirms_nothing_and_uses_nothing_up(tmp_path):
    calls = []

    @tool(confirm=True, calls_per_minute=1)
    def send() -> None:
        """Send."""
        calls.append(1)

    (tmp_path / "toolcrib.toml").write_text("")
    async with Crib(tmp_path, tools=[send]) as crib:
        token = (await ask(crib, "send")).error.details["confirmation"]
        full = FullLedger(None)
        crib._resources.get("confirmations")._used = lambda: full
        session = Session(id="s", max_calls=5)
        call = Call(name="send", caller="ann", confirmation=token, session=session)
        refused = await crib.call(call)
        assert (refused.error.kind, calls, session.calls) == (Kind.PERMANENT, [], 0)
        full.is_full = False
        assert (await crib.call(call)).ok
    assert calls == [1]


class FullLedger(UsageLedger):
    is_full = True

    def use_once(self, name, expiry, now):
        if self.is_full:
            raise ToolError(Kind.PERMANENT, "the disk is full")
        return super().use_once(name, expiry, now)


def test_the_parts_that_a_token_is_bound_to_cannot_flow_into_each_other():
    one = SimpleNamespace(address="tools/ab", content_hash="c")
    two = SimpleNamespace(address="tools/a", content_hash="bc")
    assert bound_to(one, {}, CALL) != bound_to(two, {}, CALL)


def test_a_confirmation_is_for_one_tool_of_several_that_read_alike():
    from dataclasses import replace

    other = replace(PAY, bundle="other")
    assert other.content_hash == PAY.content_hash
    token, _ = CONFIRMATIONS.issue(PAY, CALL.arguments, CALL)
    assert CONFIRMATIONS.problem_with(token, PAY, CALL.arguments, CALL) == ""
    assert CONFIRMATIONS.problem_with(token, other, CALL.arguments, CALL) != ""
    newer = replace(PAY, description="Pay at once.")
    assert CONFIRMATIONS.problem_with(token, newer, CALL.arguments, CALL) != ""
