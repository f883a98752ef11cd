"""`crib mcp --url`: a client on standard input and output reaches the tools of a server elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.interfaces.mcp.conftest import NEW, OLD, meta
from tests.interfaces.mcp.test_stdio import HOST, Program

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
"""
ARGUMENTS = {"first": 20, "second": 22}


@pytest.fixture
def url(project) -> Iterator[str]:
    """The URL of `crib serve` over a project."""
    (project / "host_of_bridge.py").write_text(HOST + ROUTED)
    (project / "toolcrib.toml").write_text('[modules]\ntools = ["host_of_bridge"]\n[builtins]\nenabled = false\n')
    words = [sys.executable, "-m", "toolcrib", "serve", "-C", str(project), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        yield server.stdout.readline().rpartition(" on ")[2].strip()
        server.terminate()
        server.wait(20)


@pytest.fixture
def bridge(url, tmp_path_factory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("elsewhere"), "--url", url)
    yield program
    program.process.kill()
    program.process.communicate()


def test_both_wires_are_passed_through_and_the_bridge_ends_with_its_client(bridge):
    stateless = {"name": "add", "arguments": ARGUMENTS, "_meta": meta(NEW)}
    assert bridge.ask("tools/call", stateless)["result"]["structuredContent"] == 42
    assert bridge.open()["result"]["protocolVersion"] == OLD
    assert {tool["name"] for tool in bridge.ask("tools/list")["result"]["tools"]} >= {"add", "ask"}
    called = bridge.ask("tools/call", {"name": "add", "arguments": ARGUMENTS})
    assert called["result"]["content"][0]["text"] == "42"
    assert bridge.end() == (0, b"")


def test_a_question_goes_through_on_the_newer_wire_and_is_refused_on_the_older(bridge):
    call = {"name": "ask", "arguments": {}, "_meta": meta(NEW)}
    asked = bridge.ask("tools/call", call)["result"]
    answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
    again = {**call, "requestState": asked["requestState"], "inputResponses": answers}
    assert bridge.ask("tools/call", again)["result"]["content"][0]["text"] == "decline"
    bridge.open()
    refused = bridge.ask("tools/call", {"name": "ask", "arguments": {}})["result"]
    assert refused["_meta"]["toolcrib/error"]["type"] == "CAPABILITY_MISSING"


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
