"""What a handler is told, and what becomes of what it asks for."""

import asyncio
import json
import logging
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Context, Session, Tool
from toolcrib.features.folders.handler_messages import (
    MAX_AUDIT_BYTES,
    MAX_AUDIT_ENTRIES,
    MAX_COMPLAINTS,
    HandlerService,
)
from toolcrib.model.tool import Handler

PATIENCE = 10


@pytest.fixture
def tool():
    run = Handler(root=Path("tools"), folder="ignore-user", language="python", files={}, registry="1.0.0badcafe")
    facts = {"description": "d", "parameters": {"type": "object"}, "version": "2.1.0", "idempotent": True}
    return Tool(name="ignore_user", run=run, **facts)


@pytest.fixture
def service(tool):
    """A service, and as `entries` what was written into the journal there."""

    def make(session=None, mode="text", audit=None):
        entries = []
        context = Context(
            tool=tool,
            call_id="call-1",
            caller="ann",
            mode=mode,
            deadline=time.monotonic() + PATIENCE,
            seconds=PATIENCE,
            session=session,
            call=None,
            audit=audit or (lambda event, data=None: entries.append((event, data))),
        )
        made = HandlerService(tool, context)
        made.entries = entries
        return made

    return make


def ask(message, number=1):
    return {"ask": number, "do": "send", "message": message}


async def answer(service, message):
    async with asyncio.timeout(PATIENCE):
        return await service.answer(message)


# --- what it is told ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-32", "S2-33", "S2-34")
async def test_a_handler_is_told_who_calls_which_tool_it_is_and_how_the_session_stands(service):
    session = Session(id="s", state={"offences": {"count": 2}}, tools_version="1.0.12345678")
    assert service(session).facts() == {
        "clientId": "ann",
        "tool": {"id": "ignore_user", "version": "2.1.0", "idempotent": True},
        "session": {"isActive": True, "toolsVersion": "1.0.12345678", "state": {"offences": {"count": 2}}},
        "voice": False,
        "streams": False,
        "joinsText": False,
    }


@pytest.mark.spec("S2-34")
async def test_without_a_session_none_is_active_and_the_registry_is_the_one_of_the_tool(service):
    assert service().facts()["session"] == {"isActive": False, "toolsVersion": "1.0.0badcafe", "state": {}}
    assert service(Session(id="s")).facts()["session"]["toolsVersion"] == "1.0.0badcafe"
    over = Session(id="s")
    over.close()
    assert service(over).facts()["session"]["isActive"] is False


async def test_voice_is_the_mode_of_the_call(service):
    assert service(mode="voice").facts()["voice"] is True
    assert service(Session(id="s", mode="voice"), mode="text").facts()["voice"] is False


@pytest.mark.spec("S2-34")
async def test_what_a_handler_does_to_the_state_it_was_told_stays_there(service):
    session = Session(id="s", state={"list": [1], "deep": {"er": {}}})
    told = service(session).facts()["session"]["state"]
    told["list"].append(2)
    told["deep"]["er"]["x"] = told["new"] = 1
    assert dict(session.state) == {"list": [1], "deep": {"er": {}}}


async def test_what_the_host_keeps_in_the_state_that_is_no_json_is_left_out(service, caplog):
    loop = []
    loop.append(loop)
    state = {"plain": 1, "day": date(2025, 1, 2), "nan": float("nan"), "loop": loop, "nested": Session(id="x").state}
    facts = service(Session(id="s", state=state)).facts()
    assert facts["session"]["state"] == {"plain": 1, "nested": {}}
    json.dumps(facts, allow_nan=False)
    assert [record.args[1] for record in caplog.records] == ["day", "nan", "loop"]


# --- messages -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-35")
async def test_a_message_reaches_the_client_as_it_was_written(service):
    heard = []

    async def send(message):
        heard.append(message)

    message = {"type": "timeout", "durationSeconds": 60, "text": "Köln", "nothing": None}
    at = service(Session(id="s", send=send))
    assert await answer(at, ask(message, 7)) == {"ask": 7, "ok": True}
    assert await answer(at, ask(None, 8)) == {"ask": 8, "ok": True}
    assert heard == [message, None]


@pytest.mark.spec("S2-35")
async def test_without_a_session_or_a_connection_a_message_is_refused(service):
    nobody = await answer(service(), ask("x", 3))
    assert nobody == {
        "ask": 3,
        "ok": False,
        "error": "there is no session, so no client gets the message; nothing was sent",
    }
    unconnected = await answer(service(Session(id="s")), ask("x", 4))
    assert (unconnected["ask"], unconnected["ok"]) == (4, False)
    assert "connection" in unconnected["error"]


@pytest.mark.spec("S2-35")
async def test_closing_the_connection_refuses_the_message_that_is_under_way(service):
    begun = asyncio.Event()

    async def hang(message):
        begun.set()
        await asyncio.Event().wait()

    session = Session(id="s", send=hang)
    waiting = asyncio.ensure_future(answer(service(session), ask("x")))
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        session.disconnect()
        refused = await waiting
    assert (refused["ask"], refused["ok"]) == (1, False)
    assert "connection" in refused["error"]


async def test_a_client_that_fails_is_told_by_the_name_of_its_failure_alone(service, caplog):
    async def fail(message):
        raise OSError("token 12345 was refused")

    refused = await answer(service(Session(id="s", send=fail)), ask("x"))
    assert refused == {"ask": 1, "ok": False, "error": "it failed (OSError) and may have been done in part"}
    assert "token 12345" in caplog.text


async def test_a_client_that_gives_up_by_itself_refuses_one_message_and_ends_nothing(service):
    async def give_up(message):
        raise asyncio.CancelledError

    refused = await answer(service(Session(id="s", send=give_up)), ask("x"))
    assert refused["error"] == "the client's connection gave up; the message may not have arrived"


async def test_the_end_of_the_call_ends_the_message_with_it(service):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(message):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(service(Session(id="s", send=hang)).answer(ask("x")))
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await ended.wait()


async def test_messages_keep_their_order_however_long_each_takes(service):
    heard = []

    async def send(message):
        for _ in range(10 - message):
            await asyncio.sleep(0)
        heard.append(message)

    at = service(Session(id="s", send=send))
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(at.answer(ask(number, number)) for number in range(10)))
    assert heard == list(range(10))


# --- audit --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-37")
async def test_an_audit_entry_is_written_and_gets_no_answer(service):
    at = service()
    assert await answer(at, {"do": "audit", "event": "user_timeout", "data": {"duration": 60}}) is None
    assert await answer(at, {"do": "audit", "event": "bare"}) is None
    assert at.entries == [("user_timeout", {"duration": 60}), ("bare", {})]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"event": 5}, "the event of an audit entry is a text of 1 to 200 letters"),
        ({"event": ""}, "the event of an audit entry is a text of 1 to 200 letters"),
        ({"event": "x" * 201}, "the event of an audit entry is a text of 1 to 200 letters"),
        ({}, "the event of an audit entry is a text of 1 to 200 letters"),
        ({"event": "e", "data": [1]}, "the data of the audit entry 'e' is not an object"),
        ({"event": "e", "data": None}, "the data of the audit entry 'e' is not an object"),
        ({"event": "e", "data": {"x": "y" * MAX_AUDIT_BYTES}}, "is longer than 100000 bytes"),
    ],
)
async def test_an_entry_that_is_none_is_refused_in_words(service, caplog, entry, reason):
    at = service()
    assert await answer(at, {"do": "audit", **entry}) is None
    assert at.entries == []
    assert reason in caplog.text


async def test_a_handler_cannot_fill_the_journal(service, caplog):
    at = service()
    for _ in range(MAX_AUDIT_ENTRIES + 5):
        await at.answer({"do": "audit", "event": "again", "data": {}})
    assert len(at.entries) == MAX_AUDIT_ENTRIES
    assert "at most 1000 audit entries" in caplog.text


async def test_a_journal_that_fails_does_not_end_the_handler(service, caplog):
    def full(event, data=None):
        raise OSError(28, "No space left on device")

    assert await answer(service(audit=full), {"do": "audit", "event": "e", "data": {}}) is None
    assert "what its handler asked for failed" in caplog.text


# --- anything else ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [None, "call", "SEND", 5, ["send"], {"do": "send"}, "x" * 10_000])
async def test_what_a_handler_cannot_ask_for_is_refused_in_words(service, wanted):
    refused = await answer(service(), {"ask": 2, "do": wanted})
    assert (refused["ask"], refused["ok"]) == (2, False)
    assert 'is nothing that a handler can ask for; write {"ask": 1, "do": "send", "message": …}' in refused["error"]
    assert len(refused["error"]) < 300


async def test_a_message_without_a_message_is_refused(service):
    heard = []
    refused = await answer(service(Session(id="s", send=heard.append)), {"ask": 1, "do": "send"})
    assert refused["error"].startswith("there is no message to send")
    assert heard == []


@pytest.mark.parametrize("number", [None, True, 1.5, "1", [1], {}, -1, 10**400])
async def test_what_is_no_number_gets_no_answer(service, number):
    assert await answer(service(), {"ask": number, "do": "send", "message": 1}) is None


@pytest.mark.parametrize("message", [{"do": "nonsense"}, ask("x")])
async def test_a_handler_cannot_fill_the_log(service, caplog, message):
    async def fail(message):
        raise OSError

    at = service(Session(id="s", send=fail))
    with caplog.at_level(logging.WARNING):
        for _ in range(10 * MAX_COMPLAINTS):
            await at.answer(message)
    assert len(caplog.records) == MAX_COMPLAINTS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "ask": JSON,
        "do": JSON | st.sampled_from(["send", "audit"]),
        "message": JSON,
        "event": JSON,
        "data": JSON,
    },
)


@given(MESSAGES)
def test_no_message_is_raised_out_of_the_desk_and_every_answer_fits_on_a_line(message):
    async def take():
        async def send(heard):
            """Everything arrives."""

        run = Handler(root=Path("tools"), folder="x", language="python", files={})
        tool = Tool(name="x", description="d", parameters={"type": "object"}, run=run)
        context = Context(
            tool=tool,
            call_id="1",
            caller="ann",
            mode="text",
            deadline=0.0,
            seconds=0.0,
            session=Session(id="s", send=send),
            call=None,
            audit=lambda event, data=None: None,
        )
        return await HandlerService(tool, context).answer(message)

    said = asyncio.run(take())
    assert said is None or (said["ask"] == message["ask"] and len(json.dumps(said)) < 1000)
