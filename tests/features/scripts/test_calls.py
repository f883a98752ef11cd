"""Tools that call tools: a script in the sandbox, its channel, the pipeline, and back."""

import asyncio
import contextlib
import json
import socket
import time

import pytest

from toolcrib import Call, Context, Kind, Result, RuleEngine, Tool, ToolError
from toolcrib.core.call_state import Policy
from toolcrib.core.confirmations import Confirmations
from toolcrib.core.grants import Grants
from toolcrib.core.journal import MemoryJournal
from toolcrib.core.pipeline import Pipeline
from toolcrib.features.functions.runner import FunctionRunner
from toolcrib.infra.programs import lent_slot, returned_value, to_outcome
from toolcrib.infra.programs.child_channel import CAPABILITY, MAX_AT_ONCE, serve_calls
from toolcrib.infra.sandbox.attempt import Lines
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import PythonFile, WorkspacePolicy, build_policy, python_runtime
from toolcrib.infra.storage import MemoryStore
from toolcrib.infra.storage.expiring import KeptResults
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.errors import LIST_THE_TOOLS
from toolcrib.model.tool import Entry, Function, Script

PATIENCE = 30
ANYTHING: dict[str, object] = {"type": "object"}
CALLING = Tool(
    name="calling",
    description="Call tools",
    parameters=ANYTHING,
    run=Function(call=print, is_async=False),
    requires=frozenset({CAPABILITY}),
)


class Runner:
    """Runs scripts that may call tools; counts how many run at once."""

    kind = Script.kind
    is_async = wants_context = True
    checks = False
    function = None

    def __init__(self, sandbox, workspace):
        self.sandbox = sandbox
        self.workspace_policy = WorkspacePolicy(workspace=workspace)
        self.running = self.most = 0

    def bind(self, tool):
        bound = Runner(self.sandbox, self.workspace_policy.workspace)
        bound.home = self
        return bound

    async def close(self):
        """Nothing is kept open."""

    def check(self, arguments, call):
        """Everything may run."""

    async def run(self, arguments, context):
        tool = context.tool
        job = PythonFile(
            path=tool.run.path,
            code=tool.run.code,
            entry="main",
            arguments=arguments,
            policy=build_policy(tool.requires, self.workspace_policy, (tool.run.path.parent, *python_runtime())),
            channel=CAPABILITY in tool.requires,
        )
        talk = serve_calls(context) if job.channel else None
        async with lent_slot() as nested:
            self.home.running += 1
            self.home.most = max(self.home.most, self.home.running)
            try:
                ended = await self.sandbox.run(job, deadline=kill_time(context.deadline), talk=talk, nested=nested)
            finally:
                self.home.running -= 1
        return to_outcome(ended, {}, lambda: returned_value(tool, job, ended, context.seconds))


@pytest.fixture
def crib(sandbox, tmp_path):
    """A pipeline over scripts, given as their code, and functions."""

    class Crib:
        tools: dict[str, Tool]
        runner = Runner(sandbox, tmp_path)

        def script(self, name, code, *requires, **facts):
            run = Script(path=tmp_path / f"{name}.py", code=code.encode(), language="python", entry="main")
            tool = Tool(
                name=name, description=name, parameters=ANYTHING, run=run, requires=frozenset(requires), **facts
            )
            self.tools[name] = tool

        def function(self, name, function, *requires):
            run = Function(call=function, is_async=asyncio.iscoroutinefunction(function))
            self.tools[name] = Tool(
                name=name, description=name, parameters=ANYTHING, run=run, requires=frozenset(requires)
            )

        async def call(self, name, seconds=PATIENCE, **arguments):
            call = Call(name=name, arguments=arguments, caller="ada", deadline=time.monotonic() + seconds)
            async with asyncio.timeout(PATIENCE):
                return await self.pipeline.call(call)

    crib = Crib()
    crib.tools = {}
    store, ledger = MemoryStore(), UsageLedger(None)
    crib.journal = MemoryJournal()
    crib.pipeline = Pipeline(
        find=lambda name, bundle=None, version=None: Entry(tool=crib.tools[name]) if name in crib.tools else None,
        cure_for=lambda name: LIST_THE_TOOLS,
        rules=RuleEngine(rules=[]),
        runners={Script.kind: crib.runner, Function.kind: FunctionRunner()},
        journal=crib.journal,
        confirmations=lambda: Confirmations(lambda: b"k" * 32, lambda: ledger, seconds=60),
        kept=lambda: KeptResults(lambda: store),
        policy=Policy(
            grants=Grants({"*": frozenset({"fs.*", "net.*", CAPABILITY})}),
            timeout_seconds=PATIENCE,
            result_bytes=100_000,
        ),
    )
    return crib


PARENT = "import rye\ndef main(tool, **arguments): return rye.execute(tool, arguments)"
CATCHING = """
import rye
def main(tool, **arguments):
    try:
        return rye.execute(tool, arguments)
    except rye.ToolError as error:
        return [error.type, str(error), error.retryable]
"""


@pytest.mark.spec("S3-15")
async def test_a_script_calls_another_tool_and_gets_its_value(crib):
    crib.script("parent", PARENT, CAPABILITY)
    crib.script("double", "def main(number): return {'twice': number * 2, 'text': 'Köln'}")
    assert (await crib.call("parent", tool="double", number=21)).value == {"twice": 42, "text": "Köln"}
    lines = [(line["tool"], line["caller"]) for line in crib.journal.read()]
    assert lines == [("/double@1.0.0", "ada"), ("/parent@1.0.0", "ada")]


@pytest.mark.spec("S3-15")
async def test_a_script_without_the_capability_is_told_what_to_list(crib):
    crib.script("parent", CATCHING)
    crib.script("double", "def main(number): return number * 2")
    value = (await crib.call("parent", tool="double", number=21)).value
    assert value == ["CAPABILITY_MISSING", "calling double requires rye.execute; list it in requires", False]


async def test_an_error_of_the_called_tool_reaches_the_script(crib):
    def busy():
        raise ToolError(Kind.RATE_LIMIT, "come back later", retryable=True)

    crib.function("busy", busy)
    crib.script("parent", CATCHING, CAPABILITY)
    assert (await crib.call("parent", tool="busy")).value == ["RATE_LIMIT", "come back later", True]
    unknown = (await crib.call("parent", tool="nobody")).value
    assert unknown[:2] == ["NOT_FOUND", "Tool 'nobody' not found; list the tools with: crib list"]


async def test_an_error_that_the_script_lets_pass_is_its_own_error(crib):
    crib.script("parent", PARENT, CAPABILITY)
    error = (await crib.call("parent", tool="nobody")).error
    assert error.kind is Kind.NOT_FOUND
    assert "nobody" in error.message


async def test_a_called_tool_gets_no_more_than_its_caller_declares(crib):
    crib.function("writes", lambda: "written", "fs.write")
    crib.script("parent", CATCHING, CAPABILITY)
    crib.script("writer", CATCHING, CAPABILITY, "fs.write")
    kind, message, _ = (await crib.call("parent", tool="writes")).value
    assert kind == "CAPABILITY_MISSING"
    assert "the tool that makes this call needs the capability itself" in message
    assert (await crib.call("writer", tool="writes")).value == "written"
    # Nor through a tool that has more: that one may not be called either.
    assert (await crib.call("parent", tool="writer", arguments={"tool": "writes"})).value[0] == "CAPABILITY_MISSING"


DIVING = """
import rye
def main(depth=0):
    try:
        return rye.execute("dive", depth=depth + 1)
    except rye.ToolError as error:
        return [depth, error.type]
"""


async def test_eleven_deep_is_too_deep(crib):
    crib.script("dive", DIVING, CAPABILITY)
    assert (await crib.call("dive")).value == [10, "CHAIN_TOO_DEEP"]
    assert crib.runner.most == 11


async def test_parents_that_hold_every_place_do_not_wait_for_one_for_their_children(crib):
    crib.script("parent", PARENT, CAPABILITY)
    crib.script("double", "def main(number): return number * 2")
    results = await asyncio.gather(*(crib.call("parent", tool="double", number=number) for number in range(16)))
    assert [result.value for result in results] == [number * 2 for number in range(16)]


FANNING = """
import rye
from concurrent.futures import ThreadPoolExecutor
def main(count, tool="child"):
    with ThreadPoolExecutor(count) as threads:
        return sorted(threads.map(lambda number: rye.execute(tool, number=number), range(count)))
"""


async def test_jobs_that_one_script_calls_for_take_turns_in_its_place(crib):
    crib.script("parent", FANNING, CAPABILITY)
    crib.script("child", "def main(number): return number")
    assert (await crib.call("parent", count=12)).value == list(range(12))
    assert crib.runner.most == 2


async def test_several_calls_run_side_by_side(crib):
    everybody = asyncio.Barrier(MAX_AT_ONCE)

    async def meet(number):
        await everybody.wait()
        return number

    crib.function("meet", meet)
    crib.script("parent", FANNING, CAPABILITY)
    assert (await crib.call("parent", count=2 * MAX_AT_ONCE, tool="meet")).value == list(range(2 * MAX_AT_ONCE))


async def test_the_deadline_of_the_parent_ends_the_child(crib, tmp_path):
    crib.script("parent", PARENT, CAPABILITY)
    crib.script("slow", "import time\ndef main(): time.sleep(60)")
    # Long enough for the parent to make its call on a busy machine.
    result = await crib.call("parent", seconds=5.0, tool="slow")
    assert result.error.kind is Kind.TIMEOUT
    assert crib.runner.running == 0
    assert {line["tool"] for line in crib.journal.read()} == {"/slow@1.0.0", "/parent@1.0.0"}


async def test_a_script_that_ends_takes_its_calls_with_it(crib):
    ended = asyncio.Event()

    async def endless():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    crib.function("endless", endless)
    code = "import os, rye, threading\ndef main():\n    threading.Thread(target=rye.execute, args=('endless',), daemon=True).start()\n    rye.execute('quick')\n    return 1"
    crib.function("quick", lambda: None)
    crib.script("parent", code, CAPABILITY)
    assert (await crib.call("parent")).value == 1
    assert ended.is_set()


async def test_a_value_too_large_to_be_handed_over_is_not_cut_in_silence(crib):
    crib.function("large", lambda: "x" * 200_000)
    crib.script("parent", CATCHING, CAPABILITY)
    kind, message, _ = (await crib.call("parent", tool="large")).value
    assert kind == "LIMIT_EXCEEDED"
    assert message.startswith("large returned 200000 bytes, more than a call hands over at once")


@pytest.fixture
async def talk():
    """Talk over a channel as a script would: hand lines in, get the answers."""
    opened = contextlib.ExitStack()

    async def run(call, *lines, answers=None):
        ours, theirs = socket.socketpair()
        opened.callback(ours.close)
        opened.callback(theirs.close)
        theirs.setblocking(False)
        context = Context(
            tool=CALLING,
            call_id="1",
            caller="ada",
            mode="text",
            deadline=0,
            seconds=0,
            session=None,
            call=call,
            audit=None,
        )
        serving = asyncio.ensure_future(serve_calls(context)(Lines(ours)))
        loop, heard = asyncio.get_running_loop(), b""
        async with asyncio.timeout(PATIENCE):
            for line in lines:
                await loop.sock_sendall(theirs, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
            while heard.count(b"\n") < (len(lines) if answers is None else answers):
                heard += await loop.sock_recv(theirs, 65536)
            theirs.close()
            await serving
        return [json.loads(line) for line in heard.splitlines()]

    yield run
    opened.close()


async def echo(name, arguments=None, /, **more):
    return Result(value=[name, arguments])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"id": 1}, "the tool is not named"),
        ({"id": 1, "tool": 5}, "the tool is not named"),
        ({"id": 1, "tool": "x", "arguments": [1]}, "the arguments are not an object"),
        ({"id": 1, "tool": "x", "grants": ["fs.write"]}, "'grants' is not a known key"),
        ({"id": 1, "tool": "x", "caller": "root"}, "'caller' is not a known key"),
    ],
)
async def test_a_malformed_request_gets_an_error_under_its_id_and_the_next_is_answered(talk, line, reason):
    first, second = await talk(echo, line, {"id": "b", "tool": "x", "arguments": {"a": 1}})
    assert (first["id"], first["ok"], first["error"]["type"]) == (1, False, "VALIDATION")
    assert first["error"]["message"] == f'{reason}; write {{"id": 1, "tool": "name", "arguments": {{}}}}'
    assert second == {"id": "b", "ok": True, "value": ["x", {"a": 1}]}


@pytest.mark.parametrize("number", [None, True, 1.5, [], {}])
async def test_an_id_that_is_none_is_refused(talk, number):
    (answer,) = await talk(echo, {"id": number, "tool": "x"})
    assert (answer["id"], answer["ok"]) == (None, False)
    assert "the id is neither a number nor a text" in answer["error"]["message"]


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"\xff\n", b'{"id": NaN}\n'])
async def test_what_is_no_json_object_ends_the_conversation(talk, line):
    (answer,) = await talk(echo, line, {"id": 1, "tool": "x"}, answers=1)
    assert answer["ok"] is False


async def test_answers_come_in_the_order_in_which_they_are_ready(talk):
    first = asyncio.Event()

    async def call(name, arguments=None, /, **more):
        if name == "slow":
            await first.wait()
        first.set()
        return Result(value=name)

    answers = await talk(call, {"id": 1, "tool": "slow"}, {"id": 2, "tool": "quick"})
    assert [answer["id"] for answer in answers] == [2, 1]


async def test_one_call_more_than_there_is_room_for_waits(talk):
    under_way, most = 0, 0

    async def call(name, arguments=None, /, **more):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(200):  # time enough for every line to be read
            await asyncio.sleep(0)
        under_way -= 1
        return Result(value=None)

    await talk(call, *({"id": number, "tool": "x"} for number in range(3 * MAX_AT_ONCE)))
    assert most == MAX_AT_ONCE


async def test_what_cannot_be_sent_is_answered_with_an_error(talk):
    async def call(name, arguments=None, /, **more):
        return Result(value=float("nan"))

    (answer,) = await talk(call, {"id": 1, "tool": "x"})
    assert (answer["id"], answer["error"]["type"]) == (1, "LIMIT_EXCEEDED")


async def test_a_channel_that_ends_cancels_what_is_under_way(talk):
    cancelled = []

    async def call(name, arguments=None, /, **more):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(name)
            raise

    assert await talk(call, {"id": 1, "tool": "a"}, {"id": 2, "tool": "b"}, answers=0) == []
    assert sorted(cancelled) in ([], ["a", "b"])


async def test_outside_every_script_no_slot_is_lent():
    async with lent_slot() as nested:
        assert not nested


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"id": 1, "do": "nonsense"}, "VALIDATION"),
        ({"id": 1, "do": ["elicit"]}, "VALIDATION"),
        ({"id": 1, "do": "elicit", "message": "?", "schema": {}}, "CAPABILITY_MISSING"),
        ({"id": 1, "do": "sample", "messages": 7}, "CAPABILITY_MISSING"),
        ({"id": 1, "do": "roots"}, "CAPABILITY_MISSING"),
    ],
)
async def test_a_question_that_cannot_be_put_is_refused_under_its_id(talk, line, kind):
    [answer] = await talk(echo, line)
    assert (answer["id"], answer["ok"], answer["error"]["type"]) == (1, False, kind)


@pytest.mark.parametrize(
    "line",
    [
        {"do": "progress", "progress": "half"},
        {"do": "progress", "progress": 1e308, "total": True},
        {"do": "progress"},
        {"do": "log", "level": "loud", "data": 1},
        {"do": "log", "level": ["info"], "data": 1},
        {"do": "log", "level": "info", "data": "x" * 200_000},
    ],
)
async def test_what_cannot_be_told_is_passed_over_and_the_next_call_is_answered(talk, line, caplog):
    [answer] = await talk(echo, line, {"id": 2, "tool": "x", "arguments": {}}, answers=1)
    assert (answer["id"], answer["ok"]) == (2, True)
    assert "calling: refused what it told its client" in caplog.text
