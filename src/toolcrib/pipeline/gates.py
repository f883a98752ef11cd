"""The gates of a call but those that count. Each judges purely; `explain` and the call itself use the very same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.session import MODES
from toolcrib.model.verdict import ALLOW, Decision, Verdict, confirm, deny
from toolcrib.pipeline.case import mode_of
from toolcrib.pipeline.plan import missing_grants
from toolcrib.pure import schema
from toolcrib.rules.engine import strictest

if TYPE_CHECKING:
    from toolcrib.pipeline.case import Case
    from toolcrib.pipeline.confirmation import Confirmations
    from toolcrib.pipeline.plan import Plan, Policy


class Gate(Protocol):
    """One judge."""

    name: str

    def concerns(self, plan: Plan) -> bool:
        """Whether the gate could refuse a call that is within the tool's parameters and says nothing but its arguments."""

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """Allow, or refuse with a reason; consumes nothing."""


class Rules:
    """Screens the raw call. A rule that asks for confirmation leaves its question to the confirmation gate."""

    name = "rules"

    def concerns(self, plan: Plan) -> bool:
        """Only where a rule concerns the tool."""
        return bool(plan.rules)

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """The strictest of the rules decides."""
        verdict = strictest(plan.rules, plan.tool, case.call)
        if verdict.decision is Decision.CONFIRM:
            case.asks = verdict
            return ALLOW
        return verdict


class Enabled:
    """Refuses a tool that is switched off."""

    name = "enabled"

    def concerns(self, plan: Plan) -> bool:
        """Not by the tool itself; the short way looks at the switch too."""
        return False

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """As the catalogue says."""
        entry = case.entry
        if entry is None or entry.enabled:
            return ALLOW
        return deny(f"{entry.tool.name} is switched off: {entry.reason}", kind=Kind.DISABLED, cure=entry.cure)


class Mode:
    """Refuses a tool outside its modes."""

    name = "mode"

    def concerns(self, plan: Plan) -> bool:
        """Only where the tool names modes."""
        return plan.tool.modes is not None

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """The mode of the call, else of its session, else text."""
        tool, mode = plan.tool, mode_of(case.call)
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

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def concerns(self, plan: Plan) -> bool:
        """Only where the tool requires something."""
        return bool(plan.tool.requires)

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """What the operator granted, narrowed by what the calling tool was granted."""
        tool, missing = plan.tool, plan.missing
        narrowed = case.call.grants
        if narrowed is not None:
            missing = missing | missing_grants(tool.requires, narrowed)
        if not missing:
            return ALLOW
        names = ", ".join(sorted(missing))
        cure = f"grant it with --grant {min(missing)} or grants in toolcrib.toml"
        if not plan.missing:
            cure = "the tool that makes this call needs the capability itself"
        return deny(
            f"{tool.name} requires {names}, which is not granted",
            kind=Kind.CAPABILITY_MISSING,
            rule="requires",
            where=self._policy.where("grants"),
            cure=cure,
            details={"missing": sorted(missing)},
        )


class Arguments:
    """Fills in defaults and refuses arguments that the schema does not allow."""

    name = "arguments"

    def concerns(self, plan: Plan) -> bool:
        """Not where the arguments are within the parameters, which the short way looks at too."""
        return plan.holds_text

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """As the schema says; nothing is coerced or dropped."""
        try:
            if plan.holds_text:
                # A schema lets pass what it does not mention; numbers alone it mentions always.
                from toolcrib.pure.documents import check_plain

                check_plain(case.arguments)
            if plan.fill is not None:
                case.arguments = plan.fill(case.arguments)
            if plan.arguments.is_valid(case.arguments):
                return ALLOW
            problems = schema.explain_problems(plan.arguments, case.arguments, plan.parameters)
        except (ToolError, ValueError, TypeError, AttributeError) as problem:
            problems = [str(problem)]
        return deny(
            f"Invalid arguments for {plan.tool.name}: {'; '.join(problems)}",
            kind=Kind.VALIDATION,
            rule="parameters",
            where=place_of(plan, "parameters"),
            cure=f"see its parameters with: crib show {plan.tool.name}",
            details={"problems": problems},
        )


class Confirmation:
    """Refuses an unconfirmed call of a tool, or under a rule, that asks for confirmation."""

    name = "confirmation"

    def __init__(self, confirmations: Confirmations) -> None:
        self._confirmations = confirmations

    def concerns(self, plan: Plan) -> bool:
        """Where the tool asks, or a rule might."""
        return plan.tool.requires_confirmation or bool(plan.rules)

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """A token must have been given for exactly this call."""
        tool, call = plan.tool, case.call
        if not tool.requires_confirmation and case.asks is None:
            return ALLOW
        problem = "it was not confirmed"
        if call.confirmation is not None:
            problem = self._confirmations.problem_with(call.confirmation, tool, case.arguments, call)
        if not problem:
            return ALLOW
        asks = case.asks or confirm(f"{tool.name} asks to be confirmed", rule="requires_confirmation")
        return confirm(
            f"{asks.reason}, and {problem}",
            rule=asks.rule,
            where=asks.where or place_of(plan, "requires_confirmation"),
            cure="let a person confirm it (crib call --yes), or hand the token of this answer back for them",
        )

    def admit(self, case: Case, plan: Plan) -> bool:
        """Use the token up; False if it was used a moment ago by another call."""
        token = case.call.confirmation
        if token is None or not (plan.tool.requires_confirmation or case.asks):
            return True
        return self._confirmations.use(token)


class Prepare:
    """Lets the runner refuse what it can see to fail."""

    name = "prepare"

    def concerns(self, plan: Plan) -> bool:
        """Where the runner has something to check."""
        return plan.bound.checks

    def judge(self, case: Case, plan: Plan) -> Verdict:
        """As the runner says."""
        try:
            plan.bound.check(case.arguments, case.call)
        except ToolError as refusal:
            return Verdict(
                decision=Decision.DENY,
                reason=refusal.message,
                kind=refusal.kind,
                details=refusal.details,
                retryable=refusal.retryable,
            )
        return ALLOW


def place_of(plan: Plan, what: str) -> str:
    """Where the author of a tool said it."""
    origin = plan.tool.origin
    return f"{what} of {plan.tool.name}" + (f" in {origin}" if origin else "")
