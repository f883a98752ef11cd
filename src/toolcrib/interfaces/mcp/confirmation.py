"""Calls that need a person's confirmation: a client of this protocol never confirms its own, another person approves them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.model.approval import State
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.features.approvals.approvals import Approvals
    from toolcrib.model.call import Call
    from toolcrib.model.result import Result

# What only a person at the project may see.
TOKENS = frozenset({"confirmation", "expiresAt"})


def is_unconfirmed(result: Result) -> bool:
    """Whether a gate held the call back for a person to confirm; a tool that fails with this kind has run."""
    return result.error is not None and result.error.kind is Kind.CONFIRMATION_REQUIRED and result.refused


async def wait_for_approval(
    result: Result, call: Call, perform: Callable[[Call], Awaitable[Result]], approvals: Approvals, seconds: float
) -> Result:
    """Wait a while for a person to approve the call, and make it again; else say which approval it waits for."""
    error = result.error
    approval_id = None if error is None else error.details.get("approval")
    if isinstance(approval_id, str):
        approval = await approvals.wait(approval_id, seconds)
        if approval.state is not State.PENDING:
            result = await perform(call)
    return without_token(result)


def without_token(result: Result) -> Result:
    """The result without what would confirm the call; calls of this interface get none, and this holds it so."""
    error = result.error
    if error is None or not TOKENS & error.details.keys():
        return result
    details = {key: fact for key, fact in error.details.items() if key not in TOKENS}
    return replace(result, error=ToolError(error.kind, error.message, details=details))
