"""The way of a call: screen, find, allow, check, confirm, run, check again, record."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
from functools import partial
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Protocol

from toolcrib.model.call import Call, Context
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome, Result, succeed
from toolcrib.model.verdict import ALLOW, Decision, Verdict, deny
from toolcrib.pipeline import gates
from toolcrib.pipeline.answer import Whole, bound, keep_aside, settle
from toolcrib.pipeline.case import Case, mode_of, open_case
from toolcrib.pipeline.deadline import Deadlines, stop, struck_alone
from toolcrib.pipeline.failure import classify, must_pass
from toolcrib.pipeline.plan import Plan, Policy, prepare
from toolcrib.rules.engine import strictest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from toolcrib.model.protocols import Journal, Runner
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.pipeline.confirmation import Confirmations
    from toolcrib.pipeline.explanation import Explanation
    from toolcrib.pipeline.kept import KeptResults
    from toolcrib.rules.engine import RuleEngine

logger = logging.getLogger("toolcrib.pipeline")

PLANS_KEPT = 50_000
LOOK_UP = "look-up"
VOICE = "voice"
CALL = "call"


class Find(Protocol):
    """Looks a tool up by name or slug, where needed in one bundle or of one version."""

    def __call__(self, name: str, bundle: str | None = None, version: str | None = None) -> Entry | None:
        """The tool and whether it is switched on; None if nobody knows it."""


class Pipeline:
    """Performs guarded calls.

    It never raises: what went wrong is in the Result. Only the cancellation of its caller passes through.
    """

    def __init__(
        self,
        *,
        find: Find,
        suggest: Callable[[str], str],
        rules: RuleEngine,
        runners: Mapping[str, Runner],
        journal: Journal,
        confirmations: Confirmations,
        kept: KeptResults,
        policy: Policy,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._find = find
        self._suggest = suggest
        self._rules = rules
        self._runners = runners
        self._record = journal.record
        self._confirmations = confirmations
        self._kept = kept
        self._policy = policy
        self._sleep = sleep
        self._plans: dict[Tool, Plan] = {}
        self._deadlines = Deadlines()
        self._result_bytes = policy.result_bytes
        # A counter and not uuid4, which alone costs more than both schema checks of a call.
        self._id_prefix = os.urandom(6).hex()
        self._id_numbers = itertools.count(1)
        self._rate = gates.Rate()
        self._budget = gates.Budget()
        self._confirmation = gates.Confirmation(confirmations)
        self._gates: tuple[gates.Gate, ...] = (
            gates.Rules(),
            gates.Enabled(),
            gates.Mode(),
            gates.Capabilities(policy),
            gates.Arguments(),
            self._rate,
            self._budget,
            self._confirmation,
            gates.Prepare(),
        )

    def call(self, call: Call) -> Coroutine[object, object, Result]:
        """Run a tool under guard."""
        return self.perform(open_case(call.name, call.arguments, call.caller, call))

    async def perform(self, case: Case) -> Result:  # noqa: C901 - the steps of a call stand together on purpose
        """The way of a call.

        The order of the steps is a safety property, so they stand here one after the other, and the quick way through
        them is part of the promise: nothing is asked that has nothing to say about this tool.
        """
        case.started = started = monotonic()
        call = case.wished
        case.id = call_id = (call.id if call else "") or f"{self._id_prefix}-{next(self._id_numbers)}"
        try:
            entry = self._find(case.name) if call is None else self._find_exactly(call)
            if entry is None:
                return self._refuse_unknown(case)
            case.entry = entry
            case.plan = plan = self._plans.get(entry.tool)
            if plan is None or plan.generation != self._rules.generation:
                case.plan = plan = self._plan(entry.tool)

            is_plain = call is None and entry.enabled
            for gate in plan.gates if is_plain else self._gates:
                verdict = gate.judge(case, plan)
                if verdict is not ALLOW:
                    return self._refuse(gate.name, verdict, case, plan)
            if (plan.is_rationed or not is_plain) and not self._admit(case, plan):
                verdict = deny("the confirmation was used before", kind=Kind.CONFIRMATION_REQUIRED)
                return self._refuse(self._confirmation.name, verdict, case, plan)

            if logger.isEnabledFor(logging.INFO):
                logger.info("call %s: %s starts for %s", case.id, plan.tool.name, case.caller)
                case.is_noteworthy = True
            if plan.function is None or not is_plain:
                answer = await self._run(case, plan)
            elif plan.is_async:
                self._deadlines.watch(case, started + plan.seconds)
                answer = await plan.function(**case.arguments)
                case.watched.discard(case)
            else:
                answer = plan.function(**case.arguments)
                if type(answer) is CoroutineType:
                    # A plain wrapper around an async function: what it returns still has to run.
                    self._deadlines.watch(case, started + plan.seconds)
                    answer = await answer
                    case.watched.discard(case)
            value = settle(case, plan, answer, self._result_bytes)
        except BaseException as problem:  # noqa: BLE001 - the border to foreign code; _fail lets through what must pass
            return self._fail(problem, case)
        seconds = monotonic() - started
        meta: dict[str, object] = {
            "callId": call_id,
            "tool": plan.tool.name,
            "version": plan.tool.version,
            "durationMs": seconds * 1000,
        }
        if case.is_noteworthy or seconds > plan.attention or not is_plain:
            return self._finish(case, plan, value, meta)
        self._record((CALL, started, call_id, plan.address, case.caller, seconds, None, None))
        return succeed(value, (), meta)

    def explain(self, call: Call) -> Explanation:
        """What every gate would say to this call, in the order of the call; nothing runs and nothing is used up."""
        from toolcrib.pipeline.explanation import Explanation, Finding

        case = open_case(call.name, call.arguments, call.caller, call)
        entry = self._find_exactly(call)
        if entry is None:
            first, *rest = (gate.name for gate in self._gates)
            verdicts = {first: self._screen_unknown(case), LOOK_UP: self._unknown(case), **dict.fromkeys(rest)}
            findings = [Finding(gate=name, verdict=verdict) for name, verdict in verdicts.items()]
            return Explanation(tool=call.name, findings=tuple(findings))
        case.entry, plan = entry, self._plan(entry.tool)
        findings = []
        is_judging = True
        for gate in self._gates:
            verdict = gate.judge(case, plan) if is_judging else None
            findings.append(Finding(gate=gate.name, verdict=verdict))
            if gate is self._gates[0]:
                findings.append(Finding(gate=LOOK_UP, verdict=ALLOW))
            # The later gates look at checked arguments: with bad ones there is nothing to look at.
            is_judging = is_judging and (verdict is ALLOW or not isinstance(gate, gates.Arguments))
        return Explanation(tool=entry.tool.address, findings=tuple(findings))

    def check(self, tool: Tool) -> None:
        """Raise ToolError if there is anything that would keep every call of the tool from running."""
        self._plan(tool)

    def _plan(self, tool: Tool) -> Plan:
        if len(self._plans) >= PLANS_KEPT:
            self._plans.clear()
        plan = self._plans[tool] = prepare(
            tool,
            runners=self._runners,
            rules=self._rules.concerning(tool),
            generation=self._rules.generation,
            gates=self._gates,
            policy=self._policy,
        )
        return plan

    def _find_exactly(self, call: Call) -> Entry | None:
        return self._find(call.name, call.bundle, call.version)

    def _admit(self, case: Case, plan: Plan) -> bool:
        """The one step that uses something up; False if another call was faster with the same confirmation."""
        if not self._confirmation.admit(case, plan):
            return False
        self._rate.admit(plan)
        self._budget.admit(case.call)
        return True

    async def _run(self, case: Case, plan: Plan) -> object:
        """Run until it works, may not be repeated, or the time is over."""
        deadline = self._deadline(case, plan)
        context = self._context(case, plan, deadline) if plan.bound.wants_context else None
        self._deadlines.watch(case, deadline)
        while True:
            try:
                answer = plan.bound.run(case.arguments, context)
                if plan.is_async:
                    answer = await answer  # type: ignore[misc]  # the runner said that it can be awaited
            except Exception as problem:
                pause = self._pause(problem, case, plan, deadline)
                if pause is None:
                    raise
            else:
                failure = answer.error if type(answer) is Outcome else None
                pause = None if failure is None else self._pause(failure, case, plan, deadline)
                if pause is None:
                    case.watched.discard(case)
                    return answer
            await self._sleep(pause)
            case.attempts += 1
            case.is_noteworthy = True

    def _deadline(self, case: Case, plan: Plan) -> float:
        deadline = case.started + plan.seconds
        given = case.call.deadline
        if given is None or given >= deadline:
            return deadline
        if given <= case.started:
            raise ToolError(Kind.TIMEOUT, f"the deadline had passed before {plan.tool.name} could run")
        return given

    def _pause(self, problem: Exception, case: Case, plan: Plan, deadline: float) -> float | None:
        """How long to wait before the next attempt; None when there is to be none."""
        if case.attempts >= plan.retry.max_attempts or mode_of(case.call) == VOICE:
            return None
        error = classify(problem, plan.tool.name)
        if not error.retryable or (error.partial_side_effects and not plan.is_repeatable):
            return None
        pause = plan.retry.delay_after(case.attempts)
        if plan.retry.jitter:
            pause = random.uniform(0, pause)  # noqa: S311 - spreads callers out, keeps no secret
        return pause if monotonic() + pause < deadline else None

    def _context(self, case: Case, plan: Plan, deadline: float) -> Context:
        call = case.call
        return Context(
            tool=plan.tool,
            call_id=case.id,
            caller=call.caller,
            mode=mode_of(call),
            deadline=deadline,
            session=call.session,
            call=partial(self._call_from, call, plan.tool, deadline),
            audit=partial(self._audit, case, plan),
        )

    async def _call_from(
        self,
        parent: Call,
        tool: Tool,
        deadline: float,
        name: str,
        arguments: Mapping[str, object] | None = None,
        /,
        **more: object,
    ) -> Result:
        """A call made by a running tool: same caller, what that tool itself declares, the time it has left."""
        call = Call(
            name=name,
            arguments={**(arguments or {}), **more},
            caller=parent.caller,
            session=parent.session,
            mode=parent.mode,
            deadline=deadline,
            grants=tool.requires,
            parent=parent,
        )
        return await self.call(call)

    def _audit(self, case: Case, plan: Plan, event: str, data: Mapping[str, object] | None = None) -> None:
        facts = {"data": dict(data or {})}
        self._record((event, monotonic(), case.id, plan.address, case.caller, 0.0, None, facts))

    def _screen_unknown(self, case: Case) -> Verdict:
        verdict = strictest(self._rules.rules, None, case.call)
        return verdict if verdict.decision is Decision.DENY else ALLOW

    def _unknown(self, case: Case) -> Verdict:
        hint = self._suggest(case.name)
        reason = f"Tool {case.name[:200]!r} not found" + (f"; {hint}" if hint else "")
        return deny(reason, kind=Kind.NOT_FOUND, cure="list the tools with: crib list", details={"name": case.name})

    def _refuse_unknown(self, case: Case) -> Result:
        gate, verdict = self._gates[0].name, self._screen_unknown(case)
        if verdict is ALLOW:
            gate, verdict = LOOK_UP, self._unknown(case)
        return self._answer(verdict.to_error(gate), case)

    def _refuse(self, gate: str, verdict: Verdict, case: Case, plan: Plan) -> Result:
        error = verdict.to_error(gate)
        if verdict.decision is Decision.CONFIRM:
            token, expiry = self._confirmations.issue(plan.tool, case.arguments, case.call)
            details = {**error.details, "confirmation": token, "expiresAt": expiry}
            error = ToolError(error.kind, error.message, details=details)
        return self._answer(error, case)

    def _fail(self, problem: BaseException, case: Case) -> Result:
        """The answer to a call that came to nothing; lets through what is meant for the host program."""
        self._deadlines.leave(case)
        if case.struck:
            is_ours = struck_alone(case) or not isinstance(problem, asyncio.CancelledError)
            stopped = stop(case)
            problem = stopped if is_ours else problem
        error = classify(problem, case.name)
        if must_pass(problem):
            self._answer(error, case)
            raise problem
        if error.kind is Kind.INTERNAL and not isinstance(problem, ToolError):
            logger.error("call %s: %s failed unexpectedly", case.id, case.name, exc_info=problem)
        return self._answer(error, case)

    def _answer(self, error: ToolError, case: Case) -> Result:
        """A failure, written down."""
        seconds = monotonic() - case.started
        name = case.name if case.plan is None else case.plan.address
        meta: dict[str, object] = {"callId": case.id, "tool": case.name, "durationMs": seconds * 1000}
        if case.plan is not None:
            meta |= {"tool": case.plan.tool.name, "version": case.plan.tool.version}
        if case.outcome is not None:
            meta |= case.outcome.meta
        value = self._partial(error, case, meta)
        self._record((CALL, case.started, case.id, name, case.caller, seconds, error.kind, None))
        if logger.isEnabledFor(logging.INFO):
            logger.info("call %s: %s came to nothing after %.1f ms: %s", case.id, name, seconds * 1000, error.kind)
        return Result(value=value, error=error, intents=case.outcome.intents if case.outcome else (), meta=meta)

    def _partial(self, error: ToolError, case: Case, meta: dict[str, object]) -> object:
        """What a failing tool had achieved, bounded like any value; what cannot be shown is left out."""
        if error.value is None:
            return None
        try:
            value = bound(case.name, error.value, self._result_bytes)
        except ToolError as problem:
            meta["warnings"] = [problem.message]
            return None
        return keep_aside(value, self._kept, case.caller, meta) if type(value) is Whole else value

    def _finish(self, case: Case, plan: Plan, value: object, meta: dict[str, object]) -> Result:
        """A success that there is something to say about; a value that is too large is kept aside."""
        seconds, session = monotonic() - case.started, case.call.session
        if case.outcome is not None:
            meta |= case.outcome.meta
        if case.attempts > 1:
            meta["attempts"] = case.attempts
        if session is not None and session.max_calls is not None:
            meta["steps"] = {"used": self._budget.used(session.id), "max": session.max_calls}
        if plan.tool.cost is not None:
            meta["cost"] = {"amount": plan.tool.cost.of(seconds), "currency": plan.tool.cost.currency}
        warnings = list(plan.warn(seconds))
        for warning in warnings:
            logger.warning("call %s: %s", case.id, warning)
        if warnings:
            meta["warnings"] = warnings
        if type(value) is Whole:
            value = keep_aside(value, self._kept, case.caller, meta)
        facts = {"cost": meta["cost"]} if "cost" in meta else None
        self._record((CALL, case.started, case.id, plan.address, case.caller, seconds, None, facts))
        if logger.isEnabledFor(logging.INFO):
            logger.info("call %s: %s succeeded after %.1f ms", case.id, plan.tool.name, seconds * 1000)
        return succeed(value, case.outcome.intents if case.outcome else (), meta)
