"""What goes wrong on a server is told to its clients without its paths, its settings and its commands, and each sentence once."""

from __future__ import annotations

import asyncio
import io
import logging
import re
from types import SimpleNamespace

import orjson
import pytest
from tests.adoption.test_cures import named_commands

from toolcrib import tool
from toolcrib.interfaces.http.exchange import Guarded, log_to
from toolcrib.interfaces.http.server_state import Service
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.model.call import Scope
from toolcrib.toolkit.http import CALLER, HOLDER, ID, ROUTE

CRASH = 'import os, signal\ndef crash() -> str:\n    """Crash."""\n    os.kill(os.getpid(), signal.SIGSEGV)\n    return ""\n'
READS = 'from pathlib import Path\ndef reads() -> str:\n    """Read."""\n    return Path(__file__).parent.parent.joinpath("secret.txt").read_text()\n'
NEEDS = 'import nowhere_to_be_found\ndef needs() -> str:\n    """Need."""\n    return ""\n'
ASKS = 'import os\ndef asks() -> str:\n    """Ask."""\n    return os.environ["GREETING"]\n'
HELLO = '#!/bin/bash\n# Say hello.\necho "${GREETING:?}"\n'
FAILS = "#!/bin/bash\n# Fail.\nno_such_command_here\nexit 3\n"


@tool(requires=["net.http"])
def send(to: str) -> str:
    """Send."""
    return to


@tool(confirm=True)
def wipe() -> str:
    """Wipe."""
    return ""


@tool
def off() -> str:
    """Be off."""
    return ""


@pytest.fixture
def broken(make_world, tmp_path):
    """A server over a project in which everything is wrong."""
    files = {"crash.py": CRASH, "reads.py": READS, "needs.py": NEEDS, "asks.py": ASKS}
    files |= {"hello.sh": HELLO, "fails.sh": FAILS, "broken.py": "def broken(:\n"}
    (tmp_path / "tools").mkdir()
    (tmp_path / "secret.txt").write_text("x")
    for name, text in files.items():
        (tmp_path / "tools" / name).write_text(text)
    (tmp_path / ".ai" / "tools" / "misc").mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (tmp_path / ".ai" / "tools" / "misc" / f"{name}.yaml").write_text(SCRIPT.format(name) + text)
    return make_world(
        send,
        wipe,
        off,
        catalog={"disabled": ["off"]},
        grants={"*": ["fs.*", "shell.execute"], "fetches": ["net.http"], "shares": ["net.http"]},
        access={"variables": ["shares:SHOP_KEY"]},
    )


SCRIPT = 'tool_id: {0}\nversion: "1.0.0"\ncategory: misc\ndescription: Do {0}.\n'
PROGRAM = "tool_type: subprocess\nexecutor_id: subprocess\nrequires: [shell.execute]\n"
REQUEST = "tool_type: http\nexecutor_id: http_client\nrequires: [net.http]\n"
# What a runner refuses before anything runs.
SCRIPTS = {
    "starts": f"{PROGRAM}config: {{command: no-such-program}}\n",
    "fills": f'{PROGRAM}config: {{command: echo, args: ["{{ctiy}}"]}}\n',
    "runs": f"{PROGRAM}config: {{command: echo}}\n".replace("executor_id: subprocess", "executor_id: no_runtime"),
    "fetches": f'{REQUEST}config: {{method: GET, url: "https://example.com/?key=${{SHOP_KEY}}"}}\n',
    "shares": f'{REQUEST}config: {{method: GET, url: "https://example.com/?key=${{SHOP_KEY}}"}}\n',
}
CALLS = {
    "starts": "the command 'no-such-program' was not found",
    "fills": "{ctiy} is neither a parameter nor a name of the platform",
    "runs": "there is no executor 'no_runtime'",
    "fetches": "SHOP_KEY, which is not granted to it; ask the operator to grant it",
    "shares": "SHOP_KEY",
    "crash": "crash crashed (SIGSEGV) before it returned a result; ask the operator",
    "reads": "(PermissionError: Permission denied); ask the operator",
    "needs": "which is not installed for it; ask the operator to install it",
    "asks": "which is not set or not granted to it; ask the operator to grant it",
    "hello": "which is not set or not granted to it; ask the operator to grant it",
    "fails": "fails ended with exit code 3: fails.sh: line 3: no_such_command_here: command not found",
    "broken": "Tool 'broken' not found; its file cannot be used; ask the operator",
    "send": "send requires net.http, which is not granted; ask the operator to grant it",
    "wipe": "let a person confirm it, and send the token of this answer with the same call",
    "off": "ask the operator to enable it",
    "nothing": "list the tools with: GET /crib/tools",
}


async def test_a_client_is_told_what_it_can_do_and_nothing_of_the_server(broken, caplog):
    for name, said in CALLS.items():
        arguments = {"to": "Ada"} if name == "send" else {}
        reply = await broken.client.post(f"/call/{name}", arguments)
        told = reply.raw.decode()
        message = reply.json["error"]["message"]
        assert said in message, (name, message)
        assert str(broken.root) not in told, name
        assert named_commands(told) == [], name
        assert "--grant" not in told, name
        clauses = re.split(r"; |: ", message)
        assert len(clauses) == len(set(clauses)), (name, message)
    # The operator, who is asked, finds it in the log.
    assert "crash crashed (SIGSEGV)" in caplog.messages


async def test_a_caller_that_may_do_everything_is_told_what_an_operator_can_do(broken):
    _, operator = broken.crib.tokens.create("operator", Scope)
    _, other = broken.crib.tokens.create("other", set(Scope) - {Scope.APPROVE})
    for token, cure in ((operator, "under [grants] in toolcrib.toml"), (other, "ask the operator to grant it")):
        headers = {"authorization": f"Bearer {token}"}
        called = await broken.client.post("/call/send", {"to": "Ada"}, headers=headers)
        explained = await broken.client.post("/crib/explain", {"name": "send", "args": {"to": "Ada"}}, headers=headers)
        listed = await broken.client.get("/crib/tools?name=send", headers=headers)
        for reply in (called, explained, listed):
            assert cure in reply.raw.decode()
            assert "--grant" not in reply.raw.decode()
        unknown = (await broken.client.post("/call/nothing", {}, headers=headers)).raw.decode()
        assert "GET /crib/tools" in unknown
        assert "crib list" not in unknown


async def test_a_tool_that_is_asked_for_in_another_bundle_or_version_is_named_by_its_address(broken):
    for query in ("bundle=other", "version=9.0.0", "bundle=other&version=9.0.0"):
        reply = await broken.client.post(f"/call/send?{query}", {"to": "Ada"})
        assert reply.status == 404
        assert reply.json["detail"] == "Tool 'send' not found; the tool of that name is host/send@1.0.0", query


async def test_every_line_of_a_failure_says_which_request_whose_and_over_which_route():
    async def app(scope, receive, send):
        scope |= {ID: "r-7", CALLER: "token:ada", HOLDER: "ada's laptop", ROUTE: "/call/{name}"}

        def fail():
            try:
                raise ValueError("no")
            except ValueError:
                logging.getLogger("toolcrib.pipeline").exception("call c-1: x failed unexpectedly")

        await asyncio.to_thread(fail)
        await send({"type": "http.response.start", "status": 500, "headers": []})

    async def send(message):
        pass

    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text):
        guarded = Guarded(app, ServerSettings(), Service(ServerSettings()))
        # In a task of its own, as the server runs every request.
        await asyncio.create_task(guarded({"type": "http", "method": "POST"}, SimpleNamespace(), send))
        logging.getLogger("toolcrib").warning("of no request")
    failure, other, request = sorted(
        (orjson.loads(line) for line in stream.getvalue().splitlines()), key=lambda line: line["event"]
    )
    assert failure["event"] == "call c-1: x failed unexpectedly"
    facts = {
        "requestId": "r-7",
        "caller": "token:ada",
        "token": "ada's laptop",
        "method": "POST",
        "route": "/call/{name}",
    }
    assert facts.items() <= failure.items()
    assert facts.items() <= request.items()
    assert "ValueError: no" in failure["traceback"]
    assert "requestId" not in other
