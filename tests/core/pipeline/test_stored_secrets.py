"""Secrets that are stored stay out of what host functions return, raise and log, before anything has used them."""

import logging

import pytest

from toolcrib import Call, Crib, Kind, ToolError, tool
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
