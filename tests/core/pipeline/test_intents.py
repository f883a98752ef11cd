"""Intents: delivered in order and applied to the session by the pipeline, only when the call succeeded."""

import pytest

from toolcrib import Call, Context, Intent, Kind, Session, ToolError, tool
from toolcrib.model.result import Outcome

END = Intent(type="END_VOICE_SESSION", fields={"after": "farewell_spoken"})
QUIET = Intent(type="SUPPRESS_AUDIO", fields={"value": True})
ALL_FOUR = (
    END,
    QUIET,
    Intent(type="SUPPRESS_TRANSCRIPT", fields={"value": False}),
    Intent(type="SET_PENDING_MESSAGE", fields={"message": {"text": "bye"}}),
)


def asking(*intents, error=None, value=1):
    @tool
    def asks():
        """Ask the host for something."""
        return Outcome(value=value, intents=intents, error=error)

    return asks


class Host:
    """Hears intents, and sees the state in that moment."""

    def __init__(self, **facts):
        self.heard = []
        self.seen = []
        self.session = Session(id="s", mode="voice", on_intent=self.hear, **facts)

    def hear(self, intent):
        self.heard.append(intent)
        self.seen.append(dict(self.session.state))


def call(host):
    return Call(name="asks", session=host.session)


@pytest.mark.spec("S2-39")
async def test_intents_are_delivered_in_order_and_applied_to_the_state_of_the_session(crib_of):
    host = Host(state={"lang": "no"})
    result = await crib_of(asking(*ALL_FOUR)).call(call(host))
    assert result.ok
    assert result.intents == ALL_FOUR
    assert host.heard == list(ALL_FOUR)
    assert host.session.state == {
        "lang": "no",
        "endVoiceSession": {"after": "farewell_spoken"},
        "suppressAudio": True,
        "suppressTranscript": False,
        "pendingMessage": {"text": "bye"},
    }
    # Each is in force when the host hears of it, and none that comes after it.
    assert [set(seen) - {"lang"} for seen in host.seen][:2] == [
        {"endVoiceSession"},
        {"endVoiceSession", "suppressAudio"},
    ]
    assert "warnings" not in result.meta
    assert host.session.is_active


@pytest.mark.spec("S2-39")
async def test_a_later_intent_changes_what_an_earlier_one_set(crib_of):
    host = Host()
    on, off = QUIET, Intent(type="SUPPRESS_AUDIO", fields={"value": False})
    await crib_of(asking(on, off)).call(call(host))
    assert host.session.state == {"suppressAudio": False}


async def test_what_an_intent_leaves_out_has_its_usual_meaning(crib_of):
    host = Host()
    intents = (Intent(type="END_VOICE_SESSION"), Intent(type="SUPPRESS_AUDIO", fields={"value": None}))
    await crib_of(asking(*intents)).call(call(host))
    assert host.session.state == {"endVoiceSession": {"after": "immediate"}, "suppressAudio": True}


@pytest.mark.parametrize("failure", ["returned", "output", "raised"])
async def test_the_intents_of_a_call_that_failed_stay_in_the_result_and_change_nothing(crib_of, failure):
    error = ToolError(Kind.PERMANENT, "no")
    made = asking(QUIET, error=error if failure == "returned" else None, value="text")
    if failure == "output":
        made.__annotations__["return"] = int
    if failure == "raised":

        @tool(name="asks")
        def made():
            """Raise."""
            raise error

    host = Host()
    result = await crib_of(made).call(call(host))
    assert result.error.kind is (Kind.OUTPUT_INVALID if failure == "output" else Kind.PERMANENT)
    assert result.intents == (() if failure == "raised" else (QUIET,))
    assert (host.heard, host.session.state) == ([], {})


@pytest.mark.spec("S2-39")
@pytest.mark.parametrize("kind", ["LAUNCH_ROCKET", "suppress_audio", "", 5, None, ["END_VOICE_SESSION"]])
async def test_an_unknown_intent_is_ignored_with_a_warning_and_the_others_are_not(crib_of, caplog, kind):
    unknown = Intent(type=kind, fields={"value": True})
    host = Host()
    result = await crib_of(asking(unknown, QUIET)).call(call(host))
    assert result.ok
    assert result.intents == (unknown, QUIET)
    (warning,) = result.meta["warnings"]
    assert warning == (
        f"the intent {kind!r} is unknown and was ignored; "
        "known are END_VOICE_SESSION, SUPPRESS_AUDIO, SUPPRESS_TRANSCRIPT, SET_PENDING_MESSAGE"
    )
    assert warning in caplog.text
    assert host.heard == [QUIET]
    assert host.session.state == {"suppressAudio": True}


@pytest.mark.parametrize(
    ("intent", "words"),
    [
        (Intent(type="SUPPRESS_AUDIO", fields={"value": "no"}), "its value must be true or false"),
        (Intent(type="SUPPRESS_TRANSCRIPT", fields={"value": 0}), "its value must be true or false"),
        (Intent(type="END_VOICE_SESSION", fields={"after": 3}), "its after must be a text"),
        (Intent(type="SET_PENDING_MESSAGE"), "it has no message"),
    ],
)
async def test_an_intent_that_makes_no_sense_is_ignored_with_a_warning(crib_of, intent, words):
    host = Host()
    result = await crib_of(asking(intent)).call(call(host))
    assert result.ok
    (warning,) = result.meta["warnings"]
    assert warning.startswith(f"the intent {intent.type} was ignored")
    assert words in warning
    assert (host.heard, host.session.state) == ([], {})


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_host_that_cannot_take_an_intent_does_not_fail_the_call(crib_of, caplog, is_async):
    def fails(intent):
        raise ZeroDivisionError("secret")

    async def waits(intent):
        raise AssertionError("nobody awaits it")

    session = Session(id="s", on_intent=waits if is_async else fails)
    result = await crib_of(asking(END, QUIET)).call(Call(name="asks", session=session))
    assert result.ok
    assert result.meta["warnings"] == [
        "the host failed to act on the intent END_VOICE_SESSION; the log has the details",
        "the host failed to act on the intent SUPPRESS_AUDIO; the log has the details",
    ]
    assert ("on_intent is async" if is_async else "ZeroDivisionError: secret") in caplog.text
    assert set(session.state) == {"endVoiceSession", "suppressAudio"}


async def test_a_session_without_listeners_is_changed_all_the_same(crib_of):
    session = Session(id="s")
    assert (await crib_of(asking(QUIET)).call(Call(name="asks", session=session))).ok
    assert session.state == {"suppressAudio": True}


async def test_without_a_session_known_intents_are_only_in_the_result(crib_of):
    crib = crib_of(asking(END, Intent(type="A")))
    for result in (await crib.call("asks"), await crib.call(Call(name="asks"))):
        assert result.intents == (END, Intent(type="A"))
        assert len(result.meta["warnings"]) == 1


async def test_a_warning_about_an_intent_stands_beside_the_other_warnings(crib_of):
    @tool
    def asks():
        """Ask, and warn."""
        return Outcome(intents=(Intent(type="A"),), meta={"warnings": ["mine"]})

    result = await crib_of(asks).call("asks")
    assert result.meta["warnings"][0] == "mine"
    assert len(result.meta["warnings"]) == 2


async def test_a_tool_that_is_called_by_another_asks_the_same_host(crib_of):
    @tool
    async def outer(context: Context) -> bool:
        """Call a tool that asks for something, and look."""
        result = await context.call("asks")
        return bool(result.ok and context.session.state["suppressAudio"])

    host = Host()
    result = await crib_of(asking(QUIET), outer).call(Call(name="outer", session=host.session))
    assert result.value is True
    assert host.heard == [QUIET]
