"""A file that describes a request is a tool: read unchanged, granted, called and answered."""

import asyncio
import json
from contextlib import suppress

import pytest

from toolcrib import Crib, Kind

REMOTE_CALL = """\
# .ai/tools/mcp/mcp_http.yaml
tool_id: mcp_http
tool_type: http
version: "1.0.0"
description: "Execute JSON-RPC call over HTTP MCP connection"
executor_id: http_client
category: mcp

requires:
  - net.call

config:
  method: POST
  url: "{url}"
  headers:
    Content-Type: application/json
  body:
    jsonrpc: "2.0"
    id: "{request_id}"
    method: "{rpc_method}"
    params: "{rpc_params}"

parameters:
  - name: url
    type: string
    required: true
    description: "MCP server URL"
  - name: rpc_method
    type: string
    required: true
    description: "JSON-RPC method (e.g., tools/call)"
  - name: rpc_params
    type: object
    required: true
    description: "JSON-RPC params"
"""


@pytest.fixture
def tree(project):
    folder = project / ".ai/tools/mcp"
    folder.mkdir(parents=True)
    (folder / "mcp_http.yaml").write_text(REMOTE_CALL)
    return project


@pytest.fixture
async def server():
    """Answers a remote call with its own request as the result."""
    seen = []

    async def talk(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next(line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length:"))
            request = json.loads(await reader.readexactly(int(length)))
            seen.append(request)
            body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]}).encode()
            kind = b"Content-Type: application/json\r\nConnection: close\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as listening:
        talk.endpoint = "{}:{}".format(*listening.sockets[0].getsockname())
        talk.seen = seen
        yield talk


@pytest.mark.spec("S3-41")
async def test_the_documents_remote_call_works_unchanged(tree, server):
    arguments = {
        "url": f"http://{server.endpoint}/mcp",
        "rpc_method": "tools/call",
        "rpc_params": {"a": [1, {"b": None}]},
    }
    async with Crib(tree, grants={"*": ["net.call"]}, egress={"private": [server.endpoint]}) as crib:
        result = await crib.call("mcp_http", arguments)
    assert result.error is None
    (request,) = server.seen
    assert (request["method"], request["params"]) == ("tools/call", {"a": [1, {"b": None}]})
    assert request["id"] == result.meta["callId"]
    assert result.value["result"] == {"a": [1, {"b": None}]}
    assert (result.meta["status"], result.meta["origin"]) == (200, f"http://{server.endpoint}")


@pytest.mark.spec("S3-41")
async def test_without_its_capability_or_its_url_nothing_is_sent(tree, server):
    arguments = {"url": f"http://{server.endpoint}/", "rpc_method": "a", "rpc_params": {}}
    async with Crib(tree, egress={"private": [server.endpoint]}) as crib:
        refused = await crib.call("mcp_http", arguments)
    async with Crib(tree, grants={"*": ["net.call"]}, egress={"private": [server.endpoint]}) as crib:
        incomplete = await crib.call("mcp_http", {"rpc_method": "a", "rpc_params": {}})
    async with Crib(tree, grants={"*": ["net.call"]}) as crib:
        private = await crib.call("mcp_http", arguments)
    kinds = [result.error.kind for result in (refused, incomplete, private)]
    assert kinds == [Kind.CAPABILITY_MISSING, Kind.VALIDATION, Kind.HOST_NOT_ALLOWED]
    assert server.seen == []


@pytest.mark.spec("S3-57", "S3-65")
async def test_the_primitives_can_be_called_by_their_names(project, server):
    async with Crib(project, grants={"*": ["net.http", "fs.*"]}, egress={"private": [server.endpoint]}) as crib:
        body = {"id": 1, "params": ["{x}"]}
        sent = await crib.call("http_client", {"method": "POST", "url": f"http://{server.endpoint}/", "body": body})
        written = await crib.call("filesystem", {"operation": "append", "path": "a.txt", "content": "one"})
        read = await crib.call("filesystem", {"operation": "read", "path": "a.txt"})
        unknown = await crib.call("filesystem", {"operation": "chmod", "path": "a.txt"})
    assert sent.value["result"] == ["{x}"]
    assert (written.value, read.value) == ({"path": "a.txt", "bytes": 3}, "one")
    assert unknown.error.kind is Kind.VALIDATION
