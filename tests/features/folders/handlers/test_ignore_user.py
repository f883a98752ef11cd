"""The complete example of the authoring guide, built and called through a Crib."""

import shutil
import time
from pathlib import Path

import pytest

from toolcrib import Call, Crib, Kind
from toolcrib.build import build

FIXTURES = Path(__file__).parents[3] / "seeds" / "fixtures" / "tool_folders" / "tools"
FAREWELL = "I don't tolerate disrespect. This conversation is over."
ARGUMENTS = {"duration_seconds": 60, "farewell_message": FAREWELL}


@pytest.fixture
async def crib(tmp_path, sandbox):
    shutil.copytree(FIXTURES / "ignore-user", tmp_path / "tools" / "ignore-user")
    assert build(tmp_path / "tools").ok
    async with Crib(tmp_path) as crib:
        crib._resources.lend(sandbox=sandbox)  # it has tried the walls of this machine
        yield crib


@pytest.fixture
def call(crib):
    async def call(session, **arguments):
        return await crib.call(
            Call(name="ignore_user", arguments={**ARGUMENTS, **arguments}, caller="ann", session=session)
        )

    return call


def audits(crib):
    return [line for line in crib.journal.read() if line["event"] == "user_timeout"]


@pytest.mark.spec("S2-44", "S2-45")
async def test_in_an_active_session_the_client_hears_it_and_the_host_is_asked_to_end_the_voice(crib, call):
    heard = []

    async def send(message):
        heard.append(message)

    before = time.time()
    result = await call(crib.session(mode="voice", send=send))
    assert result.error is None
    until = result.value["timeoutUntil"]
    assert result.value == {"timeoutUntil": until, "duration": 60}
    assert before - 1 <= until / 1000 - 60 <= time.time() + 1
    assert heard == [
        {"type": "timeout", "durationSeconds": 60, "timeoutUntil": until, "farewellMessage": FAREWELL},
    ]
    assert [intent.to_json() for intent in result.intents] == [
        {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
        {"type": "SUPPRESS_AUDIO", "value": True},
    ]
    (entry,) = audits(crib)
    assert entry["data"] == {"duration": 60, "timeoutUntil": until}


@pytest.mark.spec("S2-46", "S2-48")
async def test_in_a_session_that_is_over_nothing_happens(crib, call):
    heard = []

    async def send(message):
        heard.append(message)

    session = crib.session(send=send)
    session.close()
    result = await call(session)
    assert result.error.to_json() == {
        "type": "SESSION_INACTIVE",
        "message": "Cannot timeout user - session already ended",
        "retryable": False,
        "partialSideEffects": False,
        "details": {},
    }
    assert (heard, audits(crib)) == ([], [])


@pytest.mark.spec("S2-41", "S2-47")
async def test_a_message_that_fails_is_worth_another_try(crib, call):
    async def send(message):
        raise ConnectionResetError

    result = await call(crib.session(send=send))
    assert result.error.to_json() == {
        "type": "TRANSIENT",
        "message": "Failed to send timeout command",
        "retryable": True,
        "partialSideEffects": False,
        "details": {},
    }
    assert audits(crib) == []


@pytest.mark.spec("S2-48")
@pytest.mark.parametrize("seconds", [29, 86_401, "60"])
async def test_an_invalid_duration_is_refused_before_the_handler_runs(crib, call, seconds):
    result = await call(crib.session(), duration_seconds=seconds)
    assert result.error.kind is Kind.VALIDATION
    assert "sandbox" not in result.meta, "a process ran"
