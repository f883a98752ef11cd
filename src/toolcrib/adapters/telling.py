"""What a model is told of a result: its value, or why there is none; never a token, a stack or a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.pure.projections import to_text

if TYPE_CHECKING:
    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Result

MAX_MESSAGE = 4_000


def tell(result: Result) -> str:
    """The result as text: the value, or the error as JSON."""
    return to_text(value_of(result) if result.error is None else error_of(result.error, result))


def value_of(result: Result) -> object:
    """The value; of one that was kept aside its head, and how to read the rest."""
    kept = result.meta.get("kept")
    if not isinstance(kept, dict):
        return result.value
    shown = kept.get("shown")
    return (
        f"{result.value}\n\n[These are {shown} of {kept.get('letters')} letters. The rest is kept for an hour: "
        f'crib.read_result("{kept.get("handle")}", offset={shown}). Or ask for less.]'
    )


def error_of(error: ToolError, result: Result) -> dict[str, object]:
    """The error as an object; what the tool had achieved stands beside it."""
    told: dict[str, object] = {
        "type": str(error.kind),
        "message": _sendable(_without_cure(error)),
        "retryable": error.retryable,
        "partialSideEffects": error.partial_side_effects,
    }
    return told if result.value is None else {**told, "partialValue": value_of(result)}


def _without_cure(error: ToolError) -> str:
    """What went wrong, without what only an operator can do about it."""
    cure = error.details.get("cure")
    return error.message.removesuffix(f"; {cure}") if isinstance(cure, str) and cure else error.message


def _sendable(message: str) -> str:
    """A message that is short enough and holds no half characters, which no client could send."""
    short = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
    return short.encode("utf-8", "replace").decode()
