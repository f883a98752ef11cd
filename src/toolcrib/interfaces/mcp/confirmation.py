"""Calls that need a person's confirmation: a client of this protocol never confirms its own, another person approves them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from toolcrib.lib.seal import new_nonce
from toolcrib.model.approval import State
from toolcrib.model.call import ELICIT, Question
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.features.approvals.approvals import Approvals
    from toolcrib.model.call import Call, ClientLink
    from toolcrib.model.result import Result

logger = logging.getLogger("toolcrib.mcp")

MAX_SHOWN_LETTERS = 2_000
# How long the user of a client may take to answer.
ASK_SECONDS = 300.0
SCHEMA = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve", "description": "Whether it may run, once."}},
    "required": ["approve"],
}
# What only a person at the project may see.
TOKENS = frozenset({"confirmation", "expiresAt"})


def is_unconfirmed(result: Result) -> bool:
    """Whether a gate held the call back for a person to confirm; a tool that fails with this kind has run."""
    return result.error is not None and result.error.kind is Kind.CONFIRMATION_REQUIRED and result.refused


async def ask_for_approval(
    result: Result, call: Call, perform: Callable[[Call], Awaitable[Result]], approvals: Approvals, link: ClientLink
) -> Result:
    """Have the client ask its user, take the answer as the decision, and make the call again.

    Only where the operator says that such an answer is a person's. A client that cannot ask, or whose user does not answer, leaves
    the call as it was. What is too long to be read at a glance is not asked for here.
    """
    error = result.error
    approval_id = None if error is None else error.details.get("approval")
    if not isinstance(approval_id, str):
        return result
    approval = approvals.show(approval_id)
    shown = orjson.dumps(dict(approval.arguments)).decode()
    if len(shown) > MAX_SHOWN_LETTERS:
        return result
    message = f"May {approval.tool} run once? It needs a person because {approval.reason}. Its arguments: {shown}"
    asked = {"message": message, "requestedSchema": SCHEMA}
    try:
        # The key cannot be guessed: an answer that comes with the first request answers nothing.
        async with asyncio.timeout(ASK_SECONDS):
            answer = await link.ask(Question(method=ELICIT, params=asked, key=f"approval-{new_nonce()}"))
        content = answer.get("content")
        if answer["action"] == "cancel":
            return result
        is_approved = isinstance(content, dict) and content.get("approve") is True
        decide = approvals.approve if is_approved else approvals.refuse
        decide(approval_id, by=f"user of {call.caller}", note="answered in the client")
    except TimeoutError:
        return result
    except ToolError as problem:
        logger.info("%s was not asked in the client, or was decided elsewhere: %s", approval_id, problem.message)
        if problem.kind is not Kind.CONFLICT:
            return result
    return await perform(call)


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
    """The result without what would confirm the call; calls of this interface get none, and this enforces it."""
    error = result.error
    if error is None or not TOKENS & error.details.keys():
        return result
    details = {key: fact for key, fact in error.details.items() if key not in TOKENS}
    return replace(result, error=error.replace(details=details))
