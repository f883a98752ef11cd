"""What a call is answered, and what is told about it: in the result, in the journal and in the log."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome, Result, succeed
from toolcrib.model.verdict import Decision
from toolcrib.pipeline.answer import HEAD_LETTERS, Whole, bound, keep_aside, settle
from toolcrib.pipeline.case import CALL
from toolcrib.pipeline.counting import note_empty
from toolcrib.pipeline.deadline import leave
from toolcrib.pipeline.failure import classify, copy_error, must_pass
from toolcrib.pipeline.intents import deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Line
    from toolcrib.model.verdict import Verdict
    from toolcrib.pipeline.case import Case
    from toolcrib.pipeline.confirmation import Confirmations
    from toolcrib.pipeline.kept import KeptResults
    from toolcrib.pipeline.plan import Plan

logger = logging.getLogger("toolcrib.pipeline")

COST = "cost"
STDERR = "stderr"


class Answers:
    """Makes the Result of a call, however it ended."""

    def __init__(
        self, record: Callable[[Line], None], confirmations: Confirmations, kept: KeptResults, result_bytes: int
    ) -> None:
        self._record = record
        self._confirmations = confirmations
        self._kept = kept
        self._result_bytes = result_bytes

    def finish(self, case: Case, plan: Plan, answer: object) -> Result:
        """Check what the tool returned against what it promised."""
        try:
            if isinstance(answer, Outcome):
                case.outcome = answer
                case.began += answer.waited  # a budget is about the tool's own time
                if answer.error is not None:
                    raise copy_error(answer.error, value=answer.value)
                if answer.stands_in:
                    return self.succeed(case, plan, answer.value)
                answer = answer.value
            value = settle(plan, answer, self._result_bytes)
        except ToolError as problem:
            return self.fail(problem, case)
        return self.succeed(case, plan, value)

    def succeed(self, case: Case, plan: Plan, value: object) -> Result:
        """A success, written down with all there is to say about it; a value that is too large is kept aside."""
        seconds, call = monotonic() - case.started, case.call
        meta: dict[str, object] = {
            "callId": case.id,
            "tool": plan.name,
            "version": plan.version,
            "durationMs": seconds * 1000,
        }
        if case.outcome is not None:
            meta |= case.outcome.meta
        if call.session is not None and call.session.max_calls is not None:
            meta["steps"] = {"used": call.session.calls, "max": call.session.max_calls}
        facts = _facts_of(case, seconds)
        note_empty(case, plan, value)
        if type(value) is Whole:
            value = self._keep(value, call, meta)
        _tell(case, plan, meta, facts)
        intents = case.outcome.intents if case.outcome else ()
        if intents:
            _warn(deliver(intents, call.session, case.id), case, meta)
        self._record(
            (CALL, case.started, case.id, plan.address, call.caller, seconds, None, facts or None, plan.tool_id)
        )
        logger.info("call %s: %s succeeded after %.1f ms", case.id, plan.name, seconds * 1000)
        return succeed(value, intents, meta)

    def refuse(self, gate: str, verdict: Verdict, case: Case, plan: Plan) -> Result:
        """The answer of a gate."""
        error = verdict.to_error(gate)
        # A tool that calls another cannot confirm anything, and must not learn how its caller would.
        if verdict.decision is Decision.CONFIRM and case.call.parent is None:
            error = self._with_token(error, case, plan)
        return self.answer(error, case)

    def fail(self, problem: BaseException, case: Case) -> Result:
        """The answer to a call that came to nothing; lets through what is meant for the host program."""
        name = case.call.name
        problem = leave(case.watch, problem, name, case.started)
        error = classify(problem, name)
        if must_pass(problem):
            self.answer(error, case)
            raise problem
        if error.kind is Kind.INTERNAL and not isinstance(problem, ToolError):
            logger.error("call %s: %s failed unexpectedly", case.id, name, exc_info=problem)
        return self.answer(error, case)

    def answer(self, error: ToolError, case: Case) -> Result:
        """A failure, written down."""
        seconds, plan, call = monotonic() - case.started, case.plan, case.call
        name, tool_id = (call.name, "") if plan is None else (plan.address, plan.tool_id)
        meta: dict[str, object] = {"callId": case.id, "tool": call.name, "durationMs": seconds * 1000}
        if plan is not None:
            meta |= {"tool": plan.name, "version": plan.version}
        if case.outcome is not None:
            meta |= case.outcome.meta
        value = self._partial(error, call, meta)
        facts = _facts_of(case, seconds)
        if plan is not None and case.ran:
            _tell(case, plan, meta, facts)
        self._record((CALL, case.started, case.id, name, call.caller, seconds, error.kind, facts or None, tool_id))
        logger.info("call %s: %s came to nothing after %.1f ms: %s", case.id, name, seconds * 1000, error.kind)
        intents = case.outcome.intents if case.outcome else ()
        return Result(value=value, error=error, intents=intents, meta=meta, refused=plan is None or not case.ran)

    def _with_token(self, error: ToolError, case: Case, plan: Plan) -> ToolError:
        """A refusal that says how to confirm the call; without a key it can only say what is wrong with the key."""
        try:
            token, expiry = self._confirmations.issue(plan.tool, case.arguments, case.call)
        except ToolError as problem:
            return ToolError(error.kind, f"{error.message}; {problem.message}", details=error.details)
        return ToolError(
            error.kind, error.message, details={**error.details, "confirmation": token, "expiresAt": expiry}
        )

    def _partial(self, error: ToolError, call: Call, meta: dict[str, object]) -> object:
        """What a failing tool had achieved, bounded like any value; what cannot be shown is left out."""
        if error.value is None:
            return None
        try:
            value = bound(call.name, error.value, self._result_bytes)
        except ToolError as problem:
            meta["warnings"] = [problem.message]
            return None
        return self._keep(value, call, meta) if type(value) is Whole else value

    def _keep(self, whole: str, call: Call, meta: dict[str, object]) -> str:
        """Keep aside what is too large; where that fails, the head is all there is, and `meta` says so."""
        try:
            return keep_aside(whole, self._kept, call.caller, meta)
        except (ToolError, OSError, TypeError, ValueError) as problem:
            logger.warning("a result of %s could not be kept: %s", call.name, problem)
            meta["warnings"] = [f"the rest of {len(whole)} letters could not be kept"]
            return whole[:HEAD_LETTERS]


def _facts_of(case: Case, seconds: float) -> dict[str, object]:
    """What the journal keeps of a call besides its end: whether it ran, for how much, how late, and what it complained of."""
    if case.plan is None or not case.ran:
        return {"refused": True}
    facts: dict[str, object] = {}
    cost = case.plan.tool.cost
    if cost is not None:
        facts[COST] = {"amount": cost.of(seconds), "currency": cost.currency}
    if case.plan.is_over_budget(monotonic() - case.began):
        facts["overBudget"] = True
    written = None if case.outcome is None else case.outcome.meta.get(STDERR)
    if written:
        facts[STDERR] = written
    return facts


def _tell(case: Case, plan: Plan, meta: dict[str, object], facts: dict[str, object]) -> None:
    """What there is to say about a call that ran, however it ended: how often, for how much, and warnings."""
    if case.attempts > 1:
        meta["attempts"] = case.attempts
    if COST in facts:
        meta[COST] = facts[COST]
    _warn(plan.warn(monotonic() - case.began), case, meta)


def _warn(warnings: Iterable[str], case: Case, meta: dict[str, object]) -> None:
    """Say something to the operator and the author, beside what was said before."""
    if new := list(warnings):
        logger.warning("call %s: %s", case.id, "; ".join(new))
        kept = meta.get("warnings")
        meta["warnings"] = [*(kept if isinstance(kept, list) else []), *new]
