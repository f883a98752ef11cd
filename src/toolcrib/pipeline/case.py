"""A call on its way through the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.call import wish

if TYPE_CHECKING:
    import asyncio

    from toolcrib.model.call import Call
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Entry
    from toolcrib.model.verdict import Verdict
    from toolcrib.pipeline.plan import Plan

TEXT_MODE = "text"


class Case:
    """What all steps look at, and what one finds for the next.

    What every call sets has a slot. What few calls set has its default here on the class and, with them, costs nothing.
    """

    __slots__ = (
        "__dict__",
        "arguments",
        "caller",
        "cancelled_before",
        "deadline",
        "entry",
        "id",
        "name",
        "plan",
        "started",
        "task",
        "watched",
        "wished",
    )

    name: str
    caller: str
    wished: Call | None
    started: float
    id: str
    entry: Entry
    plan: Plan | None
    # The arguments as given, and once the argument gate has passed them, with their defaults.
    arguments: dict[str, object]
    # Kept by Deadlines: when to strike which task, how often others had done so before, and the calls that it watches.
    deadline: float
    task: asyncio.Task[object]
    cancelled_before: int
    watched: set[Case]

    # How often the deadline struck.
    struck: int = 0
    # The question of a rule that wants a confirmation.
    asks: Verdict | None = None
    # How often the tool was tried, what its runner said besides the value, and whether there is anything to tell in `meta`.
    attempts: int = 1
    outcome: Outcome | None = None
    is_noteworthy: bool = False

    @property
    def call(self) -> Call:
        """The call; where only name, arguments and caller were given, it is not made until somebody asks for it."""
        if self.wished is None:
            self.wished = wish(self.name, self.arguments, self.caller)
        return self.wished


def open_case(name: str, arguments: dict[str, object], caller: str, call: Call | None = None) -> Case:
    """A case for a new call. A function, because a constructor costs half an argument check."""
    case = Case()
    case.name = name
    case.arguments = arguments
    case.caller = caller
    case.wished = call
    case.plan = None
    return case


def mode_of(call: Call) -> str:
    """The mode a call is made in: its own, else its session's, else text."""
    if call.mode is not None:
        return call.mode
    return TEXT_MODE if call.session is None else call.session.mode
