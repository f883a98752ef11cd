"""Secrets that are stored stay out of what host functions return, raise and log, before anything has used them."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from toolcrib import Call, Context, Crib, Intent, Kind, ToolError, tool
from toolcrib.features.folders.handler_messages import HandlerService
from toolcrib.model.result import Outcome

VALUE = "sesame-9f1c-open"


@pytest.fixture
def stored(project):
    """A project whose secret another process has stored."""
    (project / "toolcrib.toml").write_text("")
    with Crib(project) as crib:
        crib.secrets.set("KEY", VALUE)
    return project


@tool
def leak(how: str) -> object:
    """Give away what it should not know."""
    if how == "raise":
        raise ToolError(Kind.PERMANENT, f"no {VALUE}", details={"key": VALUE}, value=[VALUE])
    if how == "fail":
        raise ValueError(VALUE)
    return {"value": {"a": [f"<{VALUE}>"], VALUE: 1}, "text": f"key={VALUE}", "long": f"{VALUE} " * 10_000}[how]


@tool
async def leak_later() -> Outcome:
    """Give it away with what it says besides."""
    return Outcome(value=VALUE, meta={"stderr": f"trace of {VALUE}"})


CALLS = {
    "plain": lambda **given: Call(name="leak", **given),
    "full": lambda **given: Call(name="leak", id="1", **given),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_a_value_of_a_host_function_shows_no_stored_secret(stored, call):
    async with Crib(stored, tools=[leak]) as crib:
        assert (await crib.call(call(arguments={"how": "value"}))).value == {"a": ["<***>"], "***": 1}
        assert (await crib.call(call(arguments={"how": "text"}))).value == "key=***"


async def test_a_value_that_is_stored_to_be_read_in_pieces_shows_none_either(stored):
    async with Crib(stored, tools=[leak], calls={"result_bytes": 1_000}) as crib:
        result = await crib.call("leak", how="long")
        assert result.meta["kept"]["letters"] == len("*** " * 10_000)
        assert VALUE not in result.value


async def test_the_meta_of_a_result_shows_no_stored_secret(stored):
    async with Crib(stored, tools=[leak_later]) as crib:
        result = await crib.call("leak_later")
    assert (result.value, result.meta["stderr"]) == ("***", "trace of ***")


async def test_an_error_of_a_host_function_shows_no_stored_secret(stored):
    async with Crib(stored, tools=[leak]) as crib:
        result = await crib.call("leak", how="raise")
    assert (result.error.message, result.error.details["key"], result.value) == ("no ***", "***", ["***"])


async def test_the_log_of_a_failing_host_function_shows_no_stored_secret(stored, caplog):
    caplog.set_level(logging.ERROR)
    async with Crib(stored, tools=[leak]) as crib:
        result = await crib.call("leak", how="fail")
    assert "leak failed unexpectedly" in caplog.text
    assert "ValueError: ***" in caplog.text
    assert VALUE not in caplog.text
    assert VALUE not in str(result.error)


async def test_a_secret_that_a_caller_takes_for_the_name_of_a_tool_is_written_down_nowhere(stored, caplog):
    caplog.set_level(logging.INFO)
    async with Crib(stored, tools=[leak]) as crib:
        result = await crib.call(VALUE)
        written = list(crib.journal.read())
    assert result.error.kind is Kind.NOT_FOUND
    assert result.meta["tool"] == "***"
    assert written[-1]["tool"] == "***"
    assert VALUE not in f"{result}{written}{caplog.text}"


async def test_a_secret_that_is_stored_while_the_crib_runs_is_masked_from_then_on(project):
    (project / "toolcrib.toml").write_text("")
    async with Crib(project, tools=[leak]) as crib:
        assert (await crib.call("leak", how="text")).value == f"key={VALUE}"
        crib.secrets.set("KEY", VALUE)
        assert (await crib.call("leak", how="text")).value == "key=***"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_the_first_secret_that_another_process_stores_is_masked_from_then_on(project, call, monkeypatch):
    monkeypatch.setattr("toolcrib.core.execution.LOOK_SECONDS", 0)
    (project / "toolcrib.toml").write_text("")
    async with Crib(project, tools=[leak]) as crib, Crib(project) as other:
        assert (await crib.call(call(arguments={"how": "text"}))).value == f"key={VALUE}"
        other.secrets.set("KEY", VALUE)
        assert (await crib.call(call(arguments={"how": "text"}))).value == "key=***"


async def test_the_journal_shows_no_stored_secret_that_a_tool_printed(stored):
    async with Crib(stored, tools=[leak_later]) as crib:
        await crib.call("leak_later")
        written = list(crib.journal.read())
    assert written[-1]["stderr"] == "trace of ***"


async def test_an_intent_shows_no_stored_secret(stored):
    @tool
    async def ask() -> Outcome:
        """Have the host show it."""
        return Outcome(intents=(Intent(type="SET_PENDING_MESSAGE", fields={"message": f"say {VALUE}"}),))

    async with Crib(stored, tools=[ask]) as crib:
        result = await crib.call("ask")
    assert result.intents[0].fields == {"message": "say ***"}


async def test_neither_an_audit_entry_nor_a_message_of_a_handler_shows_a_stored_secret(stored):
    heard = []

    async def send(message):
        heard.append(message)

    @tool
    async def tell(context: Context) -> None:
        """Tell it to all."""
        context.audit("told", {"key": [VALUE]})
        await HandlerService(context.tool, context).answer({"ask": 1, "do": "send", "message": {"key": VALUE}})

    async with Crib(stored, tools=[tell]) as crib:
        assert (await crib.call(Call(name="tell", session=crib.session(send=send)))).ok
        (entry,) = (line for line in crib.journal.read() if line["event"] == "told")
    assert (entry["data"], heard) == ({"key": ["***"]}, [{"key": "***"}])


class Account:
    """An object without a JSON form, whose text shows a secret."""

    def __str__(self) -> str:
        return f"account of {VALUE}"


@dataclass
class Login:
    token: str


OBJECTS = {"login": Login(VALUE), "account": Account(), "problem": ValueError(VALUE), "path": Path("keys", VALUE)}
MASKED = {"login": {"token": "***"}, "account": "account of ***", "problem": "***", "path": "keys/***"}


async def test_objects_that_are_written_as_json_later_show_no_stored_secret(stored):
    @tool
    async def fail(context: Context) -> None:
        """Fail with objects in place of JSON."""
        context.audit(f"failed {VALUE}", OBJECTS)
        raise ToolError(
            Kind.PERMANENT, "no", details={VALUE: 1, "pairs": {(VALUE, 1): 2}, **OBJECTS}, value=Login(VALUE)
        )

    async with Crib(stored, tools=[fail]) as crib:
        result = await crib.call("fail")
        audited, _ = crib.journal.read()
    assert result.value == {"token": "***"}
    assert result.error.details == {"***": 1, "pairs": {"('***', 1)": 2}, **MASKED}
    assert (audited["event"], audited["data"]) == ("failed ***", MASKED)


async def test_an_object_that_shows_no_secret_stays_itself(stored):
    shown = Path("keys")

    @tool
    async def ask() -> Outcome:
        """Hand an object to the host."""
        return Outcome(intents=(Intent(type="SET_PENDING_MESSAGE", fields={"message": shown}),))

    async with Crib(stored, tools=[ask]) as crib:
        assert (await crib.call("ask")).intents[0].fields["message"] is shown


async def test_a_value_that_orjson_writes_by_itself_shows_no_stored_secret(stored):
    key = "7d0c1d2e-51c5-4a1c-9d2f-0a4f3c1b2a39"

    @tool
    def find() -> object:
        """Find the key."""
        return {"key": UUID(key)}

    async with Crib(stored, tools=[find]) as crib:
        crib.secrets.set("ID", key)
        assert (await crib.call("find")).value == {"key": "***"}


async def test_a_question_to_the_client_shows_no_stored_secret(stored):
    asked = []

    class Client:
        can_ask, takes_chunks = True, False

        async def ask(self, question):
            asked.append(question.params)
            return {}

    @tool
    async def ask(context: Context) -> None:
        """Ask the user and the model."""
        await context.elicit(f"Is it {VALUE}?", {"type": "object", "properties": {}})
        await context.sample(f"Say {VALUE}")

    async with Crib(stored, tools=[ask]) as crib:
        assert (await crib.call(Call(name="ask", client=Client()))).ok
    assert asked[0]["message"] == "Is it ***?"
    assert asked[1]["messages"] == [{"role": "user", "content": {"type": "text", "text": "Say ***"}}]


async def test_the_first_secret_that_another_process_stores_during_a_call_is_masked_at_its_end(project, monkeypatch):
    monkeypatch.setattr("toolcrib.core.execution.LOOK_SECONDS", 0)
    (project / "toolcrib.toml").write_text("")

    @tool
    async def wait_and_leak(stores: bool) -> str:
        """Wait while another process stores a secret, and find it."""
        assert (await crib.call("leak", how="text")).value == f"key={VALUE}"
        if stores:
            other.secrets.set("KEY", VALUE)
        return VALUE

    async with Crib(project, tools=[leak, wait_and_leak]) as crib, Crib(project) as other:
        assert (await crib.call("wait_and_leak", stores=False)).value == VALUE  # the second call takes the fast path
        assert (await crib.call("wait_and_leak", stores=True)).value == "***"


async def test_an_exception_without_a_text_is_the_error_of_its_call_though_secrets_are_stored(stored):
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    @tool
    def fail() -> None:
        """Fail."""
        raise SilentError

    async with Crib(stored, tools=[fail]) as crib:
        result = await crib.call("fail")
    assert result.error.message.startswith("fail failed unexpectedly (SilentError)")


class Keys(StrEnum):
    FIRST = VALUE


class Unwritable(dict):
    def items(self):
        raise KeyError("not loaded")


def looped():
    made = {}
    made["itself"] = made
    return made


@pytest.mark.parametrize("found", [looped(), Unwritable(a=VALUE)], ids=["a loop", "an object that fails"])
async def test_what_cannot_be_searched_for_secrets_is_masked_as_a_whole(stored, found):
    @tool
    async def fail(context: Context) -> None:
        """Fail with what has no JSON form."""
        context.audit("failed", {"found": found})
        raise ToolError(Kind.PERMANENT, "no", details={"found": found}, value=found)

    async with Crib(stored, tools=[fail]) as crib:
        result = await crib.call("fail")
        audited, _ = crib.journal.read()
    assert (result.error.reason, result.error.details["found"], result.value) == ("no", "***", "***")
    assert audited["data"] in ("***", {"found": "***"})


async def test_a_member_of_an_enum_that_is_a_stored_secret_is_masked(stored):
    @tool
    def find() -> object:
        """Find the key."""
        return Keys.FIRST

    async with Crib(stored, tools=[find]) as crib:
        assert (await crib.call("find")).value == "***"


async def test_tuples_that_show_no_secret_stay_tuples(stored):
    class Point(NamedTuple):
        x: object

    @tool
    def find() -> object:
        """Find a pair."""
        return 1, "b"

    @tool
    def fail(what: object) -> None:
        """Fail after a part."""
        raise ToolError(Kind.PERMANENT, "no", details={"point": Point(what)}, value=Point(what))

    async with Crib(stored, tools=[find, fail]) as crib:
        assert (await crib.call("find")).value == (1, "b")
        clean, masked = await crib.call("fail", what=1), await crib.call("fail", what=VALUE)
    assert (clean.error.details["point"], clean.value) == (Point(1), {"x": 1})
    assert (masked.error.details["point"], masked.value) == ({"x": "***"}, {"x": "***"})
