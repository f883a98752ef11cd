"""A handler in a worker: what it is given, what it says, and what it may import."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.jobs import Interpreter, PythonFile
from toolcrib.model.tool import Convention

FACTS = {
    "clientId": "ann",
    "tool": {"id": "sample", "version": "1.0.0", "idempotent": False},
    "session": {"isActive": True, "toolsVersion": "1.0.0", "state": {}},
    "voice": False,
}


@pytest.fixture(scope="module")
def sandbox():
    """One that asks for no guarantee: none is the matter here."""
    sandbox = make_sandbox(require=())
    yield sandbox
    sandbox.close()


@pytest.fixture
def run(sandbox, tmp_path, policy):
    """Run a handler; what it came to, and what it said."""

    async def run(code, *, answers=(), channel=True, within=sandbox, **more):
        said, waiting = [], list(answers)

        async def talk(lines):
            while (message := await lines.read()) is not None:
                said.append(message)
                for answer in waiting.pop(0) if waiting else ():
                    await lines.write(answer)

        job = PythonFile(
            path=tmp_path / "sample" / "handler.py",
            code=code.encode(),
            entry="execute",
            arguments={"args": {"a": 1}, "context": FACTS},
            policy=policy,
            convention=Convention.HANDLER,
            channel=channel,
            **more,
        )
        job.path.parent.mkdir(exist_ok=True)
        ended = await within.run(job, deadline=time.monotonic() + 60, talk=talk if channel else None)
        return json.loads(ended.result), said

    return run


async def test_a_handler_says_what_it_wants_in_lines(run):
    code = """
async def execute(args, context):
    context.audit.log("seen", {"a": args["a"]})
    context.audit.log("bare")
    await context.messaging.send({"text": "Köln"})
    return args
"""
    answers = [[{"ask": 7, "ok": False}], [{"nonsense": True}], [{"ask": 1, "ok": True}]]
    answer, said = await run(code, answers=answers)
    assert answer == {"value": {"a": 1}}
    assert said == [
        {"do": "audit", "event": "seen", "data": {"a": 1}},
        {"do": "audit", "event": "bare", "data": {}},
        {"ask": 1, "do": "send", "message": {"text": "Köln"}},
    ]


async def test_a_refusal_raises_where_the_message_is_awaited(run):
    code = """
async def execute(args, context):
    try:
        await context.messaging.send(1)
    except ConnectionError as problem:
        return str(problem)
"""
    answer, _ = await run(code, answers=[[{"ask": 1, "ok": False, "error": "nobody is there"}]])
    assert answer == {"value": "nobody is there"}


async def test_a_host_that_hangs_up_raises_where_a_message_is_awaited(sandbox, tmp_path, policy):
    code = b"""
async def execute(args, context):
    problems = []
    for _ in range(2):
        try:
            await context.messaging.send(1)
        except ConnectionError as problem:
            problems.append(str(problem))
    return problems
"""

    async def talk(lines):
        await lines.read()

    job = PythonFile(
        path=tmp_path / "handler.py",
        code=code,
        entry="execute",
        arguments={"args": {}, "context": FACTS},
        policy=policy,
        convention=Convention.HANDLER,
        channel=True,
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60, talk=talk)
    assert json.loads(ended.result) == {"value": ["the connection to the crib was closed"] * 2}


async def test_an_answer_that_is_no_longer_awaited_does_not_disturb_the_next(run):
    code = """
import asyncio
async def execute(args, context):
    try:
        await asyncio.wait_for(context.messaging.send("first"), 0.02)
    except TimeoutError:
        await context.messaging.send("second")
        return "heard"
"""
    answer, _ = await run(code, answers=[[], [{"ask": 1, "ok": True}, {"ask": 2, "ok": True}]])
    assert answer == {"value": "heard"}


async def test_a_handler_that_takes_the_answers_itself_waits_for_none(run):
    code = """
import asyncio, os, socket
def execute(args, context):
    channel = socket.socket(fileno=os.dup(int(os.environ["TOOLCRIB_CHANNEL"])))
    channel.sendall(b'{"do": "nothing"}\\n')
    channel.recv(3)
    problems = []
    for _ in range(2):
        try:
            asyncio.run(context.messaging.send(1))
        except ConnectionError as problem:
            problems.append(str(problem))
    return problems
"""
    answer, _ = await run(code, answers=[[{"ask": 1, "ok": True}]])
    assert answer == {"value": ["the connection to the crib was closed"] * 2}


async def test_messages_can_be_sent_from_several_event_loops_and_threads(run):
    code = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
def execute(args, context):
    asyncio.run(context.messaging.send("first"))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: asyncio.run(context.messaging.send(number)), range(8)))
    return True
"""
    answers = [[{"ask": number, "ok": True}] for number in range(1, 10)]
    answer, said = await run(code, answers=answers)
    assert answer == {"value": True}
    assert said[0]["message"] == "first"
    assert sorted(line["message"] for line in said[1:]) == list(range(8))


async def test_a_handler_that_says_nothing_needs_no_client(run):
    answer, said = await run("def execute(args, context): return context.clientId")
    assert (answer, said) == ({"value": "ann"}, [])


async def test_a_handler_without_a_channel_is_told_so(run):
    answer, _ = await run("def execute(args, context): pass", channel=False)
    assert answer["error"]["message"] == "execute needs a channel, and this call has none"


async def test_the_very_first_handler_of_a_launcher_may_fail(run):
    fresh = make_sandbox(require=())
    try:
        answer, _ = await run("def execute(args, context): raise KeyError('k')", within=fresh)
    finally:
        fresh.close()
    assert answer["error"]["type"] == "KeyError"
    assert "raise KeyError('k')" in answer["error"]["traceback"]


# --- what it may import -------------------------------------------------------------------------------------------------


@pytest.fixture
def bare():
    """A Python in which Toolcrib is not installed."""
    prefix = Path(sys.base_prefix)
    return Interpreter(
        program=Path(sys.executable),
        executable=Path(sys.executable),
        prefix=prefix,
        base=prefix,
        version=sys.version_info[:3],
        packages=(),
    )


@pytest.mark.parametrize(
    "code",
    [
        "from toolcrib.handler import ErrorType, ToolError",
        "import toolcrib.handler\nErrorType, ToolError = toolcrib.handler.ErrorType, toolcrib.handler.ToolError",
        "from toolcrib import handler\nErrorType, ToolError = handler.ErrorType, handler.ToolError",
    ],
)
@pytest.mark.parametrize("installed", [True, False])
async def test_a_handler_imports_its_errors_whether_toolcrib_is_installed_or_not(run, bare, code, installed):
    code += (
        "\ndef execute(args, context): raise ToolError(ErrorType.AUTH, 'm', retryable=True, partialSideEffects=True)"
    )
    answer, _ = await run(code, interpreter=None if installed else bare)
    assert answer["error"]["tool_error"] == {
        "kind": "AUTH",
        "retryable": True,
        "partial_side_effects": True,
        "details": {},
    }


async def test_another_toolcrib_that_is_installed_has_no_say_in_it(run, bare, tmp_path):
    package = tmp_path / "packages" / "toolcrib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0.0.1'")
    (package / "handler.py").write_text("class ToolError: pass")
    code = """
import toolcrib
from toolcrib.handler import ErrorType
def execute(args, context): return [toolcrib.__version__, ErrorType.AUTH]
"""
    answer, _ = await run(code, interpreter=replace(bare, packages=(str(package.parent),)))
    assert answer == {"value": ["0.0.1", "AUTH"]}


async def test_where_toolcrib_is_not_installed_there_is_nothing_else_of_it(run, bare):
    code = """
import toolcrib
def execute(args, context):
    import toolcrib.model
"""
    answer, _ = await run(code, interpreter=bare)
    assert answer["error"]["missing"] == "toolcrib.model"


async def test_a_handler_imports_its_own_files_and_the_shared_ones_and_no_other_folder(run, tmp_path):
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "traces.py").write_text("WORD = 'own'")
    (tmp_path / "_shared").mkdir()
    (tmp_path / "_shared" / "more.py").write_text("WORD = 'shared'")
    (tmp_path / "other").mkdir()
    code = """
import traces
from _shared.more import WORD
def execute(args, context):
    try:
        import other
    except ModuleNotFoundError as problem:
        return [traces.WORD, WORD, str(problem)]
"""
    answer, _ = await run(code)
    assert answer == {"value": ["own", "shared", "No module named 'other'"]}


async def test_other_files_of_code_see_nothing_of_all_this(sandbox, tmp_path, policy):
    (tmp_path / "_shared").mkdir()
    code = b"""
import sys
def main():
    try:
        import _shared
    except ModuleNotFoundError:
        return [getattr(finder, "__module__", "") for finder in sys.meta_path]
"""
    job = PythonFile(path=tmp_path / "own" / "file.py", code=code, entry="main", arguments={}, policy=policy)
    job.path.parent.mkdir()
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert not [module for module in json.loads(ended.result)["value"] if module.endswith("handler_context")]
