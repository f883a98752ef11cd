"""A call that needs a person's word: the host asks, and the model never holds what confirms it."""

import json
import re

import pytest

from toolcrib import Kind

WIPE = ("1", "wipe", {"disk": "a"})
TOKEN = re.compile(r"[\w-]{60}")
WORDS = "wipe needs confirmation, and it was not confirmed; "


async def test_without_a_person_to_ask_the_model_gets_the_refusal_and_no_token(shape, crib, bench):
    answer = await shape.adapter(crib).answer(shape.reply(WIPE))
    (told,) = shape.read(answer)
    assert told.value == {
        "type": "CONFIRMATION_REQUIRED",
        "message": WORDS
        + "it cannot be confirmed here, and not by you; say what it would do and let the person decide",
        "retryable": False,
        "partialSideEffects": False,
    }
    assert bench.done == []
    # The crib did hand a token out, to the host alone.
    (call,) = shape.adapter(crib).calls(shape.reply(WIPE))
    assert TOKEN.search((await crib.call(call)).error.details["confirmation"])
    assert not TOKEN.search(json.dumps(answer))


async def test_a_yes_makes_the_call_and_only_that_one(shape, crib, bench):
    asked = []

    def confirm(call, error):
        asked.append((call.name, call.arguments, error.kind))
        return call.arguments["disk"] == "a"

    reply = shape.reply(WIPE, ("2", "add", {"a": 1, "b": 2}), ("3", "wipe", {"disk": "b"}))
    first, second, third = shape.read(await shape.adapter(crib, confirm=confirm).answer(reply))
    assert (first.value, second.value) == ("a is empty", 3)
    assert third.value["message"] == (WORDS + "the person was asked; ask for it again only if they say so")
    assert bench.done == [("add", 1, 2), ("wipe", "a")]
    needs = Kind.CONFIRMATION_REQUIRED
    assert asked == [("wipe", {"disk": "a"}, needs), ("wipe", {"disk": "b"}, needs)]


async def test_the_person_may_take_their_time(shape, crib, bench):
    async def confirm(call, error):
        return True

    (told,) = shape.read(await shape.adapter(crib, confirm=confirm).answer(shape.reply(WIPE)))
    assert told.value == "a is empty"


async def no(call, error):
    return False


def breaks(call, error):
    raise OSError("the window is gone")


@pytest.mark.parametrize("confirm", [lambda *_: "no", lambda *_: 1, lambda *_: None, no, breaks])
async def test_nothing_but_true_is_a_yes(shape, crib, bench, confirm):
    first, second = shape.read(
        await shape.adapter(crib, confirm=confirm).answer(shape.reply(WIPE, ("2", "add", {"a": 1, "b": 2})))
    )
    assert first.value["type"] == "CONFIRMATION_REQUIRED"
    assert second.value == 3
    assert bench.done == [("add", 1, 2)]


async def test_what_was_changed_since_it_was_asked_is_not_confirmed(shape, crib, bench):
    def confirm(call, error):
        call.arguments["disk"] = "b"
        return True

    answer = await shape.adapter(crib, confirm=confirm).answer(shape.reply(WIPE))
    (told,) = shape.read(answer)
    assert told.value["message"] == (
        "wipe needs confirmation, and the confirmation was given for another tool, other arguments or another caller; "
        "the person was asked; ask for it again only if they say so"
    )
    assert bench.done == []


async def test_a_token_in_the_hands_of_a_model_confirms_nothing(shape, crib, bench):
    (call,) = shape.adapter(crib).calls(shape.reply(WIPE))
    token = (await crib.call(call)).error.details["confirmation"]
    for arguments in ({"disk": "a", "confirmation": token}, {"disk": token}):
        (told,) = shape.read(await shape.adapter(crib).answer(shape.reply(("1", "wipe", arguments))))
        assert not told.ok
    for key in ("confirmation", "token"):
        wire = shape.wire(WIPE)
        _everywhere(wire, key, token)
        (told,) = shape.read(await shape.adapter(crib).answer(wire))
        assert told.value["type"] in {"CONFIRMATION_REQUIRED", "VALIDATION"}
    assert bench.done == []


def _everywhere(thing, key, token):
    """Put the token beside everything in a reply, but into the arguments of the call."""
    if isinstance(thing, list):
        for each in thing:
            _everywhere(each, key, token)
    elif isinstance(thing, dict):
        for name, each in list(thing.items()):
            if name not in {"input", "args"}:
                _everywhere(each, key, token)
        thing[key] = token
