"""The HTTP endpoints of the protocol; its messages are described by the protocol, and not in the API document."""

from __future__ import annotations

from toolcrib.interfaces.mcp.http_transport import McpEndpoints
from toolcrib.model.call import Scope
from toolcrib.toolkit.http.contract import Reply
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

PATH = "/mcp"

MCP_ENDPOINTS = EndpointTable(
    tag="mcp",
    summary="The Model Context Protocol, for clients that speak it.",
    make=McpEndpoints,
    described=False,
    endpoints=(
        Endpoint(
            name="mcpRequest",
            method="POST",
            path=PATH,
            handler=McpEndpoints.post,
            scope=Scope.READ,
            is_call=True,
            summary="Send a message; a request is answered as JSON or as a stream of events.",
            replies={200: Reply(description="The answer."), 202: Reply(description="The message has no answer.")},
        ),
        Endpoint(
            name="mcpStream",
            method="GET",
            path=PATH,
            handler=McpEndpoints.listen,
            scope=Scope.READ,
            summary="Stream changes, in a session of an older version of the protocol.",
            replies={200: Reply(description="A stream of events.")},
        ),
        Endpoint(
            name="mcpEnd",
            method="DELETE",
            path=PATH,
            handler=McpEndpoints.end,
            scope=Scope.READ,
            summary="End a session of an older version of the protocol.",
            replies={204: Reply(description="The session has ended.")},
        ),
    ),
)

endpoints = (MCP_ENDPOINTS,)
