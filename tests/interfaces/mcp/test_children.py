"""What scripts and handlers tell and ask the client of their call, from their sandboxed process to the client and back."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from tests.interfaces.mcp.conftest import META, Reply, Stream, meta

from toolcrib import Call, Context, Crib, tool
from toolcrib.infra.programs import child_channel
from toolcrib.infra.sandbox.child.script_channel import LEVELS, QUESTIONS
from toolcrib.model.call import LOG_LEVELS

EXAMPLE = Path(__file__).parents[3] / "examples" / "client"
LIMIT = 3
WAYS = ("script.py", "script.js", "plain.py", "handler.py", "handler.js")

PYTHON = '''__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "asking"
__tool_description__ = "Ask"

import rye


def main(action: str, count: int = 1) -> dict:
    """Ask.

    Args:
        action: What to ask.
        count: How often.
    """
    if action == "flood":
        for number in range(count):
            rye.progress(number, count, "x" * 10_000)
        return {"value": count}
    if action == "call":
        action = "elicit"
        try:
            rye.execute("host")
        except rye.ToolError as refusal:
            return {"refused": refusal.type}
    rye.progress(1, 2, "asking")
    rye.log("warning", {"action": action})
    try:
        value = {
            "elicit": lambda: rye.elicit("How many?", SCHEMA),
            "sample": lambda: rye.sample("Say something", max_tokens=5, temperature=0),
            "roots": lambda: rye.roots(),
        }[action]()
    except rye.ToolError as refusal:
        return {"refused": refusal.type, "details": refusal.details}
    rye.progress(2, 2)
    return {"value": value}


SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
'''
NODE = """/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category asking
 * @description Ask
 * @parameters [{name: action, type: string, required: true, description: What to ask.}, {name: count, type: integer, description: How often.}]
 * @output_schema {type: object}
 */
const action = process.argv[process.argv.indexOf('--action') + 1];
const SCHEMA = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };

async function main() {
  rye.progress(1, 2, 'asking');
  rye.log('warning', { action });
  try {
    const value = await {
      elicit: () => rye.elicit('How many?', SCHEMA),
      sample: () => rye.sample('Say something', { maxTokens: 5, temperature: 0 }),
      roots: () => rye.roots(),
    }[action]();
    rye.progress(2, 2);
    return { value };
  } catch (refusal) {
    return { refused: refusal.type, details: refusal.details };
  }
}

main().then((value) => console.log(JSON.stringify(value)));
"""
HANDLER = """from toolcrib.handler import ToolError

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


async def execute(args, context):
    context.progress(1, 2, "asking")
    context.log("warning", {"action": args["action"]})
    try:
        value = await {
            "elicit": lambda: context.elicit("How many?", SCHEMA),
            "sample": lambda: context.sample("Say something", max_tokens=5, temperature=0),
            "roots": lambda: context.roots(),
        }[args["action"]]()
    except ToolError as refusal:
        return {"ok": True, "data": {"refused": refusal.type, "details": refusal.details}}
    context.progress(2, 2)
    return {"ok": True, "data": {"value": value}}
"""
NODE_HANDLER = """
const SCHEMA = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };

export async function execute({ args, context }) {
  context.progress(1, 2, 'asking');
  context.log('warning', { action: args.action });
  try {
    const value = await {
      elicit: () => context.elicit('How many?', SCHEMA),
      sample: () => context.sample('Say something', { maxTokens: 5, temperature: 0 }),
      roots: () => context.roots(),
    }[args.action]();
    context.progress(2, 2);
    return { ok: true, data: { value } };
  } catch (refusal) {
    return { ok: true, data: { refused: refusal.type, details: refusal.details } };
  }
}
"""
ANSWERS: dict[str, dict] = {
    "elicit": {"action": "accept", "content": {"count": 3}},
    "sample": {"role": "assistant", "content": {"type": "text", "text": "Something"}, "model": "m"},
    "roots": {"roots": [{"uri": "file:///work"}]},
}
METHODS = {"elicit": "elicitation/create", "sample": "sampling/createMessage", "roots": "roots/list"}
VALUES = ANSWERS | {"roots": ANSWERS["roots"]["roots"]}


def write_folder(folder: Path, tool_id: str, handler: str, code: str) -> None:
    """A tool folder like that of the example, with another handler."""
    shutil.copytree(EXAMPLE / "tools" / "show-folders", folder)
    (folder / "handler.py").unlink()
    (folder / handler).write_text(code)
    schema = (folder / "schema.json").read_text().replace("show_folders", tool_id)
    properties = '"required": ["action"], "properties": {"action": {"type": "string", "description": "What to ask."}}'
    (folder / "schema.json").write_text(schema.replace('"properties": {}', properties))
    doc = (folder / "doc.md").read_text()
    (folder / "doc.md").write_text(doc.replace("```json\n{}\n```", '```json\n{"action": "roots"}\n```'))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asking")
    (folder / "toolcrib.toml").write_text('[builtins]\nenabled = false\n[grants]\n"*" = ["shell.execute"]\n')
    scripts = folder / ".ai" / "tools" / "asking"
    scripts.mkdir(parents=True)
    (scripts / "script_py.py").write_text(PYTHON)
    (scripts / "script_js.js").write_text(NODE)
    (folder / "tools").mkdir()
    (folder / "tools" / "plain_py.py").write_text(PYTHON.partition("\n\n")[2].replace("def main", "def plain_py"))
    write_folder(folder / "tools" / "handler-py", "handler_py", "handler.py", HANDLER)
    write_folder(folder / "tools" / "handler-js", "handler_js", "handler.js", NODE_HANDLER)
    with Crib(folder) as crib:
        assert [problem for built in crib.registries.build(strict=False) for problem in built.problems] == []
    return folder


async def take_longer_than_the_call_may() -> None:
    """Let so much time pass that the call would be over; nothing but the clock shows that it is not."""
    until = time.monotonic() + LIMIT + 0.5
    while time.monotonic() < until:  # noqa: ASYNC110 - it is the time itself that is waited for
        await asyncio.sleep(0.05)


def name_of(way: str) -> str:
    return way.replace(".", "_")


def value_of(reply: Reply) -> dict:
    assert not reply.result.get("isError"), reply.result
    return reply.result["structuredContent"]


def is_told(messages: list[dict]) -> None:
    """Both figures and the message of the log were heard, in their order."""
    told = [message["params"] for message in messages if message.get("method", "").startswith("notifications/")]
    assert [(one.get("progress"), one.get("level")) for one in told] == [(1, None), (None, "warning"), (2, None)]
    assert told[0] == {"progressToken": "p", "progress": 1, "total": 2, "message": "asking"}
    assert (told[1]["data"], told[1]["logger"] != "") == ({"action": "elicit"}, True)


def test_a_child_knows_the_levels_and_the_questions_of_the_model():
    assert LEVELS == LOG_LEVELS
    assert QUESTIONS == METHODS == child_channel.ASKED


@pytest.mark.parametrize("way", WAYS)
async def test_a_child_asks_the_client_of_a_session_and_waits_for_the_answer(client_of, project, way):
    session = await client_of(project=project).open()
    await session.ask("logging/setLevel", {"level": "info"})
    params = {"name": name_of(way), "arguments": {"action": "elicit"}, "_meta": {"progressToken": "p"}}
    heard = []
    async with Stream(session.ask, "tools/call", params) as stream:
        while "result" not in (message := await stream.next()):
            heard.append(message)
            if message["method"] == METHODS["elicit"]:
                assert message["params"]["message"] == "How many?"
                await session.respond(message["id"], ANSWERS["elicit"])
    assert message["result"]["structuredContent"] == {"value": ANSWERS["elicit"]}
    is_told([one for one in heard if "id" not in one])


@pytest.mark.parametrize("action", ["elicit", "sample", "roots"])
@pytest.mark.parametrize("way", WAYS)
async def test_on_the_stateless_wire_a_child_waits_while_its_client_repeats_the_request(
    client_of, project, way, action
):
    client = client_of(project=project)
    beside = meta(progressToken="p", **{f"{META}logLevel": "info"})
    params = {"name": name_of(way), "arguments": {"action": action}, "_meta": beside}
    first = await client.ask("tools/call", params)
    assert first.result["resultType"] == "input_required"
    [(key, question)] = first.result["inputRequests"].items()
    assert question["method"] == METHODS[action]
    if action == "sample":
        assert (question["params"]["maxTokens"], question["params"]["temperature"]) == (5, 0)
    answered = {"inputResponses": {key: ANSWERS[action]}, "requestState": first.result["requestState"]}
    last = await client.ask("tools/call", {**params, **answered})
    assert value_of(last) == {"value": VALUES[action]}
    if action == "elicit":
        is_told(first.messages + last.messages)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("action", ["elicit", "sample", "roots"])
async def test_where_there_is_no_client_a_question_is_refused_at_once(project, way, action):
    async with Crib(project) as crib:
        result = await crib.call(name_of(way), action=action)
    refused = {"refused": "CAPABILITY_MISSING", "details": {"clientCapability": METHODS[action].partition("/")[0]}}
    assert result.value == refused, result


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_cannot_answer_is_not_asked(client_of, project, way):
    client = client_of(project=project)
    params = {"name": name_of(way), "arguments": {"action": "sample"}, "_meta": meta(capabilities={"roots": {}})}
    value = value_of(await client.ask("tools/call", params))
    assert value == {"refused": "CAPABILITY_MISSING", "details": {"clientCapability": "sampling"}}


async def test_a_channel_to_the_client_does_not_let_a_script_call_tools(client_of, project):
    client = client_of(tool(name="host")(lambda: "host"), project=project)
    value = value_of(await client.call("script_py", {"action": "call"}))
    assert value == {"refused": "CAPABILITY_MISSING"}


@pytest.mark.parametrize("name", ["script_py", "plain_py"])
async def test_a_flood_is_thinned_out_and_its_last_figure_is_heard(client_of, project, name):
    client = client_of(project=project)
    params = {
        "name": name,
        "arguments": {"action": "flood", "count": 3_000},
        "_meta": meta(progressToken="p"),
    }
    reply = await client.ask("tools/call", params)
    figures = [message["params"] for message in reply.messages[:-1]]
    assert value_of(reply) == {"value": 3_000}
    assert len(figures) <= child_channel.SENT_AT_ONCE + 20 * child_channel.SENT_PER_SECOND
    assert [one["progress"] for one in figures[:3]] == [0, 1, 2]
    assert (figures[-1]["progress"], len(figures[-1]["message"])) == (2_999, child_channel.MAX_MESSAGE_LETTERS)


@pytest.mark.parametrize("way", ["script.py", "handler.js"])
async def test_the_time_of_a_child_does_not_run_while_its_client_is_asked(client_of, project, way):
    client = client_of(project=project, calls={"timeout_ms": LIMIT * 1000})
    params = {"name": name_of(way), "arguments": {"action": "elicit"}}
    first = await client.ask("tools/call", params)
    [key] = first.result["inputRequests"]
    await take_longer_than_the_call_may()
    answered = {"inputResponses": {key: ANSWERS["elicit"]}, "requestState": first.result["requestState"]}
    assert value_of(await client.ask("tools/call", {**params, **answered})) == {"value": ANSWERS["elicit"]}


async def test_a_child_that_goes_on_too_long_after_an_answer_is_ended(client_of, tmp_path):
    (tmp_path / "tools").mkdir()
    code = 'import rye, time\n\n\ndef slow() -> str:\n    """Ask, then be slow."""\n    rye.roots()\n    time.sleep(60)\n    return ""\n'
    (tmp_path / "tools" / "slow.py").write_text(code)
    client = client_of(project=tmp_path, calls={"timeout_ms": LIMIT * 1000})
    first = await client.call("slow")
    [key] = first.result["inputRequests"]
    answered = {"inputResponses": {key: ANSWERS["roots"]}, "requestState": first.result["requestState"]}
    result = (await client.call("slow", **answered)).result
    assert result["_meta"]["toolcrib/error"]["type"] == "TIMEOUT"
    assert "its processes were killed" in result["content"][0]["text"]


async def test_children_that_wait_leave_places_to_others(client_of, project):
    client = client_of(project=project, sandbox={"jobs": 4})
    asked = [await client.call("script_py", {"action": "roots"}) for _ in range(1)]
    refused = value_of(await client.call("script_py", {"action": "roots"}))
    assert asked[0].result["resultType"] == "input_required"
    assert refused == {"refused": "OVERLOADED", "details": {}}


async def test_a_question_of_a_tool_that_a_script_calls_is_one_that_the_script_waits_for(client_of, tmp_path):
    @tool
    async def host(context: Context) -> dict:
        """Ask."""
        return await context.elicit("How many?", {"type": "object", "properties": {}})

    (tmp_path / "toolcrib.toml").write_text('[grants]\n"*" = ["rye.execute"]\n')
    folder = tmp_path / ".ai" / "tools" / "asking"
    folder.mkdir(parents=True)
    code = PYTHON.replace("__category__", '__requires__ = ["rye.execute"]\n__category__')
    (folder / "outer.py").write_text(code.replace('rye.execute("host")', 'return {"value": rye.execute("host")}'))
    client = client_of(host, project=tmp_path, calls={"timeout_ms": LIMIT * 1000})
    params = {"name": "outer", "arguments": {"action": "call"}}
    first = await client.ask("tools/call", params)
    [key] = first.result["inputRequests"]
    await take_longer_than_the_call_may()
    answered = {"inputResponses": {key: {"action": "decline"}}, "requestState": first.result["requestState"]}
    assert value_of(await client.ask("tools/call", {**params, **answered})) == {"value": {"action": "decline"}}


class Listener:
    """A client that hears what it is told, and answers every question."""

    can_ask = True
    takes_chunks = False

    def __init__(self) -> None:
        self.heard: list[tuple] = []

    def progress(self, progress, total, message) -> None:
        self.heard.append((progress, total, message))

    def log(self, level, data, logger) -> None:
        self.heard.append((level, data, logger))

    async def ask(self, question) -> dict:
        return {"elicitation/create": {"action": "accept", "content": {"guests": 4}}}.get(
            question.method,
            {
                "role": "assistant",
                "content": {"type": "text", "text": "Long live Ada"},
                "model": "m",
                **ANSWERS["roots"],
            },
        )


@pytest.mark.parametrize(
    ("name", "arguments", "value", "heard"),
    [
        ("book-table", {"restaurant": "Oslo"}, {"booked": True, "guests": 4}, 3),
        ("toast", {"name": "Ada"}, "Long live Ada", 1),
        ("wash-up", {"plates": 3}, "3 plates are clean", 3),
        ("show_folders", {}, {"folders": ["file:///work"]}, 2),
    ],
)
async def test_the_examples_reach_their_client(tmp_path, name, arguments, value, heard):
    project = tmp_path / "client"
    shutil.copytree(EXAMPLE, project)
    listener = Listener()
    async with Crib(project) as crib:
        crib.registries.build(strict=False)
    async with Crib(project) as crib:
        result = await crib.call(Call(name=name, arguments=arguments, client=listener))
    assert (result.value, len(listener.heard)) == (value, heard), result
