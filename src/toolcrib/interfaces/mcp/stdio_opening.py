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
class Opening:
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


def open_stdio() -> Opening:
    """Take standard input and output, and answer the first message if it needs none of the tools."""
    return answer_first(take_stdio())


def take_stdio() -> Opening:
    """Take standard input and output for the protocol alone."""
    opening = Opening(source=os.dup(STANDARD_INPUT), target=os.dup(STANDARD_OUTPUT))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STANDARD_INPUT)
    os.close(nothing)
    os.dup2(STANDARD_ERROR, STANDARD_OUTPUT)
    return opening


def answer_first(opening: Opening) -> Opening:
    """Wait for the first message, and answer it if it needs none of the tools; any other is left for the transport."""
    while b"\n" not in opening.received and len(opening.received) <= MAX_LINE and not opening.is_over:
        piece = os.read(opening.source, PIECE)
        opening.received += piece
        opening.is_over = not piece
    line, end, rest = opening.received.partition(b"\n")
    answer = _answer(line, opening) if end else None
    if answer is not None:
        opening.received = rest
        write_all(opening.target, answer + b"\n")
    return opening


def write_all(target: int, data: bytes) -> None:
    """Write all of the data, however many pieces that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def _answer(line: bytes, opening: Opening) -> bytes | None:
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
            opening.wire, opening.capabilities, result = initialize(request.params)
            return write_result(request.id, result)
        check_stateless(request.params)
        return write_result(request.id, complete(discover()))
    except ProtocolError as problem:
        return write_error(request.id, problem)
