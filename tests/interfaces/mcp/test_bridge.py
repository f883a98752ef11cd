"""`crib mcp --url`: a client on standard input and output reaches the tools of a server elsewhere."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.interfaces.mcp.conftest import NEW, OLD, meta
from tests.interfaces.mcp.test_stdio import HOST, Program

from toolcrib.interfaces.mcp.header_values import header_rules
from warm_python import WarmPython, run_python

ROUTED = """

@tool(
    parameters={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    }
)
def route(region: str) -> str:
    return region


@tool
async def until(context: Context, file: str) -> str:
    from pathlib import Path
    context.progress(1, 2, "waiting")
    context.log("info", "waiting")
    try:
        while not Path(file).exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        Path(file).with_suffix(".cancelled").touch()
        raise
    return "it is there"
"""
ARGUMENTS = {"first": 20, "second": 22}
CERTIFICATE = Path(__file__).parents[2] / "infra" / "egress" / "tls.example.pem"
SECONDS = 20


class Server:
    """`crib serve` over a project, at a port that it has again after a restart."""

    def __init__(self, project: Path) -> None:
        self.project = project
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        words = ["-m", "toolcrib", "serve", "-C", str(self.project), "--port", str(self.port)]
        self.process = WarmPython(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.url in self.process.stdout.readline()

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=SECONDS)


@pytest.fixture
def server(project) -> Iterator[Server]:
    (project / "host_of_bridge.py").write_text(HOST + ROUTED)
    (project / "toolcrib.toml").write_text('[modules]\ntools = ["host_of_bridge"]\n[builtins]\nenabled = false\n')
    running = Server(project)
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture
def connect(server, tmp_path_factory) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def begin(url: str = server.url, **variables: str) -> Program:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            started.append(Program(tmp_path_factory.mktemp("elsewhere"), "--url", url))
        return started[-1]

    yield begin
    for program in started:
        program.process.kill()
        program.process.communicate()


@pytest.fixture
def bridge(connect) -> Program:
    return connect()


def wait_for(file: Path) -> None:
    until = time.monotonic() + SECONDS
    while not file.exists():
        assert time.monotonic() < until, f"{file} did not come"
        time.sleep(0.02)


def begin(program: Program, wire: str, file: Path, request_id: object = "long") -> None:
    """Call the tool that waits for a file, and hear that it waits."""
    beside = {"progressToken": "p"} if wire == OLD else meta(NEW, progressToken="p")
    params = {"name": "until", "arguments": {"file": str(file)}, "_meta": beside}
    program.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
    heard = program.read()
    assert (heard["method"], heard["params"]["progress"]) == ("notifications/progress", 1)
    if wire == OLD:
        assert program.read()["method"] == "notifications/message"


@pytest.mark.parametrize("wire", [NEW, OLD])
def test_what_a_tool_tells_arrives_while_it_runs(bridge, tmp_path, wire):
    if wire == OLD:
        bridge.open()
    begin(bridge, wire, tmp_path / "there")
    (tmp_path / "there").touch()
    assert bridge.read()["result"]["content"][0]["text"] == "it is there"
    assert bridge.end()[0] == 0


def test_on_the_older_wire_a_question_arrives_and_its_answer_goes_back(bridge):
    bridge.open()
    question = bridge.ask("tools/call", {"name": "ask", "arguments": {}})
    assert question["method"] == "elicitation/create"
    bridge.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert bridge.read()["result"]["content"][0]["text"] == "decline"


@pytest.mark.parametrize("wire", [NEW, OLD])
def test_a_changed_list_is_told(bridge, server, wire):
    if wire == OLD:
        bridge.open()
        bridge.ask("tools/list")
    else:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": meta(NEW)}
        assert bridge.ask("subscriptions/listen", wanted)["method"] == "notifications/subscriptions/acknowledged"
    (server.project / "tools").mkdir(exist_ok=True)
    until = time.monotonic() + SECONDS
    heard: list[str] = []
    while "notifications/tools/list_changed" not in heard:
        # Nothing tells a client when the older wire's stream is there, so there is one change after another.
        assert time.monotonic() < until, heard
        name = f"new{len(heard)}"
        (server.project / "tools" / f"{name}.py").write_text(f'def {name}() -> str:\n    """New."""\n')
        time.sleep(0.2)
        bridge.send({"jsonrpc": "2.0", "id": name, "method": "tools/list", "params": {"_meta": meta(NEW)}})
        heard.append("")
        while "result" not in (message := bridge.read()):
            heard.append(message["method"])
    assert bridge.end()[0] == 0


@pytest.mark.parametrize("wire", [NEW, OLD])
def test_a_cancelled_request_is_cancelled_at_the_server(bridge, tmp_path, wire):
    if wire == OLD:
        bridge.open()
    begin(bridge, wire, tmp_path / "never")
    bridge.tell("notifications/cancelled", {"requestId": "long"})
    wait_for(tmp_path / "never.cancelled")
    assert bridge.ask("tools/list", {"_meta": meta(NEW)})["result"]["tools"]


@pytest.mark.parametrize("wire", [NEW, OLD])
def test_a_server_that_dies_in_a_call_is_told_and_the_next_call_reaches_its_successor(bridge, server, tmp_path, wire):
    if wire == OLD:
        bridge.open()
    begin(bridge, wire, tmp_path / "never")
    server.stop(signal.SIGKILL)
    server.start()
    error = bridge.read()["error"]
    assert "make the request again" in error["message"] or "try again" in error["message"], error
    beside = {} if wire == OLD else {"_meta": meta(NEW)}
    called = bridge.ask("tools/call", {"name": "add", "arguments": ARGUMENTS, **beside})
    while "method" in called:  # a changed list: what has changed with the server is unknown
        called = bridge.read()
    assert called["result"]["content"][0]["text"] == "42"


def test_a_token_that_the_server_does_not_know_is_told_with_its_cure(connect):
    error = connect(CRIB_TOKEN="crib_nonsense").ask("tools/list", {"_meta": meta(NEW)})["error"]
    assert "into the variable CRIB_TOKEN" in error["message"]
    assert error["data"] == {"type": "AUTH"}


def test_a_token_that_may_not_invoke_is_told_so(server, connect):
    made = run_python(
        ["-m", "toolcrib", "token", "create", "reader", "--scope", "read", "-C", str(server.project)],
        capture_output=True,
        text=True,
        check=True,
    )
    token = next(word for word in made.stdout.split() if len(word) > 30)
    program = connect(CRIB_TOKEN=token)
    assert program.ask("tools/list", {"_meta": meta(NEW)})["result"]["tools"]
    error = program.ask("tools/call", {"name": "add", "arguments": ARGUMENTS, "_meta": meta(NEW)})["error"]
    assert "the token may not invoke" in error["message"]
    assert error["data"] == {"type": "AUTH"}


@pytest.mark.spec("S1-95")
def test_a_server_that_has_no_room_for_a_request_is_told_with_when_to_try_again(connect):
    problem = {"kind": "RATE_LIMIT", "detail": "more than 5 requests in a minute", "retryable": True}
    body = json.dumps({**problem, "details": {"retryAfter": 12}}).encode()
    head = f"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\nContent-Length: {len(body)}"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        program = connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
        error = program.ask("tools/list", {"_meta": meta(NEW)})["error"]
        refusing.join(SECONDS)
    assert error["message"] == "more than 5 requests in a minute"
    assert error["data"] == {"type": "RATE_LIMIT", "retryable": True, "details": {"retryAfter": 12.0}}


def test_an_answer_of_another_shape_is_passed_on_for_the_client_to_judge(connect):
    cases = [
        ("initialize", None),
        ("initialize", []),
        ("initialize", {"protocolVersion": 7}),
        ("initialize", {"protocolVersion": "2025\r\nX-Other: 1"}),
        ("tools/list", None),
        ("tools/list", {"tools": None}),
        ("tools/list", {"tools": [None, {}, {"name": 1}, {"name": "a", "inputSchema": []}]}),
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for number, (_, result) in enumerate(cases, 1):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
                    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                    connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        program = connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
        for number, (method, result) in enumerate(cases, 1):
            program.send({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
            assert program.read() == {"jsonrpc": "2.0", "id": number, "result": result}
        answering.join(SECONDS)


def test_a_certificate_that_is_not_trusted_is_told_with_its_cure(connect):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)

    def accept(listener: socket.socket) -> None:
        try:
            context.wrap_socket(listener.accept()[0], server_side=True)
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=accept, args=(listener,))
        answering.start()
        program = connect(f"https://127.0.0.1:{listener.getsockname()[1]}")
        error = program.ask("tools/list", {"_meta": meta(NEW)})["error"]
        answering.join(SECONDS)
    assert "the TLS certificate is not trusted" in error["message"]
    assert "SSL_CERT_FILE" in error["message"]


def test_both_wires_are_passed_through_and_the_bridge_ends_with_its_client(bridge):
    stateless = {"name": "add", "arguments": ARGUMENTS, "_meta": meta(NEW)}
    assert bridge.ask("tools/call", stateless)["result"]["structuredContent"] == 42
    assert bridge.open()["result"]["protocolVersion"] == OLD
    assert {tool["name"] for tool in bridge.ask("tools/list")["result"]["tools"]} >= {"add", "ask"}
    called = bridge.ask("tools/call", {"name": "add", "arguments": ARGUMENTS})
    assert called["result"]["content"][0]["text"] == "42"
    assert bridge.end() == (0, b"")


def test_on_the_newer_wire_a_question_goes_through_and_the_request_is_repeated(bridge):
    call = {"name": "ask", "arguments": {}, "_meta": meta(NEW)}
    asked = bridge.ask("tools/call", call)["result"]
    answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
    again = {**call, "requestState": asked["requestState"], "inputResponses": answers}
    assert bridge.ask("tools/call", again)["result"]["content"][0]["text"] == "decline"


def test_arguments_that_a_tool_wants_in_headers_are_repeated_there_once_it_was_listed(bridge):
    bridge.ask("tools/list", {"_meta": meta(NEW)})
    called = bridge.ask("tools/call", {"name": "route", "arguments": {"region": "Tromsø"}, "_meta": meta(NEW)})
    assert called["result"]["content"][0]["text"] == "Tromsø"


def test_a_url_and_a_project_are_wrong_use(cli):
    assert "leave one of them out" in cli("mcp", "-C", ".", "--url", "http://127.0.0.1:9").err


def test_a_server_that_is_away_is_told_with_its_cure(project):
    program = Program(project, "--url", "http://127.0.0.1:9")
    try:
        assert "crib serve" in program.ask("server/discover", {"_meta": meta(NEW)})["error"]["message"]
        assert program.end()[0] == 0
    finally:
        program.process.kill()
        program.process.communicate()


def test_a_schema_that_is_too_deep_to_be_read_repeats_nothing_in_headers():
    nested: dict[str, object] = {"x-mcp-header": "Region", "type": "string"}
    assert header_rules({"properties": {"region": nested}})
    for _ in range(5_000):
        nested = {"properties": {"inner": nested}}
    assert header_rules(nested) == ()
