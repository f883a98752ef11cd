"""What the author of a tool should know about this installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.model.tool import Tool


def remark_on_hosts(tool: Tool, hosts: tuple[str, ...]) -> Iterator[str]:
    """Warn of each host that the tool names and that its calls may not reach."""
    if not isinstance(tool.run, Http):
        return
    from toolcrib.ground.egress import parse_hosts, parse_url

    try:
        allowed = parse_hosts(hosts)
    except ToolError as problem:
        yield f"allowed_hosts: {problem.message}"
        return
    for origin in dict.fromkeys("/".join(call.url.split("/", 3)[:3]) for call in tool.run.calls):
        try:
            allowed.check(parse_url(f"{origin}/"))
        except ToolError:
            host = origin.partition("://")[2]
            yield f'{host} is not among allowed_hosts, so that calls are refused; add "{host}" there'
