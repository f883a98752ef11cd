"""Run a tool call through the pipeline: rules, lookup, gates, run, output validation, journal."""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections.abc import Awaitable
from copy import copy, deepcopy
from dataclasses import replace
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Protocol

from toolcrib.core import gates
from toolcrib.core.call_state import CallState, Gate, Plan, Policy, current_quota, make_context, mode_of, prepare
from toolcrib.core.catalog import KnownTools
from toolcrib.core.execution import Deadlines, SecretsMask, as_coroutine, classify, go_on, named_for_warning, unwatch
from toolcrib.core.results import ResultMaker, Whole, settle
from toolcrib.core.rules import strictest
from toolcrib.core.sources import current_view
from toolcrib.model.call import CALL, Call, plain_call
from toolcrib.model.errors import READ_THE_LOG, Cure, Kind, ToolError, cure_of
from toolcrib.model.result import ALLOW, Decision, Explanation, Finding, Outcome, Result, Verdict, deny, succeed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from toolcrib.core.call_state import CallLimits
    from toolcrib.core.confirmations import Confirmations
    from toolcrib.core.execution import Watch
    from toolcrib.core.rules import RuleEngine
    from toolcrib.infra.storage.expiring import KeptResults
    from toolcrib.model.protocols import ApprovalStore, Journal, Runner
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Entry, Tool

logger = logging.getLogger("toolcrib.pipeline")

PLANS_KEPT = 50_000
LOOK_UP = "look-up"
VOICE = "voice"
NOTHING = Outcome()
# A call does not wait longer than this for a Retry-After of a server; it fails instead.
MAX_WAIT_SECONDS = 60.0


class Find(Protocol):
    """Looks up a tool by name or slug, optionally of one bundle, of one version, or in the version of a session."""

    def __call__(
        self, name: str, bundle: str | None = None, version: str | None = None, session: Session | None = None
    ) -> Entry | None:
        """The tool and whether it is enabled; None if there is none."""


class Pipeline:
    """Makes calls, each through all gates.

    A call never raises: its error is in the Result. Only the cancellation of its caller passes through. `missing` is
    called for an unknown tool, and returns the id of the request that it files for it; empty if it files none.
    """

    def __init__(
        self,
        *,
        find: Find,
        known: KnownTools | None = None,
        cure_for: Callable[[str], Cure],
        rules: RuleEngine,
        runners: Mapping[str, Runner],
        journal: Journal,
        confirmations: Callable[[], Confirmations],
        kept: Callable[[], KeptResults],
        policy: Policy,
        limits: Callable[[], CallLimits] | None = None,
        approvals: Callable[[], ApprovalStore] | None = None,
        mask: SecretsMask | None = None,
        missing: Callable[[Call], Awaitable[str]] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._find = find
        self._known = known or KnownTools()
        self._missing = missing
        self._cure_for = cure_for
        self._rules = rules
        self._runners = runners
        self._record = journal.record
        approvals = approvals or _no_approvals
        self._mask = mask or SecretsMask()
        self._results = ResultMaker(journal.record, confirmations, approvals, kept, policy.result_bytes, self._mask)
        self._policy = policy
        self._sleep = _sleep if sleep is None else sleep
        self._plans: dict[Tool, Plan] = {}
        # A plan holds the rules that concern its tool, so a new rule makes all of them stale.
        rules.when_changed(self._plans.clear)
        self._deadlines = Deadlines()
        self._result_bytes = policy.result_bytes
        self._id_prefix = f"{os.urandom(6).hex()}-"
        self._id_numbers = itertools.count(1)
        self._rate = gates.Rate(limits or _no_limits)
        self._counted = (gates.Budget(), gates.Loop())
        self._capabilities = gates.Capabilities(policy.grants)
        self._confirmation = gates.Confirmation(confirmations, approvals)
        self._gates: tuple[Gate, ...] = (
            gates.Rules(),
            gates.Enabled(),
            gates.Mode(),
            self._capabilities,
            gates.Arguments(),
            self._rate,
            *self._counted,
            self._confirmation,
            gates.Prepare(),
        )

    def of_one(self, entry: Entry) -> Pipeline:
        """A copy of the pipeline that finds only this tool, which need not be in the catalog."""
        alone = copy(self)
        alone._find = lambda *_, **__: entry  # noqa: SLF001 - of the same class
        alone._known = KnownTools()  # noqa: SLF001 - see above
        return alone

    def call(self, call: Call) -> Coroutine[object, object, Result]:
        """Make a call; one that only carries arguments takes the fast path."""
        if call.is_plain:
            return self.call_simply(call.name, call.arguments, call.caller, call)
        return self._call_fully(call)

    @named_for_warning
    async def _call_fully(self, call: Call, entry: Entry | None = None) -> Result:
        """Make a call through all steps: lookup, gates, admission, run, output validation, journal.

        The order of the steps is a safety property, so they stand here one after the other. `entry` is the tool that the
        fast path has just looked up.
        """
        state = CallState(call, call.id or self._new_id())
        state.entry = entry
        try:
            plan = self._find_plan(state)
            if isinstance(plan, Verdict):
                return await self._refuse_unknown(state, plan)
            if refusal := self._judge(self._gates, state, plan):
                return self._results.refuse(*refusal, state, plan)
            if overtaken := self._admit(state, plan):
                return self._results.refuse(*overtaken, state, plan)
            logger.info("call %s: %s starts for %s", state.id, plan.tool.name, call.caller)
            answer = await self._run(state, plan)
        except BaseException as problem:  # noqa: BLE001 - the border to foreign code; ResultMaker.fail re-raises what is meant for the host program
            result = None
            try:
                result = self._results.fail(problem, state)
            finally:
                # A cancelled call is charged too.
                self._rate.charge(state, result)
            return result
        result = self._results.finish(state, plan, answer)
        self._rate.charge(state, result)
        return result

    @named_for_warning
    async def call_simply(  # noqa: C901, PLR0912 - one fast path, told flat, because every step costs each call
        self, name: str, arguments: dict[str, object], caller: str, call: Call | None = None
    ) -> Result:
        """Run a tool with nothing but arguments: the fast path of `call`, which may pass the Call itself.

        Where only the argument gate could object, the other gates are skipped. Anything else falls back to the full pipeline.
        """
        started = monotonic()
        fits = False
        filled = arguments
        plan: Plan | None = None
        entry: Entry | None = None
        try:
            known, tool = self._known, None
            if started < known.until and current_view() is None:
                is_bare = call is None or (call.bundle is None and call.version is None)
                tool = known.tools.get(name if call is None or is_bare else (name, call.bundle, call.version))
            if tool is None:
                entry = self._find(name) if call is None else self._find(name, call.bundle, call.version)
                tool = entry.tool if entry is not None and entry.enabled else None
            plan = None if tool is None else self._plans.get(tool)
            if (
                plan is not None
                and plan.simple is not None
                and current_quota() is None
                and not logger.isEnabledFor(logging.INFO)
            ):
                filled = arguments if plan.fill is None else plan.fill(arguments)
                fits = plan.arguments.is_valid(filled)
        except Exception:  # noqa: BLE001 - the full pipeline reports it
            fits = False
        if not fits or plan is None or plan.simple is None:
            return await self._call_fully(call or plain_call(name, arguments, caller), entry)

        watch: Watch | None = None
        try:
            answer = plan.simple(**filled)
            if plan.is_async and type(answer) is not CoroutineType and isinstance(answer, Awaitable):
                answer = as_coroutine(answer)
            if type(answer) is CoroutineType:
                # The first step runs at once: most tools end there, and only those that wait are watched. What a plain
                # function returns is watched from the start, which refuses it where no event loop runs.
                watch = None if plan.is_async else self._deadlines.watch(started + plan.seconds, answer)
                try:
                    waits_for = answer.send(None)
                except StopIteration as end:
                    answer = end.value
                else:
                    watch = watch or self._deadlines.watch(started + plan.seconds, answer)
                    answer = await go_on(answer, waits_for)
                if watch is not None:
                    unwatch(watch, plan.name, started)
            if isinstance(answer, Outcome):
                return self._results.finish(
                    self._fast_state(call or plain_call(name, arguments, caller), plan, started, watch), plan, answer
                )
            value = settle(plan, answer, self._result_bytes)
            ended = monotonic()
            if self._mask.active or ended >= self._mask.look_at:
                value = self._mask.value(value)
        except BaseException as problem:  # noqa: BLE001 - the border to foreign code; ResultMaker.fail re-raises what is meant for the host program
            return self._results.fail(
                problem, self._fast_state(call or plain_call(name, arguments, caller), plan, started, watch)
            )
        seconds = ended - started
        if seconds > plan.attention or type(value) is Whole:
            return self._results.succeed(
                self._fast_state(call or plain_call(name, arguments, caller), plan, started, watch), plan, value
            )
        call_id = (call is not None and call.id) or f"{self._id_prefix}{next(self._id_numbers)}"
        record = self._record
        record((CALL, started, call_id, plan.address, caller, seconds, None, None, plan.tool_id))
        meta = plan.meta.copy()
        meta["callId"], meta["durationMs"] = call_id, seconds * 1000
        return succeed(value, (), meta)

    def explain(self, call: Call) -> Explanation:
        """The finding of every gate for this call, in the order of the pipeline; runs nothing and consumes nothing."""
        state = CallState(call, call.id)
        plan = self._find_plan(state)
        if isinstance(plan, Verdict):
            first, *rest = (gate.name for gate in self._gates)
            verdicts = {first: self._screen(state), LOOK_UP: plan, **dict.fromkeys(rest)}
            findings = [Finding(gate=name, verdict=verdict) for name, verdict in verdicts.items()]
            return Explanation(tool=str(call.name), findings=tuple(findings))
        findings = []
        is_judging = True
        for gate in self._gates:
            verdict = None
            if is_judging:
                refusal = self._judge((gate,), state, plan)
                verdict = ALLOW if refusal is None else refusal[1]
            is_rate, is_grant = (verdict is ALLOW and gate is each for each in (self._rate, self._capabilities))
            note = self._rate.describe(state, plan) if is_rate else ""
            granted = self._capabilities.describe(plan) if is_grant else ""
            findings.append(Finding(gate=gate.name, verdict=verdict, note=note, granted=granted))
            if gate is self._gates[0]:
                findings.append(Finding(gate=LOOK_UP, verdict=ALLOW))
            # The later gates read validated arguments, so they cannot judge invalid ones.
            is_judging = is_judging and (verdict is ALLOW or not isinstance(gate, gates.Arguments))
        return Explanation(tool=plan.address, findings=tuple(findings))

    def check(self, tool: Tool) -> None:
        """Raise ToolError if no call of the tool could ever run."""
        try:
            self._plan(tool)
        except ToolError:
            raise
        except Exception as problem:
            # A runner may belong to another package.
            logger.exception("%s cannot be prepared", tool.address)
            raise classify(problem, tool.name) from problem

    def find_obstacle(self, tool: Tool, arguments: dict[str, object]) -> ToolError | None:
        """The error with which the runner would refuse a call with these arguments; runs nothing."""
        bound = self._plan(tool).bound
        try:
            if bound.checks:
                bound.check(arguments, Call(name=tool.address, arguments=arguments))
        except ToolError as refusal:
            return refusal
        return None

    def _plan(self, tool: Tool) -> Plan:
        plan = self._plans.get(tool)
        if plan is not None:
            return plan
        if len(self._plans) >= PLANS_KEPT:
            self._plans.clear()
        plan = self._plans[tool] = prepare(
            tool,
            runners=self._runners,
            rules=self._rules.concerning(tool),
            gates=self._gates,
            policy=self._policy,
        )
        return plan

    def _admit(self, state: CallState, plan: Plan) -> tuple[str, Verdict] | None:
        """Consume budget, rate and confirmation; the gate that refuses if a concurrent call has taken the last of one."""
        if overtaken := self._count_in_session(state, plan):
            return overtaken
        try:
            verdict = self._rate.admit(state, plan)
        except Exception as problem:  # noqa: BLE001 - a gate that fails has not allowed anything
            verdict = self._explain_failure(self._rate, problem, state)
        if verdict is not ALLOW:
            gates.uncount_in_session(state)
            return self._rate.name, verdict
        # Last, because a used confirmation cannot be restored.
        try:
            is_confirmed = self._confirmation.admit(state, plan)
            verdict = deny("the confirmation was used before", kind=Kind.CONFIRMATION_REQUIRED)
        except Exception as problem:  # noqa: BLE001 - see above
            is_confirmed = False
            verdict = self._explain_failure(self._confirmation, problem, state)
        if is_confirmed:
            return None
        gates.uncount_in_session(state)
        self._rate.give_back(state)
        return self._confirmation.name, verdict

    def _count_in_session(self, state: CallState, plan: Plan) -> tuple[str, Verdict] | None:
        """Consume the budget of the session; returns the refusal if a concurrent call has exhausted it."""
        while not gates.count_in_session(state, plan):
            if refusal := self._judge(self._counted, state, plan):
                return refusal
        return None

    async def _run(self, state: CallState, plan: Plan) -> object:
        """Run the tool, with retries until it succeeds, fails for good, or reaches the deadline."""
        given, deadline = state.call.deadline, state.started + plan.seconds
        deadline = deadline if given is None else min(given, deadline)
        grace = plan.grace if given is None else min(plan.grace, given - deadline)
        context = (
            make_context(state, plan, deadline, grace, self.call, self._record, self._deadlines, self._mask)
            if plan.bound.wants_context
            else None
        )
        state.began = monotonic()
        state.ran = True
        while True:
            try:
                answer = plan.bound.run(self._arguments(state, plan), context)
                if type(answer) is CoroutineType or (plan.is_async and isinstance(answer, Awaitable)):
                    state.watch = state.watch or self._deadlines.watch(deadline + grace, answer)
                    answer = await answer
            except Exception as problem:
                pause = self._pause(problem, state, plan, deadline)
                if pause is None:
                    raise
            else:
                outcome = answer if isinstance(answer, Outcome) else NOTHING
                pause = None if outcome.error is None else self._pause(outcome.error, state, plan, deadline)
                if pause is None:
                    if state.chunks and context is not None and context.client is not None:
                        await context.client.end_chunks()
                    unwatch(state.watch, plan.name, state.started)
                    return answer
                state.began += outcome.waited  # the latency budget covers only the tool's own time
            state.watch = state.watch or self._deadlines.watch(deadline + grace)
            await self._sleep(pause)
            state.attempts += 1

    def _arguments(self, state: CallState, plan: Plan) -> dict[str, object]:
        """The arguments of one attempt; a copy if there may be a retry, because the tool may modify them."""
        return state.arguments if plan.retry.max_attempts == 1 else deepcopy(state.arguments)

    def _pause(self, problem: Exception, state: CallState, plan: Plan, deadline: float) -> float | None:
        """Seconds until the next attempt; None if there is no retry."""
        if state.chunks or state.attempts >= plan.retry.max_attempts or mode_of(state.call) == VOICE:
            return None
        error = classify(problem, plan.tool.name)
        # A tool with more than one attempt was declared to be repeatable, so possible side effects do not prevent a retry.
        if not error.retryable:
            return None
        pause = plan.retry.delay_after(state.attempts)
        if plan.retry.jitter:
            pause = random.uniform(0, pause)  # noqa: S311 - jitter needs no cryptographic randomness
        asked = error.retry_after
        if asked is not None:
            if asked > MAX_WAIT_SECONDS:
                return None
            pause = max(pause, asked)
        return pause if monotonic() + pause < deadline else None

    def _find_plan(self, state: CallState) -> Plan | Verdict:
        """The plan of the called tool, or the verdict if there is no usable one."""
        given: object = state.call.name
        if not isinstance(given, str):
            reason = f"the name of a tool is a text, not a {type(given).__name__}"
            return deny(reason, kind=Kind.VALIDATION, cure="give the name of the tool")
        name = state.call.name
        try:
            state.entry = entry = state.entry or self._look_up(state.call)
            if entry is not None:
                state.plan = self._plan(entry.tool)
                return state.plan
        except ToolError as problem:
            return deny(problem.reason, kind=problem.kind, rule="load", cure=problem.cure, details=problem.details)
        return deny(
            f"Tool {name[:200]!r} not found", kind=Kind.NOT_FOUND, cure=self._cure_for(name), details={"name": name}
        )

    def _look_up(self, call: Call) -> Entry | None:
        session = call.session
        if session is None or not session.tools_version:
            return self._find(call.name, call.bundle, call.version)
        return self._find(call.name, call.bundle, call.version, session)

    def _judge(self, asked: Iterable[Gate], state: CallState, plan: Plan) -> tuple[str, Verdict] | None:
        """The first gate that does not allow the call, with its verdict; a gate that raises refuses."""
        for gate in asked:
            try:
                verdict = gate.judge(state, plan)
            except Exception as problem:  # noqa: BLE001 - a gate that fails has not allowed anything
                verdict = self._explain_failure(gate, problem, state)
            if verdict is not ALLOW:
                return gate.name, verdict
        return None

    def _explain_failure(self, gate: Gate, problem: Exception, state: CallState) -> Verdict:
        """The verdict of a gate that raised an error."""
        if isinstance(problem, ToolError):
            return deny(
                problem.reason,
                kind=problem.kind,
                cure=problem.cure,
                details=problem.details,
                retryable=problem.retryable,
            )
        logger.error("call %s: the gate %s failed", state.id, gate.name, exc_info=problem)
        return deny(f"the gate {gate.name!r} failed, so the call is refused", kind=Kind.INTERNAL, cure=READ_THE_LOG)

    def _screen(self, state: CallState) -> Verdict:
        """The verdict of the rules on a call of an unknown tool."""
        verdict = strictest(self._rules.rules, None if state.entry is None else state.entry.tool, state.call)
        return verdict if verdict.decision is Decision.DENY else ALLOW

    async def _refuse_unknown(self, state: CallState, unknown: Verdict) -> Result:
        screened = self._screen(state)
        if screened is not ALLOW:
            return self._results.answer(screened.to_error(self._gates[0].name), state)
        if self._missing is not None and unknown.kind is Kind.NOT_FOUND:
            unknown = _with_request(unknown, await self._missing(state.call))
        return self._results.answer(unknown.to_error(LOOK_UP), state)

    def _new_id(self) -> str:
        # A counter and not uuid4, which alone costs more than both schema checks of a call.
        return f"{self._id_prefix}{next(self._id_numbers)}"

    def _fast_state(self, call: Call, plan: Plan, started: float, watch: Watch | None) -> CallState:
        """Make the CallState of a call that took the fast path."""
        state = CallState(call, call.id or self._new_id(), started)
        state.plan, state.watch, state.ran = plan, watch, True
        return state


def _with_request(unknown: Verdict, request_id: str) -> Verdict:
    """The verdict on an unknown tool, with the request that was filed for it."""
    if not request_id:
        return unknown
    filed = f"it is asked for by {request_id}"
    follow = Cure(
        f"{filed}: crib request show {request_id}",
        f"{filed}: GET /requests/{request_id}",
        model=f"{filed}, wait for it with watch_request",
    )
    return replace(
        unknown, cure=cure_of(unknown.cure).then(follow), details={**unknown.details, "requestId": request_id}
    )


def _no_limits() -> CallLimits:
    raise ToolError(Kind.VALIDATION, "nothing counts limits here; make the call through a Crib")


def _no_approvals() -> ApprovalStore:
    raise ToolError(Kind.VALIDATION, "nothing stores approvals here; make the call through a Crib")


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)
