"""The protocol over standard input and output, with the real program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interfaces.mcp.conftest import NEW, OLD, meta

from warm_python import WarmPython

HOST = '''
import asyncio
from toolcrib import Context, tool

@tool
def add(first: int, second: int) -> int:
    """Add."""
    print("what a tool prints is not a message")
    return first + second

@tool
async def ask(context: Context) -> str:
    """Ask."""
    answer = await context.elicit("?", {"type": "object", "properties": {}})
    return answer["action"]

@tool
async def slow() -> str:
    """Take long."""
    await asyncio.sleep(60)
    return ""

@tool
def read_line() -> str:
    """Read standard input."""
    import sys
    return repr(sys.stdin.readline())
'''
INITIALIZE = {
    "protocolVersion": OLD,
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "test", "version": "1"},
}


class Program:
    """`crib mcp` as a client starts it."""

    def __init__(self, project: Path, *words: str) -> None:
        self.process = WarmPython(
            ["-m", "toolcrib", "mcp", *words],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.ids = 0

    def send(self, message: object) -> None:
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask(self, method: str, params: dict | None = None) -> dict:
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params or {}})
        return self.read()

    def tell(self, method: str, params: dict | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def open(self) -> dict:
        opened = self.ask("initialize", INITIALIZE)
        self.tell("notifications/initialized")
        return opened

    def end(self) -> tuple[int, bytes]:
        """Close the input, and give the exit code and what was still said."""
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, out


@pytest.fixture
def start(project) -> Iterator[Callable[..., Program]]:
    (project / "host_of_mcp.py").write_text(HOST)
    (project / "toolcrib.toml").write_text('[modules]\ntools = ["host_of_mcp"]\n[builtins]\nenabled = false\n')
    started: list[Program] = []

    def begin(*words: str) -> Program:
        started.append(Program(project, *words))
        return started[-1]

    yield begin
    for program in started:
        program.process.kill()
        program.process.communicate()


def test_an_older_client_opens_a_session_lists_calls_and_leaves(start):
    program = start()
    opened = program.open()
    listed = program.ask("tools/list")
    called = program.ask("tools/call", {"name": "add", "arguments": {"first": 1, "second": 2}})
    assert opened["result"]["protocolVersion"] == OLD
    assert [each["name"] for each in listed["result"]["tools"]] == ["add", "ask", "read_line", "slow"]
    assert called["result"]["structuredContent"] == {"result": 3}
    assert program.end() == (0, b"")


def test_a_stateless_client_needs_no_opening_and_may_discover_first(start):
    program = start()
    assert NEW in program.ask("server/discover", {"_meta": meta()})["result"]["supportedVersions"]
    arguments = {"name": "add", "arguments": {"first": 1, "second": 2}, "_meta": meta()}
    assert program.ask("tools/call", arguments)["result"]["structuredContent"] == 3
    asked = program.ask("tools/call", {"name": "ask", "_meta": meta()})["result"]
    assert asked["resultType"] == "input_required"
    again = {"name": "ask", "_meta": meta(), "requestState": asked["requestState"]}
    answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
    assert program.ask("tools/call", {**again, "inputResponses": answers})["result"]["content"][0]["text"] == "decline"


def test_a_question_of_a_session_is_a_request_that_the_client_answers(start):
    program = start()
    program.open()
    question = program.ask("tools/call", {"name": "ask"})
    assert question["method"] == "elicitation/create"
    program.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})
    assert program.read()["result"]["content"][0]["text"] == "cancel"


def test_a_cancelled_request_is_not_answered_and_the_next_one_is(start):
    program = start()
    program.open()
    program.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "slow"}})
    program.tell("notifications/cancelled", {"requestId": "slow"})
    assert program.ask("ping")["result"] == {}
    assert program.end() == (0, b"")


def test_what_is_no_message_is_answered_and_the_connection_goes_on(start):
    program = start()
    program.open()
    for raw, code in ((b"{", -32700), (b"[]", -32600), (b"x" * 4_000_001, -32700), (b'{"id":1}', -32600)):
        program.send(raw)
        assert program.read()["error"]["code"] == code
    program.send(b"")
    assert program.ask("ping")["result"] == {}
    assert program.ask("no/such")["error"]["code"] == -32601


def test_what_is_no_answer_is_not_answered(start):
    program = start()
    program.open()
    for rubbish in ({"id": None, "error": {"code": 1, "message": "?"}}, {"id": 1, "result": []}):
        program.send({"jsonrpc": "2.0", **rubbish})
    assert program.ask("ping")["result"] == {}


def test_a_session_is_not_opened_by_a_request_of_the_stateless_wire(start):
    assert start().ask("initialize", {**INITIALIZE, "_meta": meta()})["error"]["code"] == -32601


def test_a_request_before_the_session_is_open_is_refused(start):
    assert "initialize" in start().ask("tools/list")["error"]["message"]


def test_a_tool_reads_nothing_from_standard_input(start):
    program = start()
    program.open()
    assert program.ask("tools/call", {"name": "read_line"})["result"]["content"][0]["text"] == "''"


def test_requests_that_were_sent_before_the_end_are_answered(start):
    program = start()
    program.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    program.send(
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "add", "arguments": {"first": 1, "second": 2}},
        }
    )
    code, out = program.end()
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, [answer["id"] for answer in answers]) == (0, [1, 2])
    assert answers[1]["result"]["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("before", [0, 1])
def test_a_last_line_without_its_end_is_answered_too(start, before):
    program = start()
    for _ in range(before):
        program.ask("server/discover", {"_meta": meta()})
    asked = {"jsonrpc": "2.0", "id": "last", "method": "server/discover", "params": {"_meta": meta()}}
    program.process.stdin.write(json.dumps(asked).encode())
    code, out = program.end()
    assert (code, json.loads(out)["id"]) == (0, "last")


def test_a_changed_list_is_announced(start, project):
    program = start()
    program.open()
    program.ask("tools/list")
    (project / "tools" / "twice.py").write_text(
        'def twice(number: int) -> int:\n    """Double."""\n    return number * 2\n'
    )
    heard = {program.read()["method"], program.read()["method"]}
    assert heard == {"notifications/tools/list_changed", "notifications/resources/list_changed"}
    assert "twice" in [each["name"] for each in program.ask("tools/list")["result"]["tools"]]


def test_a_subscription_acknowledges_first_and_ends_when_it_is_cancelled(start, project):
    program = start()
    wanted = {"_meta": meta(), "notifications": {"toolsListChanged": True}}
    program.send({"jsonrpc": "2.0", "id": "s1", "method": "subscriptions/listen", "params": wanted})
    acknowledged = program.read()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    (project / "tools" / "twice.py").write_text(
        'def twice(number: int) -> int:\n    """Double."""\n    return number * 2\n'
    )
    changed = program.read()
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s1"}
    program.tell("notifications/cancelled", {"requestId": "s1"})
    assert "result" in program.ask("server/discover", {"_meta": meta()})


def test_the_first_answer_loads_neither_an_event_loop_nor_the_tools(project):
    code = (
        "import sys; from toolcrib.interfaces.mcp import stdio_handshake as handshake; handshake.open_stdio(); "
        "print(sorted({'asyncio', 'click', 'mcp', 'pydantic', 'toolcrib.crib', 'toolcrib.toolkit.cli'} & set(sys.modules)), "
        "file=sys.stderr)"
    )
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}).encode() + b"\n"
    done = subprocess.run([sys.executable, "-c", code], input=message, capture_output=True, timeout=20, check=True)
    assert done.stderr.strip() == b"[]"
    assert json.loads(done.stdout)["id"] == 1


@pytest.mark.usefixtures("start")
def test_listing_and_calling_load_neither_the_official_package_nor_pydantic(project):
    asked = [("tools/list", {}), ("tools/call", {"name": "add", "arguments": {"first": 1, "second": 2}})]
    messages = [
        {"jsonrpc": "2.0", "id": place, "method": method, "params": {**params, "_meta": meta()}}
        for place, (method, params) in enumerate(asked)
    ]
    command = [sys.executable, "-X", "importtime", "-m", "toolcrib", "mcp", "-C", str(project)]
    sent = "".join(f"{json.dumps(message)}\n" for message in messages)
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=60, check=True)
    assert ["result" in json.loads(line) for line in done.stdout.splitlines()] == [True, True]
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "toolcrib" in imported
    assert not imported & {"mcp", "mcp_types", "pydantic", "pydantic_core"}


def test_a_project_that_cannot_be_opened_is_told_on_standard_error(start, project):
    (project / "toolcrib.toml").write_text("[no_such_table]\nkey = 1\n")
    program = start()
    program.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    _, error = program.process.communicate(timeout=20)
    assert program.process.returncode == 2
    assert b"no_such_table" in error


def test_a_subscription_ends_with_the_connection_and_does_not_hold_it_up(start):
    program = start()
    opened = program.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": meta()})
    assert opened["method"] == "notifications/subscriptions/acknowledged"
    code, out = program.end()
    [last] = [json.loads(line) for line in out.splitlines()]
    assert (code, last["id"], last["result"]["resultType"]) == (0, 1, "complete")


def test_a_client_on_stdio_sees_the_tools_of_the_settings_alone(start, project):
    settings = project / "toolcrib.toml"
    settings.write_text(settings.read_text() + '[mcp]\ntools = ["add"]\n')
    program = start()
    program.open()
    assert [each["name"] for each in program.ask("tools/list")["result"]["tools"]] == ["add"]
    refused = program.ask("tools/call", {"name": "read_line", "arguments": {}})
    unknown = program.ask("tools/call", {"name": "read_lime", "arguments": {}})
    assert refused["error"]["code"] == unknown["error"]["code"]
    assert refused["error"]["message"].replace("read_line", "read_lime") == unknown["error"]["message"]
