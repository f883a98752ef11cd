"""Keeping a request, whoever brings it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.requests import spell_id, with_id
from toolcrib.pure.requests.ids import LAST_NUMBER
from toolcrib.queues.documents import is_text
from toolcrib.queues.redis.rows import read_filed
from toolcrib.queues.refusals import not_text, other_text

if TYPE_CHECKING:
    from toolcrib.model.toolrequest import Filed, ToolRequest
    from toolcrib.queues.redis.commands import Answer, Commands


def file_request(commands: Commands, request: ToolRequest) -> Filed:
    """Keep a request of our own and publish it; raises CONFLICT, or LIMIT_EXCEEDED."""
    answer = give_request(commands, request)
    if answer.outcome["outcome"] == "taken":
        raise other_text(request.id)
    if answer.outcome["outcome"] == "occupied":
        place = f"the key {commands.names.prefix}:{request.id} at {commands.link.place}"
        message = f"{place} holds something that is no request; take it away, or give the request another id"
        raise ToolError(Kind.CONFLICT, message, details={"id": request.id})
    if answer.outcome["outcome"] == "full":
        spell_id(str(answer.outcome["day"]), LAST_NUMBER + 1)
    return read_filed(answer.rows[0])


def give_request(commands: Commands, request: ToolRequest, **given: object) -> Answer:
    """Give the server a request; what becomes of it is in the outcome."""
    for what in ("id", "name", "text", "wish", "experiment"):
        if not is_text(getattr(request, what)):
            raise not_text(f"the {what} of the request")
    text, rest = (request.text, "") if request.id else _around_id(request.text)
    return commands.change(
        "file",
        id=request.id,
        text=text,
        rest=rest,
        name=request.name,
        wish=request.wish,
        priority=str(request.priority),
        experiment=request.experiment,
        **given,
    )


def _around_id(text: str) -> tuple[str, str]:
    """What stands before and behind the number, which only the server knows."""
    mark = f"req_{uuid4().hex}"
    before, _, behind = with_id(text, mark).partition(mark)
    return before, behind
