"""Check the rate limit of a tool and the quota of its caller, and count what a call uses."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError
from toolcrib.model.limits import MINUTE, PERIODS, UNITS, Claim, Shortage, Usage, spell_amount
from toolcrib.model.result import ALLOW, deny

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.core.call_state import CallState, Plan
    from toolcrib.infra.usage_ledger import UsageLedger
    from toolcrib.model.limits import Quota
    from toolcrib.model.result import Result, Verdict
    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.limits")

RATE, QUOTA = "calls_per_minute", "quota"
MONEY = "money"


class CallLimits:
    """The limits of calls. A quota counts the caller's own calls, and the cost of these and of the calls that their tools make."""

    def __init__(self, ledger: UsageLedger) -> None:
        self._ledger = ledger

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Deny a call that exceeds a limit; counts nothing."""
        if problem := _currency_problem(state.quota, plan.tool):
            return problem
        shortage = self._ledger.check(_claims(state, plan))
        return ALLOW if shortage is None else _refusal(shortage, state, plan)

    def admit(self, state: CallState, plan: Plan) -> Verdict:
        """Count the call; denies it if a concurrent one has used up the limit."""
        claims = _claims(state, plan)
        taken = self._ledger.take(claims)
        if isinstance(taken, Shortage):
            return _refusal(taken, state, plan)
        state.claims, state.taken = claims, taken
        return ALLOW

    def give_back(self, state: CallState) -> None:
        """Uncount a call that was admitted but not made."""
        if state.taken is not None:
            self._ledger.give_back(state.claims, state.taken)

    def charge(self, state: CallState, result: Result | None, seconds: float) -> None:
        """Count the duration, result bytes and real cost of a call whose caller has a quota."""
        quota = state.quota
        if quota is None or state.plan is None or state.taken is None:
            return
        cost = state.plan.tool.cost
        try:
            if cost is not None and cost.per_minute:
                estimated = [claim for claim in state.claims if claim.subject.endswith(f" {MONEY}")]
                # In this order, so that a concurrent call never sees more left than there is.
                self._ledger.add(quota.claims(state.call.caller, money=cost.of(seconds)))
                self._ledger.give_back(estimated, state.taken)
            if state.call.parent is None:
                # A cancelled stream counts what the client has read; a finished one counts its value.
                size = max(state.chunk_bytes, 0 if result is None else _size_of(result))
                self._ledger.add(quota.claims(state.call.caller, bytes=size, seconds=seconds))
        except ToolError as problem:
            # The call was made, so its result counts. While usage cannot be counted, further calls are denied.
            logger.warning("call %s: what it used could not be counted: %s", state.id, problem.message)

    def describe(self, state: CallState, plan: Plan) -> str:
        """What is left of every limit of a call, in words."""
        usages = self._usages(_named_claims(state, plan))
        return "; ".join(
            f"{spell_amount(usage.left)} of {spell_amount(usage.limit)} {usage.unit} per {usage.per} left"
            for usage in usages
        )

    def usages(self, tools: Iterable[Tool], quotas: Mapping[str, Quota]) -> list[Usage]:
        """The current usage of the rate limits of tools and the quotas of callers."""
        limited = [tool for tool in tools if tool.limits.calls_per_minute is not None]
        rates = [("calls", "minute", _rate_claim(tool, 0), tool.address) for tool in limited]
        every = dict.fromkeys(UNITS, 0.0)
        owned = [
            (unit, quota.per, claim, caller)
            for caller, quota in quotas.items()
            for unit, claim in zip(quota.limits(), quota.claims(caller, **every), strict=True)
        ]
        return list(self._usages([*rates, *owned]))

    def _usages(self, named: list[tuple[str, str, Claim, str]]) -> Iterator[Usage]:
        used = self._ledger.used([claim for _, _, claim, _ in named]) if named else []
        for (unit, per, claim, subject), number in zip(named, used, strict=True):
            parts = UNITS[unit]
            yield Usage(subject=subject, unit=unit, per=per, limit=claim.limit / parts, used=number / parts)


def _claims(state: CallState, plan: Plan) -> list[Claim]:
    return [claim for _, _, claim, _ in _named_claims(state, plan)]


def _named_claims(state: CallState, plan: Plan) -> list[tuple[str, str, Claim, str]]:
    """The claims of a call, each with its unit, its period and the owner of the limit."""
    tool, call, quota = plan.tool, state.call, state.quota
    found = [] if tool.limits.calls_per_minute is None else [("calls", "minute", _rate_claim(tool, 1), tool.address)]
    if quota is None:
        return found
    amounts: dict[str, float] = {}
    if call.parent is None:
        # What is known only at the end of the call claims 0 now, which is denied only if nothing is left.
        sent = _size(state.arguments) if quota.bytes is not None else 0
        amounts = {"calls": 1.0, "bytes": float(sent), "seconds": 0.0}
    if tool.cost is not None:
        amounts[MONEY] = tool.cost.estimate()
    for unit, amount in amounts.items():
        found += [(unit, quota.per, claim, call.caller) for claim in quota.claims(call.caller, **{unit: amount})]
    return found


def _rate_claim(tool: Tool, amount: int) -> Claim:
    return Claim(subject=f"tool {tool.address}", amount=amount, limit=tool.limits.calls_per_minute or 0, window=MINUTE)


def _currency_problem(quota: Quota | None, tool: Tool) -> Verdict | None:
    if quota is None or quota.money is None or tool.cost is None or tool.cost.currency == quota.currency:
        return None
    reason = f"{tool.name} costs {tool.cost.currency}, and the quota of its caller is in {quota.currency}"
    return deny(reason, kind=Kind.LIMIT_EXCEEDED, rule=QUOTA, cure="make a token without a quota of money")


def _refusal(shortage: Shortage, state: CallState, plan: Plan) -> Verdict:
    claim, wait = shortage.claim, shortage.wait
    again = "" if wait is None else f"; try again in {math.ceil(wait)} s"
    if claim.subject.startswith("tool "):
        rule, where = RATE, _place(plan)
        reason = f"{plan.tool.name} may be called {claim.limit} times a minute{again}"
    else:
        unit = claim.subject.rpartition(" ")[2]
        per = next(word for word, seconds in PERIODS.items() if seconds == claim.window)
        rule, where = QUOTA, "the token of the caller"
        limit = f"{spell_amount(claim.limit / UNITS[unit])} {state.quota.currency if state.quota and unit == MONEY else unit}"
        reason = f"the quota of {state.call.caller} is used up, which is {limit} per {per}{again}"
    details = {} if wait is None else {RETRY_AFTER: round(wait, 3)}
    return deny(reason, kind=Kind.RATE_LIMIT, rule=rule, where=where, details=details, retryable=wait is not None)


def _place(plan: Plan) -> str:
    origin = plan.tool.origin
    return f"calls_per_minute of {plan.tool.name}" + (f" in {origin}" if origin else "")


def _size_of(result: Result) -> int:
    """The size of the whole value, also if only its beginning was returned: the rest is read without a call."""
    kept = result.meta.get("kept")
    return int(kept["bytes"]) if isinstance(kept, dict) else _size(result.value)


def _size(value: object) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return len(str(value))
