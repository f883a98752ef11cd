"""The built-in `fetch`: the content of a URL as text, or the size of what is not text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.egress.messages import Request, describe_binary, text_of
from toolcrib.lib.http_syntax import parse_url
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import Limits
from toolcrib.model.tool import Behaviour, Function, SideEffects, Tool

if TYPE_CHECKING:
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.egress.messages import Response

MAX_BYTES = 5_000_000
TIMEOUT_SECONDS = 30
OK = 200
TRANSIENT_STATUSES = frozenset({408, 429})
SERVER_ERRORS = range(500, 600)
PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"url": {"type": "string", "description": "The http or https URL to read, written out in full."}},
    "required": ["url"],
    "additionalProperties": False,
}


def fetch_tool(egress: Egress, *, max_bytes: int = MAX_BYTES, timeout_seconds: float = TIMEOUT_SECONDS) -> Tool:
    """The tool, reading through the given egress."""

    async def fetch(url: str) -> str:
        request = Request(url=parse_url(url))
        response = await egress.fetch(request, hosts=None, max_bytes=max_bytes, timeout=timeout_seconds)
        _check_status(response)
        text = text_of(response)
        return describe_binary(response) if text is None else text

    def check(arguments: dict[str, object]) -> None:
        egress.check(parse_url(str(arguments["url"])), None)

    return Tool(
        name="fetch",
        description="Read a URL with GET. Returns the response content (text, JSON, XML) or size info for binary.",
        parameters=PARAMETERS,
        output_schema={"type": "string"},
        run=Function(call=fetch, is_async=True, check=check),
        bundle="builtin",
        behaviour=Behaviour.RETRIEVAL,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        requires=frozenset({"net.http"}),
        limits=Limits(timeout_ms=round(timeout_seconds * 1000)),
    )


def _check_status(response: Response) -> None:
    if response.status == OK:
        return
    again = response.status in TRANSIENT_STATUSES or response.status in SERVER_ERRORS
    raise ToolError(
        Kind.TRANSIENT if again else Kind.PERMANENT,
        f"{response.url.origin}: the server answered with status {response.status} instead of {OK}",
        retryable=again,
        details={"origin": response.url.origin, "status": response.status},
    )
