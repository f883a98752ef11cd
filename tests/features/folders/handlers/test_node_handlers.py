"""A handler in JavaScript: what it is given, what it may use, and what becomes of what it does."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from toolcrib import Kind, Session, ToolError
from toolcrib.features.folders.handler_messages import refuse_changed
from toolcrib.infra.sandbox.jobs import SHARED_MEMORY

TELL = """
export async function execute(given) {
  const { args, context } = given;
  return { ok: true, data: { args, context, keys: Object.keys(given), same: given.session === context.session } };
}
"""
SEND = """
export async function execute({ args, context }) {
  try {
    await context.messaging.send(args.message);
    return { ok: true, data: "sent" };
  } catch (problem) {
    return { ok: true, data: `${problem.name}: ${problem.message}` };
  }
}
"""


@pytest.mark.spec("S2-31", "S2-32", "S2-33")
async def test_execute_gets_its_arguments_and_its_context_in_one_object(folders, any_node):
    tool = folders.tool("tell", TELL, version="2.0.1", idempotent=True)
    session = Session(id="s", state={"turns": [1, {"deep": True}]}, tools_version="1.0.77")
    told = await folders.data(tool, session=session, caller="client-7", city="Oslo")
    assert told == {
        "args": {"city": "Oslo"},
        "context": {
            "clientId": "client-7",
            "tool": {"id": "tell", "version": "2.0.1", "idempotent": True},
            "session": {"isActive": True, "toolsVersion": "1.0.77", "state": {"turns": [1, {"deep": True}]}},
            "messaging": {},
            "voice": {},
            "audit": {},
            "capabilities": {"messaging": {}, "voice": {}, "audit": {}},
        },
        "keys": [
            *("args", "context", "clientId", "tool", "session", "messaging", "voice", "audit", "capabilities"),
            *("progress", "log", "elicit", "sample", "roots"),
        ],
        "same": True,
    }


async def test_the_context_itself_may_be_taken_as_the_one_argument(folders):
    code = "export const execute = (context) => ({ ok: true, data: [context.args.x, context.clientId] });"
    assert await folders.data(folders.tool("origin", code), x=1) == [1, "ann"]


@pytest.mark.spec("S2-34")
async def test_writing_to_the_state_changes_nothing_outside(folders):
    code = """
    export function execute({ context }) {
      const seen = context.session.state.list.length;
      context.session.state.list.push("mine");
      context.session.state.more = true;
      return { ok: true, data: seen };
    }
    """
    session = Session(id="s", state={"list": ["first"]})
    tool = folders.tool("writer", code)
    assert [await folders.data(tool, session=session) for _ in range(2)] == [1, 1]
    assert dict(session.state) == {"list": ["first"]}


@pytest.mark.spec("S2-35")
async def test_a_message_reaches_the_client_before_the_handler_goes_on(folders):
    heard = []

    async def send(message):
        await asyncio.sleep(0)
        heard.append(message)

    tool = folders.tool("sender", SEND)
    assert await folders.data(tool, session=Session(id="s", send=send), message={"text": "hé\n", "n": 1}) == "sent"
    assert heard == [{"text": "hé\n", "n": 1}]


@pytest.mark.spec("S2-35")
async def test_a_closed_connection_rejects_the_promise_inside_the_handler(folders):
    session = Session(id="s", send=lambda message: asyncio.sleep(0))
    session.disconnect()
    told = await folders.data(folders.tool("sender", SEND), session=session, message={})
    assert told.startswith("Error: ")
    assert told.endswith("; nothing was sent")


UNSENDABLE = {
    "() => 1": "TypeError: messaging.send: a function cannot be sent; send an object",
    "undefined": "TypeError: messaging.send: undefined cannot be sent; send an object",
    "10n": "TypeError: Do not know how to serialize a BigInt",
    "'x'.repeat(9e6)": "TypeError: messaging.send: the message has more than 8 MB",
}


async def test_what_cannot_be_sent_is_refused_inside_the_handler(folders):
    tool = folders.tool("sender", SEND.replace("args.message", f"[{', '.join(UNSENDABLE)}][args.message]"))
    for number, words in enumerate(UNSENDABLE.values()):
        assert await folders.data(tool, message=number) == words


@pytest.mark.parametrize("seconds", [0, 0.02], ids=["a quick client", "a slow client"])
async def test_messages_arrive_in_order_also_if_the_handler_does_not_await_them(folders, seconds):
    heard = []

    async def send(message):
        await asyncio.sleep(seconds)
        heard.append(message)

    code = """
    export function execute({ context }) {
      for (let n = 0; n < 100; n++) context.messaging.send(n);
      return { ok: true };
    }
    """
    await folders.data(folders.tool("sender", code), session=Session(id="s", send=send))
    assert heard == list(range(100))


async def test_messages_to_a_slow_client_do_not_make_a_timeout_of_a_call_that_was_answered(folders):
    heard = []

    async def send(message):
        await asyncio.sleep(0.2)
        heard.append(message)

    code = """
    export function execute({ context }) {
      for (let n = 0; n < 30; n++) context.messaging.send(n);
      return { ok: true, data: "answered" };
    }
    """
    tool = folders.tool("sender", code)
    await folders.data(tool)
    assert await folders.data(tool, session=Session(id="s", send=send), seconds=3.0) == "answered"
    assert heard == list(range(len(heard)))
    assert len(heard) < 30


async def test_a_client_that_takes_nothing_does_not_hold_up_a_handler_that_gave_up_on_it(folders):
    code = """
    export async function execute({ context }) {
      const sent = context.messaging.send("x");
      return { ok: true, data: await Promise.race([sent, Promise.resolve("gave up")]) };
    }
    """
    never = asyncio.Event()
    session = Session(id="s", send=lambda message: never.wait())
    assert await folders.data(folders.tool("impatient", code), session=session) == "gave up"


@pytest.mark.spec("S2-36")
@pytest.mark.parametrize(("mode", "expected"), [("voice", True), ("text", False)])
async def test_the_voice_is_active_in_voice_mode(folders, mode, expected):
    code = "export const execute = ({ context }) => ({ ok: true, data: context.voice.isActive() });"
    assert await folders.data(folders.tool("speaker", code), mode=mode) is expected


async def test_audit_entries_are_written_in_their_order_before_the_answer(folders):
    code = """
    export function execute({ context }) {
      context.audit.log("first", { n: 1 });
      context.audit.log("second");
      return { ok: true };
    }
    """
    await folders.data(folders.tool("auditor", code))
    assert folders.audits == [("first", {"n": 1}), ("second", {})]


async def test_an_audit_entry_of_another_form_is_refused_inside_the_handler(folders):
    code = """
    const ENTRIES = [[7, {}], ['x', 'text'], ['x', [1]], ['x', () => 1], ['x', { n: 1n }]];
    export function execute({ context }) {
      const told = ENTRIES.map((entry) => {
        try { context.audit.log(...entry); } catch (problem) { return problem.name; }
        return 'taken';
      });
      return { ok: true, data: told };
    }
    """
    assert await folders.data(folders.tool("auditor", code)) == ["TypeError"] * 5
    assert folders.audits == []


async def test_the_context_of_a_call_that_is_over_is_refused(folders):
    code = """
    let kept;
    export async function execute({ args, context }) {
      if (kept === undefined) { kept = context; return { ok: true }; }
      const problems = [];
      try { kept.audit.log("late"); } catch (problem) { problems.push(problem.message); }
      try { await kept.messaging.send("late"); } catch (problem) { problems.push(problem.message); }
      return { ok: true, data: problems };
    }
    """
    tool = folders.tool("late", code)
    await folders.data(tool)
    why = "the call that this context belongs to is over; await it before returning"
    assert await folders.data(tool) == [f"audit.log: {why}", f"messaging.send: {why}"]
    assert folders.audits == []


async def test_what_a_call_prints_is_in_its_answer_and_in_no_other(folders, any_node):
    code = """
    import fs from "node:fs";
    export function execute({ args }) {
      if (args.quiet) return { ok: true };
      console.log("to", "stdout");
      console.error("to stderr");
      process.stdout.write(Buffer.from("bytes"));
      fs.writeSync(1, "raw\\n");
      return { ok: true };
    }
    """
    tool = folders.tool("printer", code)
    printed, quiet = await folders.call(tool), await folders.call(tool, quiet=True)
    assert (printed.meta["stdout"], printed.meta["stderr"]) == ("to stdout\nbytes", "to stderr\n")
    assert {"stdout", "stderr"}.isdisjoint(quiet.meta)


async def test_what_is_printed_without_end_is_cut(folders):
    code = r"""
    export function execute() {
      for (let n = 0; n < 300; n++) for (const to of [process.stdout, process.stderr]) to.write("\u0001".repeat(1000));
      return { ok: true, data: "y".repeat(7.999e6) };
    }
    """
    outcome = await folders.call(folders.tool("printer", code))
    assert outcome.error is None
    assert len(outcome.value) == 7_999_000
    assert set(outcome.meta["stdout"]) == {"\x01"}


@pytest.mark.spec("S2-41")
async def test_a_thrown_tool_error_is_the_error_of_the_call_whichever_module_its_class_comes_from(folders, any_node):
    code = """
    class ToolError extends Error {
      constructor(type, message, facts) { super(message); Object.assign(this, { name: "ToolError", type, ...facts }); }
    }
    export function execute({ args }) { throw new ToolError("TRANSIENT", "lost", args); }
    """
    error = await folders.error(
        folders.tool("thrower", code), retryable=True, partialSideEffects=False, details={"n": 1}
    )
    assert (error.kind, error.message, error.retryable, error.partial_side_effects, error.details) == (
        Kind.TRANSIENT,
        "lost",
        True,
        False,
        {"n": 1},
    )


async def test_the_sandbox_of_the_worker_is_told(folders):
    outcome = await folders.call(folders.tool("tell", TELL))
    assert "fs" in outcome.meta["sandbox"]["guarantees"]


async def test_what_else_is_in_the_folder_is_found_beside_the_handler(folders):
    code = """
    import { readFileSync } from "node:fs";
    import { greet } from "./lib/greeting.js";
    export const execute = () => ({ ok: true, data: greet(readFileSync(new URL("./name.txt", import.meta.url), "utf8")) });
    """
    files = {"name.txt": "Ann", "lib/greeting.js": "export const greet = (name) => `Hello ${name}`;"}
    assert await folders.data(folders.tool("greeter", code, files=files)) == "Hello Ann"


async def test_the_bytes_that_were_loaded_run_even_if_the_files_change(folders):
    tool = folders.tool("stable", "export const execute = () => ({ ok: true, data: 'checked' });")
    (folders.root / "stable" / "handler.js").write_text("export const execute = () => ({ ok: true, data: 'changed' });")
    assert await folders.data(tool) == "checked"


async def test_a_file_that_has_gone_is_told_with_what_to_do(folders):
    tool = folders.tool("gone", TELL)
    (folders.root / "gone" / "handler.js").unlink()
    error = await folders.error(tool)
    assert error.kind is Kind.CONFLICT
    assert error.message == "gone/handler.js changed since it was loaded; run crib build and start again"


async def test_where_files_cannot_be_covered_a_change_is_refused(folders):
    tool = folders.tool("stable", TELL)
    refuse_changed(tool, tool.run, [])
    (folders.root / "stable" / "handler.js").write_text(TELL + "// changed")
    refuse_changed(tool, tool.run, ["mounts"])
    with pytest.raises(
        ToolError, match="stable/handler.js changed since it was loaded; run crib build and start again"
    ):
        refuse_changed(tool, tool.run, [])


async def test_without_a_node_the_call_is_refused_with_what_to_install(folders, monkeypatch):
    monkeypatch.setattr("toolcrib.infra.programs.executables._packaged_node", lambda: None)
    folders.search_path = ""
    with pytest.raises(ToolError) as caught:
        await folders.call(folders.tool("tell", TELL))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert caught.value.message == (
        "tell needs Node, which was not found; install Node 20.19 or newer, or pip install 'toolcrib[node]'"
    )


@pytest.mark.parametrize(("version", "is_refused"), [(b"18.20.4", True), (b"20.18.3", True), (b"20.19.0", False)])
async def test_a_node_that_is_too_old_is_refused_before_it_is_started(folders, tmp_path, version, is_refused):
    program = tmp_path / "bin" / "node"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF" + b"https://nodejs.org/download/release/v%s/node.tar.gz" % version)
    program.chmod(0o755)
    folders.search_path = str(program.parent)
    bound = folders.runner.bind(folders.tool("tell", TELL))
    if not is_refused:
        bound.check({}, None)
        return
    with pytest.raises(ToolError, match=rf"needs Node 20.19 or newer, and {program} is {version.decode()}; install"):
        bound.check({}, None)


async def test_a_folder_in_the_memory_that_every_job_has_of_its_own_is_told_with_the_cure(folders, sandbox):
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as place:
        there = type(folders)(sandbox, Path(place))
        error = await there.error(there.tool("greeter", "export const execute = () => ({ ok: true });"))
        assert error.message.endswith("every job gets a /dev/shm of its own, so move the project elsewhere")
        await there.runner.close()
