"""Write a call as its HTTP request: `POST /call/{name}` with the arguments as the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from toolcrib.client.connection import to_bytes
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.call import Call

MAX_ID = 64
SESSION_HEADER = "Toolcrib-Session"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRequest:
    """A request that makes a call."""

    target: str
    headers: Mapping[str, str]
    body: bytes


def write_call(call: Call, accept: str) -> CallRequest:
    """The request of a call; raises ToolError for fields that only the server decides."""
    check_call(call)
    query = {name: word for name, word in (("bundle", call.bundle), ("version", call.version)) if word is not None}
    said = {
        SESSION_HEADER: None if call.session is None else call.session.id,
        "Toolcrib-Mode": call.mode,
        "Toolcrib-Confirmation": call.confirmation,
        "X-Request-Id": call.id[:MAX_ID] or None,
    }
    headers = {name: _header(name, text) for name, text in said.items() if text is not None}
    path = f"/call/{quote(call.name, safe='')}"
    return CallRequest(
        target=f"{path}?{urlencode(query)}" if query else path,
        headers={"Accept": accept, "Content-Type": "application/json", **headers},
        body=to_bytes(call.arguments),
    )


def check_call(call: Call) -> None:
    """Raise ToolError for a call with fields that only the server decides: grants, parent and caller."""
    if call.grants is not None or call.parent is not None:
        raise ToolError(Kind.VALIDATION, "what a tool may use is granted on the server; call without grants and parent")
    if call.caller not in {"", "local"}:
        message = "a server knows its callers by their tokens; connect with a token of the caller, and leave caller out"
        raise ToolError(Kind.VALIDATION, message)


def _header(name: str, text: str) -> str:
    """Raise ToolError for a text that could break out of its header."""
    if text.isascii() and text.isprintable():
        return text
    raise ToolError(
        Kind.VALIDATION, f"{name.removeprefix('Toolcrib-').lower()}: {text[:80]!r} cannot be sent in a header"
    )
