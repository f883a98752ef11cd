"""A tool that was proved and published for a request, in use: what reaches it, what is refused, and what it may answer."""

from __future__ import annotations

import asyncio
import json

import pytest

import app_lifespan
from app_lifespan import local_app
from toolcrib import Crib, Kind
from toolcrib.features.agent_classes.classes import to_tool_result
from toolcrib.lib.presentation import to_builder

SECONDS = 20
NAME = "stargazer_report"
WANTED = {
    "name": NAME,
    "description": "Report what it was asked for",
    "priority": "medium",
    "requested_by": "fullsend",
    "inputs": [
        {"name": "repo", "type": "string", "description": "The repository", "required": True},
        {"name": "limit", "type": "integer", "description": "The most users", "default": 100},
        {"name": "include_email", "type": "boolean", "description": "Whether with emails", "default": True},
        {"name": "tags", "type": "list", "description": "Any tags"},
        {"name": "options", "type": "object", "description": "Any options", "default": {"sort": "stars"}},
    ],
    "outputs": [
        {"name": "asked", "type": "object"},
        {"name": "email", "type": "string | null"},
        {"name": "total", "type": "integer"},
    ],
}
# By itself it knows the defaults too, as the gate demands; that of options it would have to fill in, and `raw` shows whether
# a person did. What it does wrong, it does for repositories that no gate asks for.
CODE = """\
import sys

from toolcrib import Kind, ToolError


def stargazer_report(repo, limit=100, include_email=True, tags=None, options=None):
    print("it runs", file=sys.stderr)
    raw = {"repo": repo, "limit": limit, "include_email": include_email, "tags": tags, "options": options}
    whole = {**raw, "options": {"sort": "stars"} if options is None else options}
    answer = {"asked": whole, "email": "ada@example.com" if include_email else None, "total": limit}
    if repo == "raw":
        return {**answer, "asked": raw}
    if repo == "null":
        return {**answer, "total": None}
    if repo == "number":
        return {**answer, "email": 7}
    if repo == "less":
        return {"asked": whole, "email": None}
    if repo == "nothing":
        return None
    if repo == "broken":
        return {"result": {"total": 3}, "success": False, "error": "GitHub stopped answering"}
    if repo == "busy":
        raise ToolError(Kind.RATE_LIMIT, "come back later", retryable=True, value={"total": 4})
    return answer
"""
WRONG = [
    ("limit", 3.5),
    ("limit", True),
    ("limit", "7"),
    ("limit", None),
    ("include_email", "true"),
    ("include_email", 1),
    ("tags", "a"),
    ("tags", 7),
    ("tags", {"a": 1}),
    ("options", "a"),
    ("options", 7),
    ("options", ["a"]),
    ("repo", 7),
    ("repo", ["a/b"]),
]
LIES = {
    "null": "total",
    "number": "email",
    "less": "total",
    "nothing": "",
}
RUNS = "it runs\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project in which the real gate let the tool pass."""
    project, made = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("made")
    (project / "tools").mkdir()
    (made / f"{NAME}.py").write_text(CODE)
    with Crib(project, environment={}) as crib:
        filed = crib.requests.new(WANTED).filed
        delivered = crib.run_sync(crib.requests.deliver(filed.id, made))
        assert (str(delivered.status), delivered.tool) == ("ready", "tools/stargazer-report@1.0.0")
    return project


@pytest.fixture
def crib(built, crib_of):
    return crib_of(project=built)


@pytest.fixture
async def invoke(crib):
    """Invoke the tool over HTTP by its place, without a network; the document of the answer."""
    app = local_app(crib)

    async def ask(method, path, body=b""):
        heard, asked = [], [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return asked.pop() if asked else await asyncio.Event().wait()

        async def send(message):
            heard.append(message)

        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:8765"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
        }
        async with asyncio.timeout(SECONDS):
            await app(scope, receive, send)
        return heard[0]["status"], json.loads(b"".join(part.get("body", b"") for part in heard[1:]))

    async def post(**arguments):
        _, listed = await ask("GET", f"/crib/tools?name={NAME}")
        place = f"/tools/bundles/{listed['tools'][0]['bundleID']}/tools/stargazer-report/version/1.0.0/invoke"
        return await ask("POST", place, json.dumps({"args": arguments}).encode())

    yield post
    await app_lifespan.end(app)


@pytest.fixture
def typed(built, cli):
    """`crib call` with these words: the exit code, and what it printed on either side."""

    def call(*words):
        ended = cli("call", "--project", str(built), NAME, *words)
        return ended.code, ended.out, ended.err

    return call


@pytest.mark.spec("S0-20")
@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
async def test_what_is_not_of_the_type_is_refused_before_the_tool_runs(crib, name, value):
    result = await crib.call(NAME, {"repo": "raw", name: value})
    assert (result.error.kind, result.refused, result.value) == (Kind.VALIDATION, True, None)
    assert name in result.error.message
    assert "stderr" not in result.meta


@pytest.mark.spec("S0-20")
async def test_it_is_refused_over_http_too(invoke):
    for name, value in WRONG:
        status, answer = await invoke(**{"repo": "raw", name: value})
        assert (status, answer["kind"]) == (400, "VALIDATION"), (name, value)
        assert name in str(answer)
        assert RUNS not in str(answer)


@pytest.mark.spec("S0-20")
@pytest.mark.parametrize("word", ["limit=3.5", "limit:=true", 'include_email:="true"', "tags:=7", "options:=[1]"])
def test_it_is_refused_on_the_command_line_too(typed, word):
    code, out, err = typed("repo=raw", word)
    assert (code, out) == (3, "")
    assert word.partition("=")[0].rstrip(":") in err
    assert "it runs" not in err


@pytest.mark.spec("S0-20")
async def test_what_is_of_the_type_arrives_unchanged_through_every_door(crib, invoke, typed):
    asked = {
        "repo": "raw",
        "limit": -(2**53) + 1,
        "include_email": False,
        "tags": [1, "ä", None, [True, 2.5], {}],
        "options": {"true": "true", "deep": {"er": [0, False, ""]}},
    }
    result = await crib.call(NAME, asked)
    _, answer = await invoke(**asked)
    _, out, err = await asyncio.to_thread(typed, *(f"{name}:={json.dumps(value)}" for name, value in asked.items()))
    for value in (result.value, answer["value"], json.loads(out)):
        # Spelled out, since 1 and true are the same to Python.
        assert json.dumps(value["asked"]) == json.dumps(asked)
        assert value["email"] is None
    assert result.meta["stderr"] == RUNS
    assert "it runs" in err


@pytest.mark.spec("S0-19")
async def test_what_is_left_out_arrives_as_its_default_through_every_door(crib, invoke, typed):
    result = await crib.call(NAME, repo="raw")
    _, answer = await invoke(repo="raw")
    _, out, _ = await asyncio.to_thread(typed, "repo=raw")
    for value in (result.value, answer["value"], json.loads(out)):
        whole = {"repo": "raw", "limit": 100, "include_email": True, "tags": None, "options": {"sort": "stars"}}
        assert json.dumps(value["asked"]) == json.dumps(whole)


@pytest.mark.spec("S0-18")
async def test_what_is_required_has_to_be_there_and_what_is_not_may_be_left_out(crib, invoke, typed):
    result = await crib.call(NAME, limit=1)
    assert (result.error.kind, result.refused) == (Kind.VALIDATION, True)
    assert "repo" in result.error.message
    status, answer = await invoke(limit=1)
    assert (status, answer["kind"]) == (400, "VALIDATION")
    code, _, err = await asyncio.to_thread(typed, "limit=1")
    assert (code, "repo" in err) == (3, True)
    assert (await crib.call(NAME, repo="raw")).value["asked"]["tags"] is None
    assert crib.find(NAME).tool.parameters["required"] == ["repo"]


@pytest.mark.spec("S0-23", "S0-42")
@pytest.mark.parametrize(("repo", "output"), LIES.items())
async def test_an_answer_that_breaks_its_promise_after_the_gate_is_no_answer(crib, repo, output):
    result = await crib.call(NAME, repo=repo)
    assert (result.error.kind, result.refused) == (Kind.OUTPUT_INVALID, False)
    assert output in result.error.message
    assert result.meta["stderr"] == RUNS


@pytest.mark.spec("S0-23", "S0-42")
async def test_it_is_none_over_http_and_on_the_command_line_either(invoke, typed):
    status, answer = await invoke(repo="null")
    assert (status, answer["ok"], answer["error"]["type"]) == (200, False, "OUTPUT_INVALID")
    assert "value" not in answer
    code, _, err = await asyncio.to_thread(typed, "repo=less")
    assert code != 0
    assert "total" in err


@pytest.mark.spec("S0-23")
async def test_null_is_an_answer_where_the_output_allows_it(crib):
    result = await crib.call(NAME, repo="a/b", include_email=False)
    assert (result.ok, result.value["email"]) == (True, None)


@pytest.mark.spec("S0-27", "S0-42")
@pytest.mark.parametrize(
    ("repo", "kind", "message", "value"),
    [
        ("broken", Kind.PERMANENT, "GitHub stopped answering", {"total": 3}),
        ("busy", Kind.RATE_LIMIT, "come back later", {"total": 4}),
    ],
)
async def test_a_failure_keeps_what_was_achieved_in_every_form(crib, invoke, typed, repo, kind, message, value):
    result = await crib.call(NAME, repo=repo)
    assert (result.error.kind, result.error.message, result.value) == (kind, message, value)
    assert to_builder(result) == {"result": value, "success": False, "error": message}
    agent = to_tool_result(result, "call_1")
    assert (agent.success, json.loads(agent.output), agent.error) == (False, value, message)
    status, answer = await invoke(repo=repo)
    assert (status, answer["ok"], answer["error"]["type"]) == (200, False, str(kind))
    assert answer["error"]["details"]["partialValue"] == value
    assert "value" not in answer
    code, out, err = await asyncio.to_thread(typed, f"repo={repo}")
    assert (code == 0, json.loads(out), message in err) == (False, value, True)
