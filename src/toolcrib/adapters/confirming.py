"""Calls made side by side, and again where a person said yes: the token that confirms stays with the host."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.call import Call
    from toolcrib.model.result import Result

    Confirm = Callable[[Call, ToolError], bool | Awaitable[bool]]

logger = logging.getLogger("toolcrib.adapters")

NOBODY_ASKED = "nobody can confirm it here, and you cannot; say what it would do and let the person decide"
PERSON_ASKED = "the person was asked; ask for it again only if they say so"


async def make_calls(crib: Crib, calls: Sequence[Call], confirm: Confirm | None) -> list[Result]:
    """Make calls side by side; those that need a person's word are made again with it, after one question each."""
    results = await crib.call_all(calls)
    if confirm is None:
        return [_without_token(result, NOBODY_ASKED) for result in results]
    confirmed: dict[int, Call] = {}
    for number, (call, result) in enumerate(zip(calls, results, strict=True)):
        if not _is_refused(result.error):
            continue
        token = result.error.details.get("confirmation")
        if isinstance(token, str) and await _agrees(confirm, call, result.error):
            confirmed[number] = replace(call, confirmation=token)
    for number, result in zip(confirmed, await crib.call_all(confirmed.values()), strict=True):
        results[number] = result
    return [_without_token(result, PERSON_ASKED) for result in results]


async def _agrees(confirm: Confirm, call: Call, error: ToolError) -> bool:
    """Whether somebody said yes; a question that could not be asked was not answered."""
    try:
        answer = confirm(call, error)
        return (await answer if isinstance(answer, Awaitable) else answer) is True
    except Exception:
        # The other calls have run, and the model must hear of them.
        logger.exception("asking for the confirmation of %s failed, so nobody agreed", call.name)
        return False


def _without_token(result: Result, cure: str) -> Result:
    """A refusal in words for a model, without what the host could confirm the call with."""
    error = result.error
    if not _is_refused(error):
        return result
    reason = error.message.removesuffix(f"; {error.details.get('cure')}")
    return replace(result, error=ToolError(error.kind, f"{reason}; {cure}"))


def _is_refused(error: ToolError | None) -> TypeGuard[ToolError]:
    return error is not None and error.kind is Kind.CONFIRMATION_REQUIRED
