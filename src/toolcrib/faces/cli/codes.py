"""How the command line ends: its exit codes, and the error of whoever typed the wrong thing."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, SettingsError

if TYPE_CHECKING:
    from toolcrib.model.errors import ToolError
    from toolcrib.pipeline.explanation import Explanation


class ExitCode(IntEnum):
    """The closed list of endings."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    UNKNOWN_TOOL = 4
    NEEDS_CONFIRMATION = 5
    INTERRUPTED = 130
    READER_GONE = 141


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "the tool failed, or check found problems",
    ExitCode.WRONG_USE: "wrong use or wrong settings",
    ExitCode.REFUSED: "a gate refused the call",
    ExitCode.UNKNOWN_TOOL: "there is no such tool",
    ExitCode.NEEDS_CONFIRMATION: "the call waits for confirmation",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.READER_GONE: "whoever read the output went away",
}


class WrongUseError(Exception):
    """What was typed cannot be understood; the message says how to write it."""


def code_of_error(error: ToolError) -> ExitCode:
    """How a failed call ends. Only a gate's refusal names its gate; everything else failed on the way."""
    if isinstance(error, SettingsError):
        return ExitCode.WRONG_USE
    if "gate" not in error.details:
        return ExitCode.FAILED
    return _code_of_refusal(error.kind)


def code_of_explanation(explanation: Explanation) -> ExitCode:
    """How the call would end that was explained."""
    refusal = explanation.refusal
    if refusal is None or refusal.verdict is None:
        return ExitCode.DONE
    return _code_of_refusal(refusal.verdict.kind)


def _code_of_refusal(kind: Kind) -> ExitCode:
    special = {Kind.NOT_FOUND: ExitCode.UNKNOWN_TOOL, Kind.CONFIRMATION_REQUIRED: ExitCode.NEEDS_CONFIRMATION}
    return special.get(kind, ExitCode.REFUSED)
