"""The five built-in tools, called as the document calls them."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import fields
from urllib.parse import urlsplit

import pytest

from toolcrib import Crib, Kind

BUILTINS = ("list_files", "read_file", "write_file", "shell", "fetch")
GRANTS = ["fs.*", "net.http", "shell.execute"]


@pytest.fixture
def example(fixtures):
    """Name and arguments of an example call."""

    def read(name):
        call = json.loads((fixtures / f"call_{name}.json").read_text())
        return call["name"], call["arguments"]

    return read


@asynccontextmanager
async def loopback(body: bytes):
    """A server that answers every request with the body; gives its endpoint and the request lines that it saw."""
    seen = []

    async def answer(reader, writer):
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 25)
        seen.append(head.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


@pytest.mark.spec("S4-01")
def test_the_five_built_in_tools_are_there(crib_of):
    assert {tool.name for tool in crib_of().tools} == set(BUILTINS)
    assert crib_of(builtins={"enabled": False}).tools == ()


@pytest.mark.spec("S4-01")
async def test_the_example_of_list_files_runs(project, example):
    (project / "README.md").write_text("Hello")
    async with Crib(project) as crib:
        result = await crib.call(*example("list_files"))
    assert {entry["name"] for entry in result.value} >= {"README.md", "tools"}, result.error


@pytest.mark.spec("S4-01")
async def test_the_example_of_read_file_runs(project, example):
    (project / "README.md").write_text("# Grüße\n")
    async with Crib(project) as crib:
        assert (await crib.call(*example("read_file"))).value == "# Grüße\n"


@pytest.mark.spec("S4-01")
async def test_the_example_of_write_file_runs(project, example):
    async with Crib(project) as crib:
        result = await crib.call(*example("write_file"))
    assert result.ok, result.error
    assert "13 bytes" in result.value
    assert (project / "output.txt").read_text() == "Hello, world!"


@pytest.mark.spec("S4-01")
async def test_the_example_of_shell_runs_once_it_is_granted(project, example):
    (project / "README.md").write_text("Hello")
    async with Crib(project) as crib:
        assert (await crib.call(*example("shell"))).error.kind is Kind.CAPABILITY_MISSING
    async with Crib(project, grants={"*": GRANTS}) as crib:
        result = await crib.call(*example("shell"))
    assert "README.md" in json.dumps(result.value), result.error


@pytest.mark.spec("S4-01")
async def test_the_example_of_fetch_runs_once_it_is_granted(project, example):
    name, arguments = example("fetch")
    async with Crib(project) as crib:
        assert (await crib.call(name, arguments)).error.kind is Kind.CAPABILITY_MISSING
    async with Crib(project, grants={"*": GRANTS}) as crib:
        assert crib.explain(name, arguments).allowed
    # The same call, sent to a server on this machine.
    async with (
        loopback(b'{"stars": 1}') as (endpoint, seen),
        Crib(project, grants={"*": GRANTS}, egress={"private": [endpoint]}) as crib,
    ):
        path = urlsplit(arguments["url"]).path
        result = await crib.call(name, url=f"http://{endpoint}{path}")
    assert result.value == '{"stars": 1}', result.error
    assert seen == ["GET /repos/wyrmspire/agent HTTP/1.1"]


@pytest.mark.spec("S4-02")
async def test_a_built_in_tool_calls_no_other_tool_and_reaches_only_the_server_it_is_told_to(project):
    (project / "README.md").write_text("Hello")
    async with (
        loopback(b"{}") as (endpoint, seen),
        Crib(project, grants={"*": GRANTS}, egress={"private": [endpoint]}) as crib,
    ):
        calls = {
            "list_files": {"path": "."},
            "read_file": {"path": "README.md"},
            "write_file": {"path": "output.txt", "content": "x"},
            "shell": {"command": "ls -la"},
        }
        for name, arguments in calls.items():
            assert (await crib.call(name, arguments)).ok, name
        assert seen == []
        assert (await crib.call("fetch", url=f"http://{endpoint}/")).ok
        assert len(seen) == 1
        called = [line["tool"] for line in crib.journal.read() if line["event"] == "call"]
    slugs = [name.replace("_", "-") for name in (*calls, "fetch")]
    assert called == [f"builtin/{slug}@1.0.0" for slug in slugs]


@pytest.mark.spec("S4-02")
async def test_built_in_tools_keep_nothing_from_one_run_to_the_next(project):
    (project / "a.txt").write_text("first")
    async with Crib(project, grants={"*": GRANTS}) as crib:

        async def look():
            tools = {tool.name: [repr(getattr(tool, part.name)) for part in fields(tool)] for tool in crib.tools}
            answers = [
                await crib.call("list_files", path="."),
                await crib.call("read_file", path="a.txt"),
                await crib.call("shell", command="cd /; x=1; pwd > /dev/null; echo ${y-unset}; y=2; export y"),
            ]
            assert all(answer.ok for answer in answers), answers
            answers[0].value[:] = [entry for entry in answers[0].value if entry["name"] != ".toolcrib"]
            return tools, [answer.value for answer in answers]

        assert await look() == await look()
        assert (await crib.call("shell", command="pwd")).value != (await crib.call("shell", command="cd /; pwd")).value
        assert str(project) in json.dumps((await crib.call("shell", command="pwd")).value)
        (project / "a.txt").write_text("second")
        assert (await crib.call("read_file", path="a.txt")).value == "second"
