"""Handlers in Python, from the call through the sandbox and back."""

import asyncio
import importlib.util
import json
import py_compile
import time

import pytest

from toolcrib import Call, Kind, Limits, Session, Tool
from toolcrib.features.folders.runner import MAX_UNDER_WAY, PythonHandler
from toolcrib.infra.sandbox.jobs import WorkspacePolicy
from toolcrib.model.tool import Handler

PATIENCE = 30
OPEN = {"type": "object"}


class Runner:
    """Runs handlers in Python and nothing else."""

    kind = Handler.kind

    def __init__(self, sandbox, workspace):
        self.sandbox = sandbox
        self.workspace_policy = WorkspacePolicy(workspace=workspace)
        self.observe = False
        self.egress = None

    def bind(self, tool):
        parts = {"sandbox": self.sandbox, "workspace_policy": self.workspace_policy, "egress": lambda: self.egress}
        return PythonHandler(tool, tool.run, **parts, interpreter=lambda run: None, observe=self.observe)

    async def close(self):
        """What it uses belongs to the fixture."""


class Bench:
    """A crib over tool folders."""

    def __init__(self, crib_of, runner, root):
        self.crib = crib_of()
        self.crib._resources.runners[Handler.kind] = self.runner = runner
        self.root = root

    def add(self, code, *, name="sample", files=(), shared=(), hosts=None, **facts):
        """A tool whose folder holds this handler and these files."""
        folder = name.replace("_", "-")
        files = {f"{folder}/{path}": text.encode() for path, text in {"handler.py": code, **dict(files)}.items()}
        shared = {path: text.encode() for path, text in dict(shared).items()}
        for path, content in {**files, **shared}.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(content)
        run = Handler(
            root=self.root,
            folder=folder,
            language="python",
            files=files,
            shared=shared,
            registry="1.0.0badcafe",
            hosts=hosts,
        )
        facts = {"description": "d", "parameters": OPEN, "limits": Limits(timeout_ms=PATIENCE * 1000), **facts}
        tool = Tool(name=name, run=run, **facts)
        self.crib.add(tool)
        return tool

    async def call(self, name="sample", *, session=None, **arguments):
        async with asyncio.timeout(PATIENCE + 5):
            return await self.crib.call(Call(name=name, arguments=arguments, caller="ann", session=session))

    async def run(self, code, *, session=None, arguments=(), **more):
        self.add(code, **more)
        return await self.call(session=session, **dict(arguments))

    def audited(self):
        return [line for line in self.crib.journal.read() if line["event"] != "call"]


@pytest.fixture
def bench(crib_of, sandbox, tmp_path):
    root, workspace = tmp_path / "tools", tmp_path / "work"
    root.mkdir()
    workspace.mkdir()
    return Bench(crib_of, Runner(sandbox, workspace), root)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def session(heard):
    async def send(message):
        heard.append(message)

    return Session(id="s", send=send, state={"offences": {"count": 2}})


# --- the guide's complete example ---------------------------------------------------------------------------------------

COMPLETE = '''
"""Block user for specified duration."""

import time

from toolcrib.handler import ErrorType, ToolError


async def execute(args, context):
    duration_seconds, farewell_message = args["duration_seconds"], args["farewell_message"]

    if not context.session.isActive:
        return {
            "ok": False,
            "error": {
                "type": ErrorType.SESSION_INACTIVE,
                "message": "Cannot timeout user - session already ended",
                "retryable": False,
            },
        }

    timeout_until = int(time.time() * 1000) + duration_seconds * 1000

    try:
        await context.messaging.send(
            {
                "type": "timeout",
                "durationSeconds": duration_seconds,
                "timeoutUntil": timeout_until,
                "farewellMessage": farewell_message,
            }
        )
    except Exception as error:
        raise ToolError(
            ErrorType.TRANSIENT, "Failed to send timeout command", retryable=True, partial_side_effects=False
        ) from error

    context.audit.log("user_timeout", {"duration": duration_seconds, "timeoutUntil": timeout_until})

    return {
        "ok": True,
        "data": {"timeoutUntil": timeout_until, "duration": duration_seconds},
        "intents": [
            {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
            {"type": "SUPPRESS_AUDIO", "value": True},
        ],
    }
'''
GIVEN = {"duration_seconds": 60, "farewell_message": "I don't tolerate disrespect. This conversation is over."}


@pytest.mark.spec("S2-35", "S2-37", "S2-38", "S2-69")
async def test_the_complete_example_in_an_active_session_sends_once_audits_once_and_intends_two_things(
    bench, session, heard
):
    before = time.time() * 1000
    bench.add(COMPLETE, name="ignore_user")
    result = await bench.call("ignore_user", session=session, **GIVEN)
    assert result.error is None
    until = result.value["timeoutUntil"]
    assert before + 60_000 - 1 <= until <= time.time() * 1000 + 60_000
    assert result.value == {"timeoutUntil": until, "duration": 60}
    assert heard == [
        {
            "type": "timeout",
            "durationSeconds": 60,
            "timeoutUntil": until,
            "farewellMessage": "I don't tolerate disrespect. This conversation is over.",
        }
    ]
    assert [(line["event"], line["tool"], line["caller"], line["data"]) for line in bench.audited()] == [
        ("user_timeout", "/ignore-user@1.0.0", "ann", {"duration": 60, "timeoutUntil": until})
    ]
    assert [intent.to_json() for intent in result.intents] == [
        {"type": "END_VOICE_SESSION", "after": "farewell_spoken"},
        {"type": "SUPPRESS_AUDIO", "value": True},
    ]


@pytest.mark.spec("S2-40", "S2-69")
async def test_the_complete_example_without_an_active_session_fails_as_it_says_and_does_nothing(bench, session, heard):
    session.close()
    bench.add(COMPLETE, name="ignore_user")
    for given in (session, None):
        error = (await bench.call("ignore_user", session=given, **GIVEN)).error
        assert error.to_json() == {
            "type": "SESSION_INACTIVE",
            "message": "Cannot timeout user - session already ended",
            "retryable": False,
            "partialSideEffects": False,
            "details": {},
        }
    assert (heard, bench.audited()) == ([], [])


@pytest.mark.spec("S2-35", "S2-41", "S2-69")
async def test_the_complete_example_with_a_connection_that_fails_raises_what_it_says_and_audits_nothing(bench):
    async def fail(message):
        raise ConnectionResetError

    bench.add(COMPLETE, name="ignore_user")
    for session in (Session(id="a", send=fail), Session(id="b")):
        error = (await bench.call("ignore_user", session=session, **GIVEN)).error
        assert error.to_json() == {
            "type": "TRANSIENT",
            "message": "Failed to send timeout command",
            "retryable": True,
            "partialSideEffects": False,
            "details": {},
        }
    assert bench.audited() == []


# --- the context --------------------------------------------------------------------------------------------------------

TELL = """
async def execute(args, context):
    names = [
        context.clientId, context.client_id, context["clientId"],
        context.tool.id, context.tool["version"], context.tool.idempotent,
        context.session.isActive, context.session.is_active,
        context.session.toolsVersion, context.session.tools_version,
        context.session.state["offences"]["count"], context["session"]["state"]["offences"],
        context.voice.isActive(), context.voice.is_active(),
    ]
    return {"ok": True, "data": {"names": names, "tool": context.tool, "session": context.session, "args": args}}
"""


@pytest.mark.spec("S2-32", "S2-33", "S2-34", "S2-36", "S2-69")
@pytest.mark.parametrize("mode", ["text", "voice"])
async def test_a_handler_reads_its_context_in_both_spellings(bench, mode):
    facts = {"state": {"offences": {"count": 2}}}
    result = await bench.run(
        TELL, session=Session(id="s", mode=mode, **facts), arguments={"q": ["é"]}, version="2.1.0", idempotent=True
    )
    voice = mode == "voice"
    assert result.value == {
        "names": [
            *("ann", "ann", "ann", "sample", "2.1.0", True, True, True, "1.0.0badcafe", "1.0.0badcafe"),
            *(2, {"count": 2}, voice, voice),
        ],
        "tool": {"id": "sample", "version": "2.1.0", "idempotent": True},
        "session": {"isActive": True, "toolsVersion": "1.0.0badcafe", "state": {"offences": {"count": 2}}},
        "args": {"q": ["é"]},
    }


async def test_a_plain_function_is_a_handler_too(bench, session):
    code = "def execute(args, context): return {'ok': True, 'data': [args, context.session.isActive]}"
    assert (await bench.run(code, session=session, arguments={"a": 1})).value == [{"a": 1}, True]


async def test_what_the_context_does_not_have_is_said_with_what_it_has(bench, caplog):
    error = (await bench.run("def execute(args, context): return context.ws")).error
    assert error.message == "sample failed unexpectedly (AttributeError); the log has the details"
    assert "there is no ws; there are clientId, tool, session, messaging, voice, audit" in caplog.text


@pytest.mark.spec("S2-34")
async def test_what_a_handler_writes_into_its_state_or_arguments_changes_nothing_outside(bench, session):
    code = """
def execute(args, context):
    args["list"].append(1)
    context.session.state["offences"]["count"] = 99
    try:
        context.session.state["new"] = 1
    except TypeError as problem:
        return {"ok": True, "data": str(problem)}
"""
    arguments = {"list": []}
    result = await bench.run(code, session=session, arguments=arguments)
    assert result.value == "'mappingproxy' object does not support item assignment"
    assert dict(session.state) == {"offences": {"count": 2}}
    assert arguments == {"list": []}


@pytest.mark.spec("S2-35")
async def test_a_connection_that_closes_while_a_message_is_under_way_raises_in_the_handler(bench):
    async def hang(message):
        session.disconnect()
        await asyncio.Event().wait()

    session = Session(id="s", send=hang)
    code = """
async def execute(args, context):
    try:
        await context.messaging.send("hello")
    except ConnectionError as problem:
        return {"ok": True, "data": str(problem)}
"""
    assert "connection closed" in (await bench.run(code, session=session)).value


async def test_messages_arrive_in_their_order_and_beside_each_other_for_every_waiting_task(bench, session, heard):
    code = """
import asyncio
import importlib.util
async def execute(args, context):
    tasks = [asyncio.create_task(context.messaging.send(number)) for number in range(50)]
    await asyncio.gather(*tasks, context.messaging.send(50))
    return {"ok": True}
"""
    assert (await bench.run(code, session=session)).ok
    assert heard == list(range(51))


async def test_a_message_that_is_not_awaited_arrives_all_the_same(bench, session, heard):
    code = "def execute(args, context):\n    context.messaging.send('hello')\n    return {'ok': True}"
    result = await bench.run(code, session=session)
    assert (result.ok, heard) == (True, ["hello"])
    assert "was never awaited" in result.meta["stderr"]


async def test_a_message_that_is_not_awaited_and_not_received_is_no_success(bench):
    code = "def execute(args, context):\n    context.messaging.send('hello')\n    return {'ok': True}"
    error = (await bench.run(code)).error
    assert (error.kind, error.message) == (
        Kind.SESSION_INACTIVE,
        "sample: there is no session, so no client gets the message; nothing was sent; call it in a session: crib.session(send=…)",
    )


async def test_a_handler_that_gives_up_on_a_client_goes_on_and_what_it_audits_is_written(bench):
    async def hang(message):
        await asyncio.Event().wait()

    code = """
import asyncio
import importlib.util
from toolcrib.handler import ErrorType
async def execute(args, context):
    try:
        await asyncio.wait_for(context.messaging.send("hello"), 0.05)
    except TimeoutError:
        context.audit.log("unreachable")
        return {"ok": False, "error": {"type": ErrorType.TRANSIENT, "message": "gone", "retryable": False}}
"""
    error = (await bench.run(code, session=Session(id="s", send=hang))).error
    assert (error.kind, error.message) == (Kind.TRANSIENT, "gone")
    assert [line["event"] for line in bench.audited()] == ["unreachable"]


async def test_the_time_limit_of_the_handler_ends_a_message_to_a_client_that_hangs(bench):
    ended = asyncio.Event()

    async def hang(message):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    code = "async def execute(args, context): await context.messaging.send('hello')"
    limits = Limits(timeout_ms=1000)
    error = (await bench.run(code, session=Session(id="s", send=hang), limits=limits)).error
    assert (error.kind, error.partial_side_effects) == (Kind.TIMEOUT, True)
    assert ended.is_set()


async def test_a_handler_that_floods_a_client_that_is_slow_waits_with_it(bench):
    most = 0

    async def send(message):
        nonlocal most
        for _ in range(10_000):
            if message > 0 or len(asyncio.all_tasks()) >= MAX_UNDER_WAY:
                break
            await asyncio.sleep(0.001)
        for _ in range(100):  # time enough for more lines to be read
            await asyncio.sleep(0)
        most = max(most, len(asyncio.all_tasks()))

    code = """
async def execute(args, context):
    for number in range(200):
        context.messaging.send(number).close()
    return {"ok": True}
"""
    assert (await bench.run(code, session=Session(id="s", send=send))).ok
    assert MAX_UNDER_WAY <= most < MAX_UNDER_WAY + 10


@pytest.mark.spec("S2-37")
@pytest.mark.parametrize("ending", ["return {'ok': True}", "raise ValueError", "sys.exit(1)", "time.sleep(60)"])
async def test_what_was_audited_is_written_however_the_handler_ends(bench, ending):
    code = f"""
import sys, time
def execute(args, context):
    for number in range(20):
        context.audit.log("step", {{"number": number}})
    {ending}
"""
    await bench.run(code, limits=Limits(timeout_ms=1000))
    assert [line["data"]["number"] for line in bench.audited()] == list(range(20))


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("context.audit.log(5)", "ValueError: the event of an audit entry is a text of 1 to 200 letters"),
        ("context.audit.log('x' * 201)", "ValueError: the event of an audit entry is a text of 1 to 200 letters"),
        ("context.audit.log('e', [1])", "TypeError: the data of the audit entry 'e' is a list; write {...}"),
        ("context.audit.log('e', {'o': object()})", "TypeError: Object of type object is not JSON serializable"),
        ("await context.messaging.send({1, 2})", "TypeError: Object of type set is not JSON serializable"),
        ("await context.messaging.send('x' * 9_000_000)", "ValueError: a message of 9000035 bytes is longer than"),
        ("context.clientId = 'root'", "AttributeError: 'Facts' object has no attribute 'clientId'"),
    ],
)
async def test_what_cannot_be_said_raises_in_the_handler_and_the_next_words_are_heard(
    bench, session, heard, statement, problem
):
    code = f"""
async def execute(args, context):
    try:
        {statement}
    except Exception as problem:
        await context.messaging.send("still there")
        return {{"ok": True, "data": f"{{type(problem).__name__}}: {{problem}}"}}
"""
    assert (await bench.run(code, session=session)).value.startswith(problem)
    assert heard == ["still there"]
    assert bench.audited() == []


# --- what it answers ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S2-41", "S2-69")
async def test_a_tool_error_comes_with_its_four_facts_beside_what_was_printed(bench):
    code = """
from toolcrib.handler import ErrorType, ToolError
def execute(args, context):
    print("as far as here")
    raise ToolError(ErrorType.CONFLICT, "taken", retryable=True, partialSideEffects=True, details={"row": 3})
"""
    result = await bench.run(code)
    assert result.error.to_json() == {
        "type": "CONFLICT",
        "message": "taken",
        "retryable": True,
        "partialSideEffects": True,
        "details": {"row": 3},
    }
    assert result.meta["stdout"] == "as far as here\n"
    assert "fs" in result.meta["sandbox"]["guarantees"]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("ToolError('CONFIRMATION_REQUIRED', 'm', details={'confirmation': 'x'})", Kind.PERMANENT),
        ("ToolError('NONSENSE', 'm')", Kind.INTERNAL),
        ("ToolError(None, 'm')", Kind.INTERNAL),
        ("ToolError(object(), 'm', retryable=object(), details=object())", Kind.INTERNAL),
    ],
)
async def test_a_tool_error_cannot_pass_for_what_it_is_not(bench, raised, kind):
    code = f"from toolcrib.handler import ToolError\ndef execute(args, context): raise {raised}"
    error = (await bench.run(code)).error
    assert error.kind is kind
    assert error.details == {}


@pytest.mark.spec("S2-42", "S2-69")
@pytest.mark.parametrize(
    "raised",
    [
        "KeyError('password 12345')",
        "Nasty('password 12345')",
        "BaseException('password 12345')",
        "KeyboardInterrupt('password 12345')",
        "ExceptionGroup('password 12345', [ValueError()])",
        "'password 12345'",
        "ToolErrors('password 12345')",
    ],
)
async def test_anything_else_that_is_raised_is_told_by_its_name_alone_and_the_next_call_runs(bench, raised, caplog):
    code = f"""
class Nasty(Exception):
    def __str__(self): raise RuntimeError
class ToolErrors(Exception): pass
def execute(args, context):
    if args: raise {raised}
    return {{"ok": True}}
"""
    error = (await bench.run(code, arguments={"fail": True})).error
    assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.INTERNAL, False, True)
    assert error.message.startswith("sample failed unexpectedly (")
    assert "12345" not in json.dumps(error.to_json())
    assert "line " in caplog.text
    assert (await bench.call()).ok


@pytest.mark.spec("S2-43", "S2-69")
@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("None", "it is null and no object"),
        ("'done'", "it is text and no object"),
        ("[1]", "it is a list and no object"),
        ("{1, 2}", "it is a list and no object"),
        ("{}", "it has no ok"),
        ("{'ok': 'yes'}", "ok is text and neither true nor false"),
        ("{'ok': False}", "error is null and no object"),
        ("{'ok': False, 'error': {'type': 'CONFLICT', 'message': 'm'}}", "error.retryable is null"),
        ("{'ok': True, 'intents': [{}]}", "intents[0].type is null and no name"),
        ("execute", "it has no JSON form: a function has no JSON form"),
        ("{'ok': True, 'data': object()}", "it has no JSON form: data: a object has no JSON form"),
        ("{'ok': True, 'data': float('nan')}", "it has no JSON form: data: a float of nan"),
        ("{'ok': True, 'data': '\\ud800'}", "it has no JSON form: data: a str with a lone surrogate"),
        ("{'ok': True, 'data': context}", "it has no JSON form: data.messaging: a _Messaging"),
    ],
)
async def test_what_is_no_response_is_refused_with_what_is_wrong(bench, returned, reason):
    error = (await bench.run(f"def execute(args, context): return {returned}")).error
    assert (error.kind, error.partial_side_effects) == (Kind.INTERNAL, True)
    assert error.message.startswith(f"sample gave an invalid response: {reason}")


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("sys.exit(3)", Kind.INTERNAL, "sample ended itself with exit code 3; return a value from execute"),
        ("os._exit(3)", Kind.INTERNAL, "sample ended with exit code 3 before it returned a result"),
        ("os.kill(os.getpid(), 9)", Kind.INTERNAL, "sample was ended by SIGKILL before it returned a result"),
        ("return {'ok': True, 'data': 'x' * 9_000_000}", Kind.LIMIT_EXCEEDED, "sample returned more than"),
        ("bytearray(5_000_000_000)", Kind.LIMIT_EXCEEDED, "sample ran out of memory"),
        ("import no_such_module", Kind.EXECUTOR_NOT_FOUND, "sample needs the Python module no_such_module"),
        ("import socket; socket.socket()", Kind.INTERNAL, "sample was denied access to the network"),
    ],
)
async def test_a_handler_that_comes_to_no_answer_is_told_why(bench, statement, kind, message):
    code = f"import os, sys\ndef execute(args, context):\n    {statement}"
    error = (await bench.run(code)).error
    assert (error.kind, error.partial_side_effects) == (kind, True)
    assert error.message.startswith(message)


async def test_a_handler_that_never_ends_is_ended(bench):
    code = "def execute(args, context):\n    while True: pass"
    error = (await bench.run(code, limits=Limits(timeout_ms=600))).error
    assert (error.kind, error.partial_side_effects) == (Kind.TIMEOUT, True)


@pytest.mark.parametrize(
    "garbage", [b"nonsense\n", b"\xff\xfe\n", b"[]\n", b'{"do": NaN}\n', b'"' + b"x" * 100_000 + b"\n"]
)
async def test_garbage_on_the_channel_fails_the_call_as_what_follows_would_go_unheard(bench, session, garbage, heard):
    code = f"""
import os
async def execute(args, context):
    await context.messaging.send("before")
    os.write(int(os.environ["TOOLCRIB_CHANNEL"]), {garbage!r})
    try:
        await context.messaging.send("after")
    except ConnectionError as problem:
        return {{"ok": True, "data": str(problem)}}
"""
    error = (await bench.run(code, session=session)).error
    assert (error.kind, error.partial_side_effects) == (Kind.INTERNAL, True)
    assert error.message.startswith("a handler said something that cannot be read: ")
    assert heard == ["before"]


async def test_arguments_as_deep_as_they_may_be_can_be_put_on_record(bench):
    deep = {"a": 1}
    for _ in range(60):
        deep = {"a": deep}
    code = "def execute(args, context):\n    context.audit.log('asked', {'args': args})\n    return {'ok': True}"
    result = await bench.run(code, arguments={"deep": deep})
    assert result.ok, result.error
    assert [line["event"] for line in bench.crib.journal.read()] == ["asked", "call"]


@pytest.mark.parametrize(
    "said", ["context.audit.log('x', {'a': '\\ud800'})", "await context.messaging.send('\\ud800')"]
)
async def test_half_a_character_is_refused_inside_the_handler(bench, session, heard, said):
    code = f"""
async def execute(args, context):
    try:
        {said}
    except ValueError:
        await context.messaging.send("refused")
    return {{"ok": True}}
"""
    result = await bench.run(code, session=session)
    assert result.ok, result.error
    assert heard == ["refused"]


async def test_a_line_that_the_handler_forges_is_answered_as_what_it_says(bench, session, heard):
    code = """
import os
def execute(args, context):
    channel = int(os.environ["TOOLCRIB_CHANNEL"])
    os.write(channel, b'{"ask": "x", "do": "send", "message": 1}\\n{"do": "call", "tool": "other"}\\n{"ask": 9}\\n')
    context.audit.log("call", {"ok": True})
    return {"ok": True}
"""
    assert (await bench.run(code, session=session)).ok
    assert heard == [1]
    assert [line["event"] for line in bench.audited()] == ["audit:call"]


async def test_a_process_that_the_handler_forks_answers_nothing_and_says_nothing(bench, session, heard):
    code = """
import asyncio, os
def execute(args, context):
    if os.fork() == 0:
        for say in (lambda: context.audit.log("forked"), lambda: context.messaging.send("forked")):
            try:
                say()
            except ConnectionError:
                continue
        return {"ok": True, "data": "of the fork"}
    os.wait()
    asyncio.run(context.messaging.send("of the handler"))
    return {"ok": True, "data": "of the handler"}
"""
    assert (await bench.run(code, session=session)).value == "of the handler"
    assert heard == ["of the handler"]
    assert bench.audited() == []


async def test_a_handler_cannot_call_tools(bench, session):
    code = "import rye\ndef execute(args, context): rye.execute('other')"
    error = (await bench.run(code, session=session)).error
    assert error.kind is Kind.PERMANENT
    assert "calling other requires rye.execute" in error.message


# --- where it runs ------------------------------------------------------------------------------------------------------


async def test_a_handler_runs_from_the_bytes_that_were_checked_with_its_neighbours_and_what_is_shared(bench):
    code = """
from pathlib import Path
import helper
from _core.words import WORD
import _core.words
def execute(args, context):
    return {"ok": True, "data": [helper.NUMBER, WORD, Path(__file__).with_name("data.txt").read_text()]}
"""
    files = {"helper.py": "NUMBER = 1", "data.txt": "as checked"}
    bench.add(code, files=files, shared={"_core/words.py": "WORD = 'shared'"})
    for path in ("sample/handler.py", "sample/helper.py", "sample/data.txt", "_core/words.py"):
        (bench.root / path).write_text("changed")
    assert (await bench.call()).value == [1, "shared", "as checked"]


async def test_a_shared_folder_may_be_a_package_of_its_own(bench):
    code = "from _core import WORD\ndef execute(args, context): return {'ok': True, 'data': WORD}"
    shared = {"_core/__init__.py": "from _core.words import WORD", "_core/words.py": "WORD = 'shared'"}
    assert (await bench.run(code, shared=shared)).value == "shared"


async def test_a_handler_sees_nothing_of_other_tools_and_of_the_workspace(bench):
    code = """
from pathlib import Path
def execute(args, context):
    seen = []
    for path in args["paths"]:
        try:
            seen.append(Path(path).read_text())
        except OSError:
            seen.append(None)
    return {"ok": True, "data": seen}
"""
    bench.add("SECRET = 1", name="other")
    (bench.runner.workspace_policy.workspace / "file").write_text("of the workspace")
    paths = [bench.root / "other" / "handler.py", bench.runner.workspace_policy.workspace / "file", "/etc/machine-id"]
    bench.add(code)
    assert (await bench.call(paths=[str(path) for path in paths])).value == [None, None, None]


async def test_an_import_of_toolcrib_works_as_ever(bench):
    code = """
import toolcrib, toolcrib.handler
from toolcrib import handler, Kind
from toolcrib.handler import ErrorType
def execute(args, context):
    same = toolcrib.handler is handler and ErrorType.AUTH == Kind.AUTH
    return {"ok": True, "data": [toolcrib.__version__, same]}
"""
    import toolcrib

    assert (await bench.run(code)).value == [toolcrib.__version__, True]


async def test_a_file_without_execute_is_told_what_to_write(bench, caplog):
    error = (await bench.run("def run(args, context): pass")).error
    assert error.kind is Kind.INTERNAL
    assert "there is no function named execute; write def execute(...)" in caplog.text


async def test_a_handler_that_is_not_there_and_one_in_another_language_are_refused_before_anything_runs(bench):
    for language, kind in (("python", Kind.NOT_FOUND), ("javascript", Kind.EXECUTOR_NOT_FOUND)):
        run = Handler(root=bench.root, folder=language, language=language, files={})
        bench.crib.add(Tool(name=language, description="d", parameters=OPEN, run=run))
        error = (await bench.call(language)).error
        assert (error.kind, error.partial_side_effects) == (kind, False)
        assert f"{language}/handler." in error.message


async def test_what_an_observed_handler_tries_is_told(bench):
    bench.runner.observe = True
    code = """
def execute(args, context):
    try:
        open("/etc/shadow")
    except OSError:
        return {"ok": True, "data": 1, "intents": [{"type": "SUPPRESS_AUDIO"}]}
"""
    result = await bench.run(code)
    assert {"act": "read", "what": "/etc/shadow", "denied": True} in result.meta["effects"]
    assert [intent.type for intent in result.intents] == ["SUPPRESS_AUDIO"]


async def test_handlers_of_one_tool_run_side_by_side_and_keep_their_sessions_apart(bench):
    code = """
async def execute(args, context):
    await context.messaging.send([context.session.state["number"], args["number"]])
    return {"ok": True, "data": args["number"]}
"""
    bench.add(code)
    heard = {number: [] for number in range(6)}

    def session_of(number):
        async def send(message):
            heard[number].append(message)

        return Session(id=str(number), send=send, state={"number": number})

    results = await asyncio.gather(*(bench.call(session=session_of(number), number=number) for number in heard))
    assert [result.value for result in results] == list(heard)
    assert heard == {number: [[number, number]] for number in range(6)}


async def test_bytecode_beside_a_module_does_not_count_even_where_the_workspace_may_be_read(bench):
    code = "import helper\ndef execute(args, context):\n    return {'ok': True, 'data': helper.word}"
    bench.add(code, files={"helper.py": "word = 'checked'"}, requires=frozenset({"fs.read"}))
    planted = bench.root / "planted.py"
    planted.write_text("word = 'planted'")
    target = importlib.util.cache_from_source(str(bench.root / "sample" / "helper.py"))
    py_compile.compile(str(planted), target, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert (await bench.call()).value == "checked"


async def test_a_module_put_beside_a_handler_that_reads_the_workspace_does_not_run(bench):
    code = "import colorsys\ndef execute(args, context):\n    return {'ok': True, 'data': hasattr(colorsys, 'planted')}"
    bench.add(code, requires=frozenset({"fs.read"}))
    assert (await bench.call()).value is False
    (bench.root / "sample" / "colorsys.py").write_text("planted = True")
    assert (await bench.call()).error.kind is Kind.CONFLICT
