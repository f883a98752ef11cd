"""The gates of a call. Each judges without side effects, so `explain` and calls use the same ones."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from toolcrib.core.call_state import mode_of
from toolcrib.core.grants import missing_grants
from toolcrib.core.plugins import later
from toolcrib.core.rules import strictest
from toolcrib.lib.documents import check_plain
from toolcrib.model.call import MAX_DEPTH, Consent
from toolcrib.model.errors import Cure, Kind, ToolError, cure_of
from toolcrib.model.result import ALLOW, Decision, Verdict, confirm, deny
from toolcrib.model.tool import MODES, Behaviour

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.core.call_state import CallLimits, CallState, Plan
    from toolcrib.core.confirmations import Confirmations
    from toolcrib.core.grants import Grants
    from toolcrib.lib.schema import Validator
    from toolcrib.model.protocols import ApprovalStore
    from toolcrib.model.result import Result
    from toolcrib.model.session import CountedCall, Session


# Describes why a value is invalid; loaded on first use, because a call with valid arguments and value does not need it.
explain_problems: Callable[[Validator, object, object], list[str]] = later(
    "toolcrib.lib.schema_problems:explain_problems"
)


class Rules:
    """Applies the rules. A verdict that asks for confirmation is passed on to the confirmation gate."""

    name = "rules"

    def concerns(self, plan: Plan) -> bool:
        """Only if a rule concerns the tool."""
        return bool(plan.rules)

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Return the strictest verdict of the rules."""
        verdict = strictest(plan.rules, plan.tool, state.call)
        if verdict.decision is Decision.CONFIRM:
            state.asks = verdict
            return ALLOW
        return verdict


class Enabled:
    """Refuses a disabled tool."""

    name = "enabled"

    def concerns(self, plan: Plan) -> bool:
        """Never by the tool itself; the fast path checks the switch too."""
        return False

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny a disabled tool."""
        entry = state.entry
        if entry is None or entry.enabled:
            return ALLOW
        return deny(f"{entry.tool.name} is disabled: {entry.reason}", kind=Kind.DISABLED, cure=entry.cure)


class Mode:
    """Refuses a tool outside its modes."""

    name = "mode"

    def concerns(self, plan: Plan) -> bool:
        """Only if the tool declares modes."""
        return plan.tool.modes is not None

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny a call whose mode (its own, else that of its session, else text) the tool does not declare."""
        tool, mode = plan.tool, mode_of(state.call)
        if mode not in MODES:
            return deny(f"there is no mode {mode!r}", kind=Kind.VALIDATION, cure=f"use {' or '.join(sorted(MODES))}")
        if tool.modes is None or mode in tool.modes:
            return ALLOW
        modes = " and ".join(sorted(tool.modes))
        reason = f"{tool.name} may be called in {modes} mode only, and this call is in {mode} mode"
        return deny(reason, kind=Kind.MODE_RESTRICTED, rule="modes", where=place_of(plan, "modes"))


class Capabilities:
    """Refuses a tool that requires what was not granted."""

    name = "capabilities"

    def __init__(self, grants: Grants) -> None:
        self._grants = grants

    def concerns(self, plan: Plan) -> bool:
        """Only if the tool requires a capability."""
        return bool(plan.tool.requires)

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny a capability that the operator did not grant, or that the calling tool does not have itself."""
        # Not cached: a tool that is added may change which tool a line of the grants means.
        tool, ungranted = plan.tool, self._grants.missing(plan.tool)
        missing = ungranted
        narrowed = state.call.grants
        if narrowed is not None:
            missing = missing | missing_grants(tool.requires, narrowed)
        if not missing:
            return ALLOW
        names = ", ".join(sorted(missing))
        cure = self._grants.cure(tool, ungranted)
        if not ungranted:
            cure = cure_of("the tool that makes this call needs the capability itself")
        return deny(
            f"{tool.name} requires {names}, which is not granted",
            kind=Kind.CAPABILITY_MISSING,
            rule="requires",
            where=self._grants.place(tool),
            cure=cure,
            details={"missing": sorted(missing)},
        )

    def describe(self, plan: Plan) -> str:
        """Which line of the grants allows each capability."""
        return self._grants.describe(plan.tool)


class Arguments:
    """Fills in defaults and refuses arguments that the schema does not allow."""

    name = "arguments"

    def concerns(self, plan: Plan) -> bool:
        """Only if the tool takes text: the fast path validates against the schema, but does not run `check_plain`."""
        return plan.holds_text

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Validate the arguments against the schema, without coercing or dropping any."""
        try:
            if plan.holds_text:
                # A schema permits what it does not mention; schemas of numbers alone are bounded by `prepare`.
                check_plain(state.arguments)
            if plan.fill is not None:
                state.arguments = plan.fill(state.arguments)
            if plan.arguments.is_valid(state.arguments):
                return ALLOW
            problems = explain_problems(plan.arguments, state.arguments, plan.parameters)
        except (ToolError, ValueError, TypeError, AttributeError) as problem:
            problems = [str(problem)]
        return deny(
            f"Invalid arguments for {plan.tool.name}: {'; '.join(problems)}",
            kind=Kind.VALIDATION,
            rule="parameters",
            where=place_of(plan, "parameters"),
            cure=Cure(
                f"see its parameters with: crib show {plan.tool.name}",
                f"see its parameters with: GET /crib/tools?name={plan.tool.name}",
                model="its definition says what it takes",
                searcher="read its parameters with describe_tool",
            ),
            details={"problems": problems},
        )


# Values of model.approval.State, which is not imported here, because a call without approval does not need it.
APPROVED, REFUSED = "approved", "refused"
CONFIRM = Cure(
    "let a person confirm it (crib call --yes), or hand the token of this answer back for them",
    "let a person confirm it, and send the token of this answer with the same call",
    model="let a person confirm it",
)
APPROVE = Cure(
    "have another person approve it (crib approvals list), then make the same call again",
    "ask the operator to approve it, then make the same call again",
)


class Confirmation:
    """Refuses an unconfirmed call if its tool or a rule demands confirmation."""

    name = "confirmation"

    def __init__(self, confirmations: Callable[[], Confirmations], approvals: Callable[[], ApprovalStore]) -> None:
        # Factories, because both are created on first use.
        self._confirmations = confirmations
        self._approvals = approvals

    def concerns(self, plan: Plan) -> bool:
        """If the tool requires confirmation, or a rule might."""
        return plan.tool.requires_confirmation or bool(plan.rules)

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Require a token for exactly this call, or its approval by another person."""
        tool, call = plan.tool, state.call
        if not tool.requires_confirmation and state.asks is None:
            return ALLOW
        problem = "it was not confirmed"
        approval = None
        if call.consent is not Consent.TOKEN:
            approval = self._approvals().find(tool, plan.bound, state.arguments, call)
        if approval is not None and approval.state == REFUSED:
            # Even if the caller has a token, because that may be older than the refusal.
            return deny(f"{approval.decided_by} refused it", rule="approval", details={"approval": approval.id})
        if call.consent is not Consent.TOKEN and (call.confirmation is None or call.consent is Consent.PERSON):
            state.approval = "" if approval is None or approval.state != APPROVED else approval.id
            if state.approval:
                return ALLOW
            problem = "no other person has approved it" if call.consent is Consent.PERSON else problem
        elif call.confirmation is not None:
            problem = self._confirmations().problem_with(call.confirmation, tool, state.arguments, call)
        if not problem:
            return ALLOW
        asks = state.asks or confirm(f"{tool.name} needs confirmation", rule="requires_confirmation")
        return confirm(
            f"{asks.reason}, and {problem}",
            rule=asks.rule,
            where=asks.where or place_of(plan, "requires_confirmation"),
            cure=APPROVE if call.consent is Consent.PERSON else CONFIRM,
            plainly=asks.reason,
        )

    def admit(self, state: CallState, plan: Plan) -> bool:
        """Use the approval or the token; False if a concurrent call has used it."""
        if state.approval:
            return self._approvals().use(state.approval)
        token = state.call.confirmation
        if token is None or not (plan.tool.requires_confirmation or state.asks):
            return True
        return self._confirmations().use(token)


class Prepare:
    """Refuses a call that the runner knows would fail."""

    name = "prepare"

    def concerns(self, plan: Plan) -> bool:
        """If the runner has a check."""
        return plan.bound.checks

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny if the check of the runner raises ToolError."""
        try:
            state.prepared = plan.bound.check(state.arguments, state.call)
        except ToolError as refusal:
            return Verdict(
                decision=Decision.DENY,
                reason=refusal.reason,
                cure=refusal.cure,
                kind=refusal.kind,
                details={name: fact for name, fact in refusal.details.items() if name != "cure"},
                retryable=refusal.retryable,
            )
        return ALLOW


def place_of(plan: Plan, what: str) -> str:
    """Where a property of a tool is declared, for messages."""
    origin = plan.tool.origin
    return f"{what} of {plan.tool.name}" + (f" in {origin}" if origin else "")


# The gates that count: rate limits and quotas, budgets of sessions, loops.

NULL = {"type": "null"}


class Rate:
    """Enforces the rate limit of the tool and the quota of the caller."""

    name = "rate"

    def __init__(self, limits: Callable[[], CallLimits]) -> None:
        # A factory, because a tool without limits and a caller without a quota need no ledger.
        self._limits = limits

    def concerns(self, plan: Plan) -> bool:
        """Only if the tool has a rate limit; the fast path checks for a quota too."""
        return plan.tool.limits.calls_per_minute is not None

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Ask the ledger whether the limits have room, without consuming anything."""
        return self._limits().judge(state, plan) if self._is_limited(state, plan) else ALLOW

    def admit(self, state: CallState, plan: Plan) -> Verdict:
        """Count the call; denies it if concurrent calls have exhausted a limit."""
        return self._limits().admit(state, plan) if self._is_limited(state, plan) else ALLOW

    def give_back(self, state: CallState) -> None:
        """Refund a call that was not made after all."""
        if state.taken is not None:
            self._limits().give_back(state)

    def charge(self, state: CallState, result: Result | None) -> None:
        """Count what is known only at the end of a call, such as its duration; a failure to count is logged."""
        if state.quota is not None and state.ran:
            self._limits().charge(state, result, time.monotonic() - state.started)

    def describe(self, state: CallState, plan: Plan) -> str:
        """What is left of the limits of a call."""
        return self._limits().describe(state, plan) if self._is_limited(state, plan) else ""

    def _is_limited(self, state: CallState, plan: Plan) -> bool:
        return state.quota is not None or self.concerns(plan)


class Budget:
    """Refuses a call past its deadline, a chain of calls that is too deep, and a session whose budget is exhausted."""

    name = "budget"

    def concerns(self, plan: Plan) -> bool:
        """Never by the tool itself: only a call with a deadline, a session or a parent has a budget."""
        return False

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Check the deadline, then the depth, then the budgets of the session."""
        call = state.call
        # Written so that a deadline of NaN has passed too.
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
    """Refuses an identical call repeated within one turn of a session, and a tool that keeps returning nothing.

    Only calls of the agent itself count: a tool may call another one repeatedly, and its own timeout ends it.
    """

    name = "loop"

    def concerns(self, plan: Plan) -> bool:
        """Never by the tool itself: only a session counts calls."""
        return False

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny what the counts of the present turn show to be a loop."""
        session = state.call.session
        if session is None or not _looks_for_loops(state, session):
            return ALLOW
        step = step_of(session, state, plan)
        if session.repeats(step.mark):
            times = "once" if session.max_repeats == 1 else f"{session.max_repeats} times"
            reason = f"{plan.name} was called {times} in this turn with the very same arguments"
            return _refuse_loop(reason, "max_repeats")
        if session.finds_nothing(step.tool):
            return _refuse_loop(f"{plan.name} found nothing {session.MAX_EMPTY} times in this turn", "empty")
        return ALLOW


def step_of(session: Session, state: CallState, plan: Plan) -> CountedCall:
    """The CountedCall of a call; its arguments must have been validated and have their defaults."""
    if state.step is None:
        mark = _mark(plan.address, state.arguments) if _looks_for_loops(state, session) else b""
        call = replace(state.call, arguments=state.arguments)
        # What later calls of the session are judged by.
        notes = frozenset(note for rule in plan.rules if hasattr(rule, "notes") for note in rule.notes(plan.tool, call))
        state.step = session.step(plan.address, is_retrieval=_is_retrieval(plan), mark=mark, notes=notes)
    return state.step


def count_in_session(state: CallState, plan: Plan) -> bool:
    """Have the session count the call; False if its budget is exhausted by now."""
    session = state.call.session
    if session is None:
        return True
    state.turn = session.admit(step_of(session, state, plan))
    return state.turn is not None


def uncount_in_session(state: CallState) -> None:
    """Have the session uncount a call that was not made after all."""
    if state.call.session is not None and state.step is not None and state.turn is not None:
        state.call.session.uncount(state.step, state.turn)


def note_empty(state: CallState, plan: Plan, value: object) -> None:
    """Have the session count an empty result, unless the output schema of the tool is null."""
    session, step, turn = state.call.session, state.step, state.turn
    if session is None or step is None or turn is None or not step.mark or plan.tool.output_schema == NULL:
        return
    if value is None or (isinstance(value, str | list | tuple | dict) and not value):
        session.note_empty(step.tool, turn)


def _looks_for_loops(state: CallState, session: Session) -> bool:
    return session.max_repeats is not None and state.call.parent is None


def _is_retrieval(plan: Plan) -> bool:
    return plan.tool.behaviour is Behaviour.RETRIEVAL


def _mark(address: str, arguments: dict[str, object]) -> bytes:
    """A hash of the tool and its arguments, equal for identical calls."""
    import hashlib

    text = orjson.dumps([address, arguments], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).digest()


def _refuse_spent(session: Session, bound: str) -> Verdict:
    reason, cure = {
        "max_calls": (
            f"the session has made all of its {session.max_calls} calls",
            Cure("open a new session or raise max_calls", "open a new session", model="answer with what is known"),
        ),
        "max_turn_calls": (
            f"this turn has made all of its {session.max_turn_calls} calls",
            Cure("answer the user with what is known, or raise max_turn_calls", "answer the user with what is known"),
        ),
        "max_turn_retrievals": (
            f"this turn has made all of its {session.max_turn_retrievals} retrievals",
            Cure(
                "answer the user with what was found, or raise max_turn_retrievals",
                "answer the user with what was found",
            ),
        ),
    }[bound]
    return deny(reason, kind=Kind.BUDGET_EXCEEDED, rule=bound, cure=cure)


def _refuse_loop(reason: str, rule: str) -> Verdict:
    return deny(
        reason, kind=Kind.LOOP_DETECTED, rule=rule, cure="try something else, or answer the user with what is known"
    )
