"""Answer the first request on standard input before anything else is loaded: clients wait for it before they go on.

It loads neither an event loop nor the tools of the project; `stdio_transport` goes on from here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.interfaces.mcp.messages import ProtocolError, Request, read_message, write_error, write_result
from toolcrib.interfaces.mcp.versions import check_stateless, complete, discover, initialize, is_stateless_request

if TYPE_CHECKING:
    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.interfaces.mcp.versions import Wire

MAX_LINE = 4_000_000
PIECE = 65_536
STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = 0, 1, 2


@dataclass(slots=True)
class Handshake:
    """A connection whose first request may have been answered: the session that it opened, and what was read since.

    `source` and `target` are descriptors of its own. Standard input is empty from then on and standard output leads to
    standard error, so that nothing a tool reads or prints gets between the messages.
    """

    source: int
    target: int
    received: bytes = b""
    is_over: bool = False
    wire: Wire | None = None
    capabilities: Params = field(default_factory=dict)


def open_stdio() -> Handshake:
    """Take standard input and output, and answer the first message if it needs none of the tools."""
    return answer_first(take_stdio())


def take_stdio() -> Handshake:
    """Take standard input and output for the protocol alone."""
    handshake = Handshake(source=os.dup(STANDARD_INPUT), target=os.dup(STANDARD_OUTPUT))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STANDARD_INPUT)
    os.close(nothing)
    os.dup2(STANDARD_ERROR, STANDARD_OUTPUT)
    return handshake


def answer_first(handshake: Handshake) -> Handshake:
    """Wait for the first message, and answer it if it needs none of the tools; any other is left for the transport."""
    while b"\n" not in handshake.received and len(handshake.received) <= MAX_LINE and not handshake.is_over:
        piece = os.read(handshake.source, PIECE)
        handshake.received += piece
        handshake.is_over = not piece
    line, end, rest = handshake.received.partition(b"\n")
    answer = _answer(line, handshake) if end else None
    if answer is not None:
        handshake.received = rest
        write_all(handshake.target, answer + b"\n")
    return handshake


def write_all(target: int, data: bytes) -> None:
    """Write all of the data, however many pieces that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def _answer(line: bytes, handshake: Handshake) -> bytes | None:
    try:
        request = read_message(line, MAX_LINE)
    except ProtocolError:
        return None
    if not isinstance(request, Request) or request.method not in {"initialize", "server/discover"}:
        return None
    try:
        if request.method == "initialize" and is_stateless_request(request.params):
            return None
        if request.method == "initialize":
            handshake.wire, handshake.capabilities, result = initialize(request.params)
            return write_result(request.id, result)
        check_stateless(request.params)
        return write_result(request.id, complete(discover()))
    except ProtocolError as problem:
        return write_error(request.id, problem)
