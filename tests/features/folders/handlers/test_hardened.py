"""What a handler cannot do to others: to the next caller, to the session, to numbers, to the journal."""

import asyncio
import json
import stat
import time

import pytest

from toolcrib import Kind, Session, ToolError
from toolcrib.features.folders.handler_messages import MAX_INTENT_BYTES
from toolcrib.features.folders.node_worker import BEGINNING_SECONDS

PID = "export const execute = () => ({ ok: true, data: process.pid });"


@pytest.mark.parametrize("requires", [{"fs.read"}, {"fs.write"}])
async def test_a_handler_that_may_use_the_workspace_is_never_kept(folders, requires):
    tool = folders.tool("writer", PID, requires=requires)
    assert await folders.data(tool) != await folders.data(tool)
    plain = folders.tool("plain", PID)
    assert await folders.data(plain) == await folders.data(plain)


async def test_a_busy_loop_that_a_call_left_behind_costs_the_next_one_no_answer(folders):
    code = """
    export const execute = ({ args }) => {
      if (args.leave) setTimeout(() => { for (;;); }, 0);
      return { ok: true, data: process.pid };
    };
    """
    tool = folders.tool("spinner", code)
    first = await folders.data(tool, leave=True)
    # A call or two may get through before the loop begins.
    pids = [await folders.data(tool) for _ in range(5)]
    assert pids[-1] != first


async def test_several_processes_that_are_stuck_cost_the_next_one_no_answer_either(folders):
    # As stuck as in a busy loop, which the test above has.
    code = """
    export async function execute({ args, context }) {
      if (args.leave) {
        await context.messaging.send(1);
        setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 0);
      }
      return { ok: true, data: process.pid };
    };
    """
    tool = folders.tool("stuck", code)
    both, waiting = asyncio.Event(), []

    async def send(_message):
        waiting.append(1)
        if len(waiting) == 2:
            both.set()
        await both.wait()

    session = Session(id="s", send=send)
    await asyncio.gather(*(folders.data(tool, leave=True, session=session) for _ in range(2)))
    for _ in range(4):
        await folders.data(tool)


async def test_a_host_that_stood_still_does_not_end_a_call_that_has_begun(folders):
    code = """
    export async function execute({ args, context }) {
      if (args.pay) context.audit.log('paid', {});
      return { ok: true, data: process.pid };
    }
    """
    tool = folders.tool("payer", code)
    first = await folders.data(tool)
    calling = asyncio.ensure_future(folders.data(tool, pay=True))
    for _ in range(3):
        await asyncio.sleep(0)
    time.sleep(BEGINNING_SECONDS + 0.1)  # noqa: ASYNC251 - the loop has to stand still
    assert await calling == first
    assert [event for event, _ in folders.audits] == ["paid"]


async def test_a_file_that_became_a_link_is_not_followed(folders):
    tool = folders.tool(
        "linked",
        "import { a } from './a.js'; export const execute = () => ({ ok: true, data: a });",
        files={"a.js": "export const a = 1;", "b.js": "export const a = 2;"},
    )
    (folders.root / "linked" / "a.js").unlink()
    (folders.root / "linked" / "a.js").symlink_to("b.js")
    assert (await folders.error(tool)).kind is Kind.CONFLICT


@pytest.mark.parametrize("added", ["lib", "lib/index.js", "more.js"])
async def test_what_was_put_beside_the_files_of_a_handler_that_reads_the_workspace_does_not_run(folders, added):
    code = "const lib = require('./lib'); exports.execute = () => ({ ok: true, data: lib.word });"
    tool = folders.tool("reader", code, files={"lib.js": "exports.word = 'checked';"}, requires={"fs.read"})
    assert await folders.data(tool) == "checked"
    folders._write(f"reader/{added}", "exports.word = 'planted';")
    assert (await folders.error(tool)).kind is Kind.CONFLICT


async def test_numbers_of_the_state_that_node_would_round_are_left_out(folders, caplog):
    tool = folders.tool("state", "export const execute = ({ context }) => ({ ok: true, data: context.session.state });")
    session = Session(id="s", state={"account": 2**53 + 1, "small": 2**53 - 1})
    assert await folders.data(tool, session=session) == {"small": 2**53 - 1}
    assert "account" in caplog.text


async def test_an_error_that_belongs_to_no_call_fails_the_one_that_runs_without_its_words(folders, caplog):
    code = """
    let fail;
    const never = new Promise((_, reject) => { fail = reject; });
    setInterval(() => { if (globalThis.now) throw Object.assign(new Error("secret of alice"), { name: "ToolError", type: "CONFLICT" }); }, 5);
    export const execute = async ({ args }) => {
      if (args.wait) { globalThis.now = true; await never; }
      return { ok: true, data: 1 };
    };
    """
    tool = folders.tool("leaky", code)
    error = await folders.error(tool, wait=True)
    assert error.kind is Kind.INTERNAL
    assert "secret" not in error.message
    assert "secret of alice" in caplog.text
    assert await folders.data(tool) == 1


async def test_a_whole_number_that_node_would_round_is_refused_before_anything_runs(folders):
    tool = folders.tool("exact", "export const execute = ({ args }) => ({ ok: true, data: args.value });")
    for value in (2**53, -(2**53), {"a": [{"b": 2**60}]}):
        with pytest.raises(ToolError, match="which would round") as refusal:
            await folders.call(tool, value=value)
        assert refusal.value.kind is Kind.VALIDATION, value
    assert await folders.data(tool, value=2**53 - 1) == 2**53 - 1


HALVES = {
    "in what is printed": "console.log('a' + '😀'.repeat(40000)); return { ok: true, data: 1 };",
    "in an error": "throw new Error('a' + '😀'.repeat(4000));",
    "in the data": "return { ok: true, data: '😀'.slice(0, 1) };",
    "in a key": "return { ok: true, data: { ['😀'.slice(1)]: 1 } };",
    "in an entry": "context.audit.log('😀'.slice(0, 1), {}); return { ok: true };",
    "in a message": "await context.messaging.send('😀'.slice(0, 1)); return { ok: true };",
}


async def test_half_a_character_costs_no_process(folders, any_node):
    acts = "\n".join(f"if (args.half === {json.dumps(where)}) {{ {act} }}" for where, act in HALVES.items())
    code = f"""
    export async function execute({{ args, context }}) {{
      {acts}
      return {{ ok: true, data: process.pid }};
    }}
    """
    tool = folders.tool("halves", code)
    for where in HALVES:
        before = await folders.data(tool)
        outcome = await folders.call(tool, half=where)
        assert (outcome.error is None) == (where == "in what is printed"), where
        if where == "in the data":
            assert "a string with a lone surrogate" in outcome.error.message
            continue  # an invalid answer always ends its process
        if where != "in a key":
            assert await folders.data(tool) == before, where


async def test_a_text_that_only_looks_like_half_a_character_is_sent(folders):
    tool = folders.tool("looks", r"export const execute = () => ({ ok: true, data: '\\ud800 and 😀' });")
    assert await folders.data(tool) == "\\ud800 and 😀"


async def test_intents_that_would_fill_the_session_are_an_invalid_response(folders):
    code = """
    export const execute = ({ args }) => ({
      ok: true, intents: [{ type: 'SET_PENDING_MESSAGE', message: 'x'.repeat(args.letters) }],
    });
    """
    tool = folders.tool("filler", code)
    assert (await folders.call(tool, letters=MAX_INTENT_BYTES // 2)).error is None
    error = await folders.error(tool, letters=MAX_INTENT_BYTES)
    assert "the intents are longer than 64000 bytes" in error.message


async def test_the_entries_of_one_call_are_bounded_in_bytes_too(folders):
    code = """
    export const execute = ({ context }) => {
      for (let n = 0; n < 50; n++) context.audit.log('e', { text: 'x'.repeat(90000) });
      return { ok: true };
    };
    """
    await folders.data(folders.tool("talker", code))
    assert len(folders.audits) == 11


async def test_a_node_that_a_project_brings_along_is_not_what_runs_it(folders):
    planted = folders.root / "tool" / "node_modules" / ".bin" / "node"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\necho planted >&2\nexit 3\n")
    planted.chmod(planted.stat().st_mode | stat.S_IXUSR)
    tool = folders.tool("tool", "export const execute = () => ({ ok: true, data: process.version });")
    assert (await folders.data(tool)).startswith("v")
