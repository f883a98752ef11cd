"""A call on its way through the pipeline."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.model.call import Call
    from toolcrib.model.result import Outcome
    from toolcrib.model.session import Step, Turn
    from toolcrib.model.tool import Entry
    from toolcrib.model.verdict import Verdict
    from toolcrib.pipeline.deadline import Watch
    from toolcrib.pipeline.plan import Plan

CALL = "call"
TEXT_MODE = "text"


class Case:
    """What all steps look at, and what one finds for the next."""

    __slots__ = (
        "arguments",
        "asks",
        "attempts",
        "began",
        "call",
        "entry",
        "id",
        "outcome",
        "plan",
        "ran",
        "started",
        "step",
        "turn",
        "watch",
    )

    def __init__(self, call: Call, call_id: str, started: float | None = None) -> None:
        self.call = call
        self.id = call_id
        self.started = monotonic() if started is None else started
        self.entry: Entry | None = None
        self.plan: Plan | None = None
        # When the tool itself began, after everything that had to be done first.
        self.began = self.started
        self.ran = False
        # The arguments as given, and once the argument gate has passed them, with their defaults.
        self.arguments = call.arguments
        # The question of a rule that wants a confirmation.
        self.asks: Verdict | None = None
        # What its session counts the call as, and in which of its turns.
        self.step: Step | None = None
        self.turn: Turn | None = None
        # How often the tool was tried, what its runner said besides the value, and who ends it when its time is up.
        self.attempts = 1
        self.outcome: Outcome | None = None
        self.watch: Watch | None = None


def mode_of(call: Call) -> str:
    """The mode a call is made in: its own, else its session's, else text."""
    if call.mode is not None:
        return call.mode
    return TEXT_MODE if call.session is None else call.session.mode
