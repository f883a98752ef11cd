"""Calls that wait for a person: stored exactly, decided once, run once, never decided by their caller."""

import asyncio
import itertools
import json
import threading

import pytest

from toolcrib import Call, Crib, Kind, ToolError, tool

ran = itertools.count()


@tool(confirm=True)
def pay(amount: int, currency: str = "EUR") -> str:
    """Pay."""
    next(ran)
    return f"{amount} {currency}"


def call(amount=5, *, caller="mcp:local", consent="person", name="pay", **more):
    return Call(name=name, arguments={"amount": amount}, caller=caller, consent=consent, **more)


@pytest.fixture
async def crib(tmp_path):
    async with Crib(tmp_path, tools=[pay]) as opened:
        yield opened


async def file(crib, **more) -> str:
    result = await crib.call(call(**more))
    assert result.error.kind is Kind.CONFIRMATION_REQUIRED
    return result.error.details["approval"]


async def test_a_call_that_needs_a_person_is_stored_with_exactly_what_would_run(crib):
    approval = crib.approvals.show(await file(crib))
    assert (approval.tool, approval.caller, approval.state) == (crib.find("pay").tool.address, "mcp:local", "pending")
    assert approval.arguments == {"amount": 5, "currency": "EUR"}
    assert approval.content_hash == crib.find("pay").tool.content_hash
    assert "pay needs confirmation" in approval.reason


async def test_a_caller_that_may_not_confirm_gets_no_token_and_cannot_use_one(crib):
    result = await crib.call(call())
    assert "confirmation" not in result.error.details
    token = (await crib.call(call(consent="token"))).error.details["confirmation"]
    refused = await crib.call(call(confirmation=token))
    assert refused.error.kind is Kind.CONFIRMATION_REQUIRED
    assert (await crib.call(call(confirmation=token, consent="token"))).ok


async def test_a_consent_that_is_written_as_a_word_means_the_same(crib):
    token = (await crib.call(call(consent="token"))).error.details["confirmation"]
    refused = await crib.call(call(consent="person", confirmation=token))
    assert "no other person has approved it" in refused.error.message
    assert "confirmation" not in refused.error.details
    with pytest.raises(ValueError, match="'anybody' is not a valid Consent"):
        call(consent="anybody")


async def test_a_caller_that_may_do_either_gets_both(crib):
    details = (await crib.call(call(consent="either"))).error.details
    assert (await crib.call(call(consent="either", confirmation=details["confirmation"]))).ok
    crib.approvals.approve(details["approval"], by="ann")
    assert (await crib.call(call(consent="either"))).ok


async def test_a_token_does_not_confirm_what_a_person_refused_meanwhile(crib):
    details = (await crib.call(call(consent="either"))).error.details
    crib.approvals.refuse(details["approval"], by="ann")
    refused = await crib.call(call(consent="either", confirmation=details["confirmation"]))
    assert (refused.error.kind, refused.error.details["approval"]) == (Kind.BLOCKED, details["approval"])


async def test_a_plain_call_stores_nothing(crib):
    assert "approval" not in (await crib.call(call(consent="token"))).error.details
    assert crib.approvals.list(None) == []


async def test_an_approved_call_runs_once_and_then_asks_again(crib):
    approval_id = await file(crib)
    before = next(ran)
    approved = crib.approvals.approve(approval_id, by="ann", note="seen")
    assert (approved.state, approved.decided_by, approved.note) == ("approved", "ann", "seen")
    assert (await crib.call(call())).value == "5 EUR"
    assert crib.approvals.show(approval_id).state == "used"
    again = await crib.call(call())
    assert again.error.kind is Kind.CONFIRMATION_REQUIRED
    assert again.error.details["approval"] != approval_id
    assert next(ran) == before + 2


@pytest.mark.parametrize("other", [{"amount": 6}, {"caller": "mcp:other"}])
async def test_an_approval_lets_no_other_call_run(crib, other):
    crib.approvals.approve(await file(crib), by="ann")
    assert (await crib.call(call(**other))).error.kind is Kind.CONFIRMATION_REQUIRED
    assert (await crib.call(call())).ok


async def test_an_approval_does_not_count_for_changed_code(tmp_path):
    async with Crib(tmp_path, tools=[pay]) as crib:
        crib.approvals.approve(await file(crib), by="ann")

    @tool(name="pay", confirm=True)
    def other_pay(amount: int, currency: str = "USD") -> str:
        """Pay otherwise."""
        return "other"

    async with Crib(tmp_path, tools=[other_pay]) as crib:
        refused = await crib.call(
            Call(name="pay", arguments={"amount": 5, "currency": "EUR"}, caller="mcp:local", consent="person")
        )
        assert refused.error.kind is Kind.CONFIRMATION_REQUIRED


async def test_the_same_call_asked_again_waits_under_the_same_id(crib):
    assert await file(crib) == await file(crib)
    assert len(crib.approvals.list()) == 1


async def test_a_refused_call_stays_refused_and_says_by_whom(crib):
    crib.approvals.refuse(await file(crib), by="ann", note="no")
    refused = await crib.call(call())
    assert refused.error.kind is Kind.BLOCKED
    assert "ann refused it" in refused.error.message


async def test_the_caller_itself_cannot_decide(crib):
    approval_id = await file(crib)
    with pytest.raises(ToolError, match="made the call and cannot decide") as raised:
        crib.approvals.approve(approval_id, by="mcp:local")
    assert raised.value.kind is Kind.AUTH
    assert crib.approvals.show(approval_id).state == "pending"


async def test_of_two_decisions_the_first_counts(crib):
    approval_id = await file(crib)
    crib.approvals.refuse(approval_id, by="ann")
    with pytest.raises(ToolError, match="refused already") as raised:
        crib.approvals.approve(approval_id, by="bob")
    assert raised.value.kind is Kind.CONFLICT


async def test_of_many_decisions_at_once_one_wins(crib):
    approval_id = await file(crib)
    outcomes, conflicts = [], []

    def decide(number):
        decision = crib.approvals.approve if number % 2 else crib.approvals.refuse
        try:
            outcomes.append(decision(approval_id, by=f"person {number}"))
        except ToolError as problem:
            conflicts.append(problem.kind)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 1
    assert conflicts == [Kind.CONFLICT] * 7
    assert crib.approvals.show(approval_id).decided_by == outcomes[0].decided_by


async def test_of_many_calls_at_once_one_uses_the_approval(crib):
    crib.approvals.approve(await file(crib), by="ann")
    results = await crib.call_all([call() for _ in range(8)])
    assert [result.ok for result in results].count(True) == 1


async def test_another_process_sees_the_decision(tmp_path):
    async with Crib(tmp_path, tools=[pay]) as one, Crib(tmp_path, tools=[pay]) as other:
        approval_id = await file(one)
        other.approvals.approve(approval_id, by="ann")
        assert (await one.call(call())).ok


async def test_waiting_ends_with_the_decision_or_the_time(crib):
    approval_id = await file(crib)
    assert (await crib.approvals.wait(approval_id, 0.01)).state == "pending"
    waiting = asyncio.create_task(crib.approvals.wait(approval_id, 30))
    crib.approvals.approve(approval_id, by="ann")
    assert (await asyncio.wait_for(waiting, 30)).state == "approved"


async def test_watching_tells_what_waits_and_each_change(crib):
    approval_id = await file(crib)
    events = crib.approvals.watch()
    assert (await asyncio.wait_for(anext(events), 30)).state == "pending"
    crib.approvals.approve(approval_id, by="ann")
    assert (await asyncio.wait_for(anext(events), 30)).state == "approved"
    await crib.call(call())
    assert (await asyncio.wait_for(anext(events), 30)).state == "used"
    await events.aclose()


async def test_an_approval_expires_and_then_lets_nothing_run(crib):
    now = [1_800_000_000.0]
    crib.approvals._clock = lambda: now[0]
    approval_id = await file(crib)
    crib.approvals.approve(approval_id, by="ann")
    now[0] += 3_601
    assert crib.approvals.show(approval_id).state == "expired"
    assert (await crib.call(call())).error.kind is Kind.CONFIRMATION_REQUIRED


async def test_a_day_after_it_expired_an_approval_is_removed(crib):
    now = [1_800_000_000.0]
    crib.approvals._clock = lambda: now[0]
    crib.approvals.approve(await file(crib), by="ann")
    now[0] += 3_600 + 86_400 + 61
    await file(crib, amount=7)
    assert [approval.arguments["amount"] for approval in crib.approvals.list(None)] == [7]


async def test_one_caller_can_fill_a_tenth_of_the_places_and_the_refusal_says_so(tmp_path):
    async with Crib(tmp_path, tools=[pay], approvals={"pending": 20}) as crib:
        for amount in range(2):
            await file(crib, amount=amount)
        refused = await crib.call(call(amount=3))
        assert refused.error.kind is Kind.CONFIRMATION_REQUIRED
        assert "2 calls of this caller wait for approval already" in refused.error.message
        assert "approval" not in refused.error.details
        await file(crib, amount=3, caller="mcp:other")


async def test_arguments_that_no_person_could_check_are_not_stored(crib):
    @tool(confirm=True)
    def note(text: str) -> str:
        """Note."""
        return text

    crib.add(note)
    refused = await crib.call(Call(name="note", arguments={"text": "x" * 300_000}, caller="m", consent="person"))
    assert "no person could check them" in refused.error.message
    assert crib.approvals.list() == []


async def test_a_stored_secret_is_not_shown(crib, tmp_path):
    @tool(confirm=True)
    def send(text: str, api_key: str = "") -> str:
        """Send."""
        return text

    crib.add(send)
    crib.secrets.set("KEY", "hunter2-hunter2")
    crib.secrets.get("KEY")
    arguments = {"text": "it is hunter2-hunter2", "api_key": "xyzzy"}
    await crib.call(Call(name="send", arguments=arguments, caller="m", consent="person"))
    stored = b"".join(
        path.read_bytes() for path in (tmp_path / ".toolcrib").rglob("*.json") if "approvals" in str(path)
    )
    assert b"hunter2" not in stored
    assert b"xyzzy" not in stored


@pytest.mark.parametrize("approval_id", ["", "x", "../../x", "0" * 32, "0" * 33, "A" * 32, "\0"])
async def test_an_unknown_id_is_refused(crib, approval_id):
    with pytest.raises(ToolError) as raised:
        crib.approvals.approve(approval_id, by="ann")
    assert raised.value.kind is Kind.NOT_FOUND


async def test_a_document_that_we_did_not_write_approves_nothing(crib):
    approval_id = await file(crib)
    store = crib._resources.data.store
    store.create(f"approvals/decisions/{approval_id}.json", b"no JSON")
    assert crib.approvals.list(None) == []
    assert (await crib.call(call())).error.kind is Kind.CONFIRMATION_REQUIRED


FORGED = {"approved": True, "by": "ann", "at": 1.0, "note": ""}


@pytest.mark.parametrize(
    "document", [FORGED, {**FORGED, "seal": "0" * 64}, {**FORGED, "seal": 5}, {"seal": "é"}, [], {}, 5], ids=repr
)
async def test_a_decision_that_was_not_signed_here_is_none(crib, document):
    approval_id = await file(crib)
    crib._resources.data.store.create(f"approvals/decisions/{approval_id}.json", json.dumps(document).encode())
    assert crib.approvals.show(approval_id).state == "refused"
    refused = await crib.call(call())
    assert refused.error.kind is Kind.BLOCKED
    with pytest.raises(ToolError, match="is refused already"):
        crib.approvals.approve(approval_id, by="ann")


async def test_a_decision_about_one_call_does_not_hold_for_another(crib):
    first, second = await file(crib), await file(crib, amount=6)
    crib.approvals.approve(first, by="ann")
    store = crib._resources.data.store
    store.create(f"approvals/decisions/{second}.json", store.get(f"approvals/decisions/{first}.json"))
    assert crib.approvals.show(second).state == "refused"


async def test_a_question_that_was_altered_is_not_shown(crib):
    approval_id = await file(crib)
    store, key = crib._resources.data.store, f"approvals/questions/{approval_id}.json"
    question = json.loads(store.get(key))
    store.replace(key, json.dumps({**question, "arguments": {"amount": 1}}).encode())
    assert crib.approvals.list(None) == []
    with pytest.raises(ToolError, match="there is no approval"):
        crib.approvals.approve(approval_id, by="ann")


async def test_two_tokens_of_one_holder_do_not_decide_about_each_other(crib):
    caller, _ = crib.tokens.create("Ann", ("invoke",))
    same, _ = crib.tokens.create("ann", ("approve",))
    other, _ = crib.tokens.create("Bob", ("approve",))
    approval_id = await file(crib, caller=caller.id)
    crib.tokens.revoke(caller.id)
    for decide in (crib.approvals.approve, crib.approvals.refuse):
        with pytest.raises(ToolError, match="both have one holder"):
            decide(approval_id, by=same.id)
    assert crib.approvals.approve(approval_id, by=other.id).decided_by == other.id


async def test_explain_says_what_is_missing_and_uses_nothing_up(crib):
    approval_id = await file(crib)
    found = {finding.gate: finding.verdict for finding in crib.explain(call()).findings}
    assert "no other person has approved it" in found["confirmation"].reason
    crib.approvals.approve(approval_id, by="ann")
    assert crib.explain(call()).allowed
    assert (await crib.call(call())).ok


async def test_a_tool_that_calls_another_has_that_call_approved(crib):
    from toolcrib import Context

    @tool(name="shop")
    async def buy(amount: int, context: Context) -> str:
        """Buy something, which pays."""
        result = await context.call("pay", amount=amount)
        return str(result.value if result.ok else result.error.kind)

    crib.add(buy)
    assert (await crib.call(call(name="shop"))).value == "CONFIRMATION_REQUIRED"
    (waiting,) = crib.approvals.list()
    assert waiting.tool == crib.find("pay").tool.address
    crib.approvals.approve(waiting.id, by="ann")
    assert (await crib.call(call(name="shop"))).value == "5 EUR"


@pytest.mark.parametrize(
    "command",
    [
        "true # -----BEGIN\npublish everything",
        "deploy token=x;publish${IFS}everything",
        "see https://a;publish$IFS-all@host",
        ["go", "--token", "x; publish everything"],
        {"token": "; publish everything"},
    ],
)
async def test_a_caller_cannot_hide_from_the_person_what_would_run(crib, command):
    @tool(confirm=True)
    def execute(command: object) -> str:
        """Run it."""
        return "done"

    crib.add(execute)
    asked = Call(name="execute", arguments={"command": command}, caller="mcp:local", consent="person")
    approval_id = (await crib.call(asked)).error.details["approval"]
    assert crib.approvals.show(approval_id).arguments == {"command": command}


async def test_what_can_only_be_a_secret_is_not_shown_to_the_person(crib):
    @tool(confirm=True)
    def sign_in(password: str, options: dict) -> str:
        """Sign in."""
        return "done"

    crib.add(sign_in)
    options = {"api_key": "k-1234", "url": "https://ann:secret@host/path?token=abc&page=2", "note": "as always"}
    given = {"password": "correct horse; battery", "options": options}
    asked = Call(name="sign_in", arguments=given, caller="mcp:local", consent="person")
    approval_id = (await crib.call(asked)).error.details["approval"]
    assert crib.approvals.show(approval_id).arguments == {
        "password": "(hidden)",
        "options": {
            "api_key": "(hidden)",
            "url": "https://(hidden)@host/path?token=(hidden)&page=2",
            "note": "as always",
        },
    }
