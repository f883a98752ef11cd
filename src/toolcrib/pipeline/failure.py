"""Whatever went wrong, as one kind of error."""

from __future__ import annotations

import sys

from toolcrib.model.errors import Kind, ToolError

# A tool that said these could pass its own failure off as a refusal, or hand out a confirmation.
WORDS_OF_GATES = frozenset({"gate", "confirmation", "expiresAt"})


def classify(problem: BaseException, name: str) -> ToolError:
    """Any failure as a ToolError, freed of the frames that its traceback holds on to and of words that only gates may use."""
    if isinstance(problem, ToolError):
        return copy_error(problem, value=problem.value)
    if isinstance(problem, (ConnectionError, TimeoutError)):
        message = f"{name} could not reach what it needs ({type(problem).__name__})"
        return ToolError(Kind.TRANSIENT, message, retryable=True, partial_side_effects=True)
    if is_cancellation(problem):
        return ToolError(Kind.CANCELLED, f"{name} gave up by itself", partial_side_effects=True)
    message = f"{name} failed unexpectedly ({type(problem).__name__}); the log has the details"
    return ToolError(Kind.INTERNAL, message, partial_side_effects=True)


def copy_error(error: ToolError, *, value: object) -> ToolError:
    """The same error without its history, beside another partial value."""
    return ToolError(
        error.kind,
        error.message,
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        details={key: fact for key, fact in error.details.items() if key not in WORDS_OF_GATES},
        value=value,
    )


def must_pass(problem: BaseException) -> bool:
    """Whether a failure is meant for the host program and not for the caller of a tool."""
    if is_cancellation(problem):
        return _is_being_cancelled()
    return isinstance(problem, (KeyboardInterrupt, GeneratorExit))


def is_cancellation(problem: BaseException) -> bool:
    """Whether this is how asyncio ends a task; where nobody loaded asyncio, nothing is."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(problem, asyncio.CancelledError)


def _is_being_cancelled() -> bool:
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:
        # No event loop runs, so nobody can have cancelled anything.
        return False
    return task is None or task.cancelling() > 0
