"""Handlers of both languages as a crib calls them: defaults, audit entries, settings, and whose time is whose."""

import asyncio

import pytest

from toolcrib import Call, Limits, RetryPolicy, Tool
from toolcrib.infra.sandbox.host import Sandbox
from toolcrib.model.tool import Handler

NAMES = {"javascript": "handler.js", "python": "handler.py"}
PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["city"],
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "default": "metric"},
        "place": {"type": "object", "properties": {"country": {"type": "string", "default": "NO"}}},
    },
}


@pytest.fixture
def handler_of(tmp_path):
    """The tool of a folder that holds only this handler."""
    root = tmp_path / "tools"

    def make(language, code, *, name="sample", **facts):
        path = f"{name}/{NAMES[language]}"
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(code)
        run = Handler(root=root, folder=name, language=language, files={path: code.encode()})
        return Tool(name=name, run=run, **{"description": "d", "parameters": {"type": "object"}, **facts})

    return make


@pytest.fixture
def crib(crib_of, sandbox, tmp_path):
    """A crib over the given tools, in a sandbox that has tried the walls of this machine."""

    def make(*tools, within=sandbox, **settings):
        (tmp_path / "work").mkdir()
        crib = crib_of(*tools, workspace={"folder": str(tmp_path / "work")}, **settings)
        crib._resources.lend(sandbox=within)
        return crib

    return make


# --- what it is given ---------------------------------------------------------------------------------------------------

ECHO = {
    "javascript": "export const execute = ({ args }) => ({ ok: true, data: args });",
    "python": "def execute(args, context): return {'ok': True, 'data': args}",
}


@pytest.mark.spec("S2-31")
@pytest.mark.parametrize("language", ECHO)
async def test_a_handler_gets_the_defaults_of_what_was_not_given(crib, handler_of, language):
    tools = crib(handler_of(language, ECHO[language], parameters=PARAMETERS))
    assert (await tools.call("sample", city="Oslo")).value == {"city": "Oslo", "unit": "metric"}
    assert (await tools.call("sample", city="Oslo", place={})).value == {
        "city": "Oslo",
        "unit": "metric",
        "place": {"country": "NO"},
    }
    given = {"city": "Oslo", "unit": "imperial", "place": {"country": "SE"}}
    assert (await tools.call("sample", given)).value == given


AUDIT = {
    "javascript": """
        export function execute({ context }) {
          context.audit.log("seen", { n: 1, caller: "mallory", tool: "other" });
          return { ok: true };
        }
    """,
    "python": """
def execute(args, context):
    context.audit.log("seen", {"n": 1, "caller": "mallory", "tool": "other"})
    return {"ok": True}
""",
}


@pytest.mark.spec("S2-37")
@pytest.mark.parametrize("language", AUDIT)
async def test_an_audit_entry_names_the_tool_and_the_client_even_if_the_handler_names_others(
    crib, handler_of, language
):
    tools = crib(handler_of(language, AUDIT[language], version="2.1.0"))
    result = await tools.call(Call(name="sample", arguments={}, caller="client-7"))
    assert result.error is None
    (entry,) = [line for line in tools.journal.read() if line["event"] != "call"]
    assert (entry["event"], entry["tool"], entry["caller"]) == ("seen", "/sample@2.1.0", "client-7")
    assert entry["id"] == result.meta["callId"]
    assert entry["data"] == {"n": 1, "caller": "mallory", "tool": "other"}


# --- its process --------------------------------------------------------------------------------------------------------

PROCESS = "export const execute = () => ({ ok: true, data: process.pid });"


@pytest.mark.parametrize(("fresh", "processes"), [(False, 1), (True, 3)])
async def test_a_setting_gives_every_call_a_process_of_its_own(crib, handler_of, fresh, processes):
    tools = crib(handler_of("javascript", PROCESS), folders={"fresh": fresh})
    assert len({(await tools.call("sample")).value for _ in range(3)}) == processes


# --- whose time it is ---------------------------------------------------------------------------------------------------

SLOW_SECONDS = 0.8
BUDGET = Limits(latency_budget_ms=600)
# What a module does before it can be called is not what it was asked to do.
SLOW_TO_LOAD = f"await new Promise((done) => setTimeout(done, {SLOW_SECONDS * 1000}));"
SLOW = {
    "javascript": f"export const execute = async () => {{ {SLOW_TO_LOAD} return {{ ok: true }}; }};",
    "python": f"import time\ndef execute(args, context):\n    time.sleep({SLOW_SECONDS})\n    return {{'ok': True}}",
}


class SlowSandbox(Sandbox):
    """One that takes its time to try its walls."""

    async def learn(self):
        await asyncio.sleep(SLOW_SECONDS)
        await super().learn()


@pytest.fixture
def slow_sandbox():
    sandbox = SlowSandbox()
    yield sandbox
    sandbox.close()


def over_budget(tools):
    return [line.get("overBudget", False) for line in tools.journal.read()]


async def test_the_time_that_a_process_takes_to_start_is_not_the_tools_own(crib, handler_of):
    tools = crib(handler_of("javascript", f"{SLOW_TO_LOAD}\n{PROCESS}", limits=BUDGET))
    first, second = [await tools.call("sample") for _ in range(2)]
    assert (first.error, "warnings" in first.meta) == (None, False)
    assert first.meta["durationMs"] > SLOW_SECONDS * 1000
    assert second.value == first.value
    assert over_budget(tools) == [False, False]


async def test_the_time_in_which_walls_are_tried_is_not_the_tools_own(crib, handler_of, slow_sandbox):
    tools = crib(handler_of("python", ECHO["python"], limits=BUDGET), within=slow_sandbox)
    result = await tools.call("sample")
    assert (result.error, "warnings" in result.meta) == (None, False)
    assert result.meta["durationMs"] > SLOW_SECONDS * 1000
    assert over_budget(tools) == [False]


async def test_nor_is_it_when_a_call_is_tried_again(crib, handler_of):
    code = f"""
    {SLOW_TO_LOAD}
    let calls = 0;
    export function execute() {{
      calls += 1;
      if (calls > 1) return {{ ok: true, data: calls }};
      return {{ ok: false, error: {{ type: "TRANSIENT", message: "again", retryable: true }} }};
    }}
    """
    retry = RetryPolicy(max_attempts=2, initial_delay=0.0)
    limits = Limits(latency_budget_ms=BUDGET.latency_budget_ms, retry=retry)
    tools = crib(handler_of("javascript", code, limits=limits, idempotent=True))
    result = await tools.call("sample")
    assert (result.value, result.meta["attempts"], "warnings" in result.meta) == (2, 2, False)
    assert over_budget(tools) == [False]


@pytest.mark.parametrize("language", SLOW)
async def test_the_time_in_which_a_handler_runs_is_its_own(crib, handler_of, language):
    tools = crib(handler_of(language, SLOW[language], limits=BUDGET))
    result = await tools.call("sample")
    assert result.error is None
    (warning,) = result.meta["warnings"]
    assert warning.startswith("sample took ")
    assert warning.endswith(" ms, its budget is 600 ms")
    assert over_budget(tools) == [True]


async def test_a_handler_that_cannot_be_loaded_had_no_time_of_its_own(crib, handler_of):
    tools = crib(handler_of("javascript", f"{SLOW_TO_LOAD} throw new Error('x'); export {{}};", limits=BUDGET))
    result = await tools.call("sample")
    assert "could not be loaded" in result.error.message
    assert over_budget(tools) == [False]
