"""The gates that count: how often a tool is called, how much a session may call, and whether it goes round in circles."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.call import MAX_DEPTH
from toolcrib.model.errors import Kind
from toolcrib.model.session import MAX_EMPTY, Step
from toolcrib.model.tool import Behaviour
from toolcrib.model.verdict import ALLOW, Verdict, deny
from toolcrib.pipeline.gates import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.session import Session
    from toolcrib.pipeline.case import Case
    from toolcrib.pipeline.plan import Plan

MINUTE = 60.0
NULL = {"type": "null"}


class Rate:
    """Refuses more calls in a minute than the tool allows."""

    name = "rate"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._admitted: dict[str, deque[float]] = {}

    def concerns(self, plan: Plan) -> bool:
        """Only where the tool sets a rate."""
        return plan.tool.limits.calls_per_minute is not None

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """Counts the calls admitted in the last minute."""
        allowed = plan.tool.limits.calls_per_minute
        times = self._admitted.get(plan.tool.address)
        if allowed is None or times is None or len(times) < allowed:
            return ALLOW
        wait = times[-allowed] + MINUTE - self._clock()
        if wait <= 0:
            return ALLOW
        return deny(
            f"{plan.tool.name} may be called {allowed} times a minute; try again in {wait:.0f} s",
            kind=Kind.RATE_LIMIT,
            rule="calls_per_minute",
            where=place_of(plan, "calls_per_minute"),
            details={"retryAfter": round(wait, 3)},
            retryable=True,
        )

    def admit(self, plan: Plan) -> None:
        """Count the call."""
        allowed = plan.tool.limits.calls_per_minute
        if allowed is not None:
            self._admitted.setdefault(plan.tool.address, deque(maxlen=allowed)).append(self._clock())


class Budget:
    """Refuses a call whose time is over, a chain of calls that is too deep, and a session that has used its calls up."""

    name = "budget"

    def concerns(self, plan: Plan) -> bool:
        """Not by the tool itself: only a call with a deadline, a session or a parent has a budget."""
        return False

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """The deadline, the depth, and then what the session may still call."""
        call = case.call
        # Written so that a deadline which is no number has passed too.
        if call.deadline is not None and not call.deadline > time.monotonic():
            return deny("the deadline of the call has passed", kind=Kind.TIMEOUT, rule="deadline")
        if call.parent is None and call.session is None:
            return ALLOW
        if call.depth > MAX_DEPTH:
            reason = f"tools call each other more than {MAX_DEPTH} deep"
            return deny(reason, kind=Kind.CHAIN_TOO_DEEP, rule="depth")
        if call.session is None:
            return ALLOW
        bound = call.session.used_up(is_retrieval=_is_retrieval(plan))
        return _refuse_spent(call.session, bound) if bound else ALLOW


class Loop:
    """Refuses the same call over and over in one turn of a session, and a tool that keeps finding nothing.

    Only calls that the agent makes itself are remembered: a tool that asks another one again and again knows why, and
    ends with its own time.
    """

    name = "loop"

    def concerns(self, plan: Plan) -> bool:
        """Not by the tool itself: only a session remembers calls."""
        return False

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """What the session remembers of this turn."""
        session = case.call.session
        if session is None or not _looks_for_loops(case, session):
            return ALLOW
        step = step_of(case, plan)
        if session.repeats(step.mark):
            times = "once" if session.max_repeats == 1 else f"{session.max_repeats} times"
            reason = f"{plan.name} was called {times} in this turn with the very same arguments"
            return _refuse_loop(reason, "max_repeats")
        if session.finds_nothing(step.tool):
            return _refuse_loop(f"{plan.name} found nothing {MAX_EMPTY} times in this turn", "empty")
        return ALLOW


def step_of(case: Case, plan: Plan) -> Step:
    """The call as its session counts it, once its arguments are checked and have their defaults."""
    if case.step is None:
        session = case.call.session
        is_marked = session is not None and _looks_for_loops(case, session)
        mark = _mark(plan.address, case.arguments) if is_marked else b""
        case.step = Step(tool=plan.address, is_retrieval=_is_retrieval(plan), mark=mark)
    return case.step


def take_place(case: Case, plan: Plan) -> bool:
    """Have the session count the call; False if it has no place left by now."""
    session = case.call.session
    if session is None:
        return True
    case.turn = session.admit(step_of(case, plan))
    return case.turn is not None


def give_back(case: Case) -> None:
    """Have the session forget a call that was not made after all."""
    if case.call.session is not None and case.step is not None and case.turn is not None:
        case.call.session.take_back(case.step, case.turn)


def note_empty(case: Case, plan: Plan, value: object) -> None:
    """Remember a call that found nothing; a tool that promises to return nothing has not failed to."""
    session, step, turn = case.call.session, case.step, case.turn
    if session is None or step is None or turn is None or not step.mark or plan.tool.output_schema == NULL:
        return
    if value is None or (isinstance(value, str | list | tuple | dict) and not value):
        session.note_empty(step.tool, turn)


def _looks_for_loops(case: Case, session: Session) -> bool:
    return session.max_repeats is not None and case.call.parent is None


def _is_retrieval(plan: Plan) -> bool:
    return plan.tool.behaviour is Behaviour.RETRIEVAL


def _mark(address: str, arguments: dict[str, object]) -> bytes:
    """What identical calls share, of one size however large their arguments are."""
    import hashlib

    text = orjson.dumps([address, arguments], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).digest()


def _refuse_spent(session: Session, bound: str) -> Verdict:
    reason, cure = {
        "max_calls": (
            f"the session has made all of its {session.max_calls} calls",
            "open a new session or raise max_calls",
        ),
        "max_turn_calls": (
            f"this turn has made all of its {session.max_turn_calls} calls",
            "answer the user with what is known, or raise max_turn_calls",
        ),
        "max_turn_retrievals": (
            f"this turn has made all of its {session.max_turn_retrievals} retrievals",
            "answer the user with what was found, or raise max_turn_retrievals",
        ),
    }[bound]
    return deny(reason, kind=Kind.BUDGET_EXCEEDED, rule=bound, cure=cure)


def _refuse_loop(reason: str, rule: str) -> Verdict:
    return deny(
        reason, kind=Kind.LOOP_DETECTED, rule=rule, cure="try something else, or answer the user with what is known"
    )
