"""Why a queue refuses, in the same words whichever queue it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.model.toolrequest import Status


def unknown(request_id: str) -> ToolError:
    """No request has this id."""
    message = f"there is no request {request_id!r:.200}; list them with: crib request list"
    return ToolError(Kind.NOT_FOUND, message)


def other_text(request_id: str) -> ToolError:
    """The id is taken by another request."""
    message = f"{request_id} is another request already; give this one another id, or none to get the next number"
    return ToolError(Kind.CONFLICT, message, details={"id": request_id})


def is_over(request_id: str, status: Status) -> ToolError:
    """It ended before this could count."""
    cure = (
        "nothing is left to do" if status == "ready" else f"have it built again with: crib request retry {request_id}"
    )
    message = f"{request_id} is {status} already; {cure}"
    return ToolError(Kind.CONFLICT, message, details={"id": request_id, "status": str(status)})


def cannot_be_retried(request_id: str, status: Status) -> ToolError:
    """It is not among those that came to nothing."""
    cure = "file a request of its own for another tool" if status == "ready" else "wait for it, or cancel it first"
    message = f"{request_id} is {status}; only one that failed or was cancelled can be built again: {cure}"
    return ToolError(Kind.CONFLICT, message, details={"id": request_id, "status": str(status)})


def not_text(what: str) -> ToolError:
    """It holds half a character."""
    return ToolError(Kind.VALIDATION, f"{what} is not Unicode; write it in whole characters")
