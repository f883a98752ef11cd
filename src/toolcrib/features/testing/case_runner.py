"""Run cases, each on a session of its own, and compare the result, the sent messages and the audit entries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.features.testing.cases import CaseResult
from toolcrib.lib.comparison import SHOWN_LETTERS, differences, show
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind
from toolcrib.model.tool import Behaviour, SideEffects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcrib.features.testing.cases import Bench, Case, FakeContext
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.verdict import Verdict

CALL = "call"  # the pipeline's own line in the journal
MOST_REASONS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Performance:
    """One call: its result, what its client saw, and how long it took."""

    result: Result
    context: FakeContext
    seconds: float


async def run_cases(
    bench: Bench,
    tool: Tool,
    cases: Iterable[Case],
    *,
    mode: str | None = None,
    heard: Callable[[CaseResult], None] | None = None,
    agreed: bool = True,
) -> list[CaseResult]:
    """Try the cases one after the other, in this mode where a case names none; `heard` is told of each as it ends.

    Unless a person `agreed`, a recorded case confirms nothing: a tool may have written it.
    """
    results = []
    for case in cases:
        results.append(await _try(bench, tool, case, mode, agreed=agreed or case.is_documented))
        if heard is not None:
            heard(results[-1])
    return results


async def perform(bench: Bench, call: Call, context: FakeContext, tool: Tool | None) -> Performance:
    """Make a call as this client, confirmed if it confirms; `context` takes down what the tool sends."""
    call = _as_client(bench, call, context, tool)
    if context.confirm and _is_kind(bench.refusal(call), Kind.CONFIRMATION_REQUIRED):
        asked = await bench.call(call)
        token = None if asked.error is None else asked.error.details.get("confirmation")
        call = replace(call, confirmation=token if isinstance(token, str) else None)
    started = time.monotonic()
    result = await bench.call(call)
    return Performance(result=result, context=context, seconds=time.monotonic() - started)


def take_down_audit(bench: Bench, performance: Performance) -> None:
    """Let the client know what the tool wanted on record; a case without that expectation does not wait for the journal."""
    call_id = performance.result.meta.get("callId")
    for line in bench.journal():
        if line.get("id") == call_id and line.get("event") != CALL:
            performance.context.audited.append({"event": line.get("event"), "data": line.get("data", {})})


def compare(case: Case, result: Result, context: FakeContext) -> Iterator[str]:
    """Every difference between what the case expects and what its call came to."""
    expect = case.expect
    yield from _compare_end(case, result)
    if "value" in expect:
        yield from differences(expect["value"], result.value, "value", exact=True)
    if "contains" in expect:
        yield from differences(expect["contains"], result.value, "value", exact=False)
    seen = {
        "intents": [intent.to_json() for intent in result.intents],
        "sent": context.sent,
        "audit": context.audited,
    }
    for name, items in seen.items():
        if name in expect:
            yield from differences(expect[name], items, name, exact=False)


async def _try(bench: Bench, tool: Tool, case: Case, mode: str | None, *, agreed: bool) -> CaseResult:
    if case.problem:
        return CaseResult(name=case.name, place=case.place, passed=False, reasons=(case.problem,))
    call = Call(name=tool.name, bundle=tool.bundle, version=tool.version, arguments=dict(case.arguments))
    context = case.context.afresh(mode)
    verdict = bench.refusal(_as_client(bench, call, context, tool))
    skipped = _why_skipped(verdict, case)
    if not agreed and context.confirm and _is_kind(verdict, Kind.CONFIRMATION_REQUIRED):
        skipped = skipped or "the call asks to be confirmed; if the case is yours, run the test with --yes"
    if skipped:
        return CaseResult(name=case.name, place=case.place, passed=False, skipped=skipped)
    first = await perform(bench, call, context, tool)
    if "audit" in case.expect:
        take_down_audit(bench, first)
    again = await perform(bench, call, context.afresh(), tool) if _is_repeated(tool, first) else first
    reasons = _bounded(compare(case, first.result, first.context))
    return CaseResult(
        name=case.name,
        place=case.place,
        passed=not reasons,
        reasons=reasons,
        warnings=tuple(_warnings(first, again)),
        seconds=first.seconds,
        result=first.result,
    )


def _compare_end(case: Case, result: Result) -> Iterator[str]:
    """Whether the call succeeded or failed as expected, and with which error."""
    error = result.error
    if not case.expects_failure:
        if error is not None:
            yield f"ok: expected true, got false: {error.kind}: {error.message[:SHOWN_LETTERS]}"
        return
    if error is None:
        yield f"ok: expected false, got true with the value {show(result.value)}"
        return
    wanted = case.expect.get("error")
    if not isinstance(wanted, Mapping):
        return
    facts = error.to_json()
    for name, value in wanted.items():
        if name != "message_contains":
            yield from differences(value, facts[name], f"error.{name}", exact=True)
        elif str(value) not in error.message:
            yield f"error.message: expected to contain {show(value)}, got {show(error.message)}"


def _as_client(bench: Bench, call: Call, context: FakeContext, tool: Tool | None) -> Call:
    """The call on a session of its own, with arguments of its own: a function of the host may change them."""
    session = bench.session(
        mode=context.mode_for(tool), state=context.state, send=None if context.is_cut_off else context.deliver
    )
    if not context.is_active:
        session.close()
    return replace(call, caller=context.client_id, session=session, arguments=deepcopy(call.arguments))


def _why_skipped(verdict: Verdict | None, case: Case) -> str:
    """Why a case cannot be tried here, where that is no fault of the tool; a case may also be about the refusal."""
    if verdict is None or verdict.kind == case.expected_kind:
        return ""
    if verdict.kind is Kind.CAPABILITY_MISSING:
        missing = verdict.details.get("missing")
        return f"needs {', '.join(missing) if isinstance(missing, list) else 'a capability'}; {verdict.cure}"
    if verdict.kind is Kind.DISABLED or (verdict.kind is Kind.MODE_RESTRICTED and case.context.mode is None):
        return verdict.reason
    return ""


def _is_kind(verdict: Verdict | None, kind: Kind) -> bool:
    return verdict is not None and verdict.kind is kind


def _is_repeated(tool: Tool, first: Performance) -> bool:
    """Whether a second call would show that a utility keeps to its answer.

    What writes is not called twice, as that was not asked for.
    """
    return first.result.ok and tool.behaviour is Behaviour.UTILITY and tool.side_effects is not SideEffects.WRITES


def _warnings(first: Performance, again: Performance) -> Iterator[str]:
    """What the platform said about the call, and what a second one showed."""
    if difference := next(differences(first.result.value, again.result.value, "value", exact=True), ""):
        yield f"not deterministic: the same arguments gave something else the second time: {difference}"
    said = first.result.meta.get("warnings")
    yield from map(str, said if isinstance(said, list) else ())


def _bounded(reasons: Iterator[str]) -> tuple[str, ...]:
    """The first differences; more are not read."""
    found = tuple(islice(reasons, MOST_REASONS))
    return (*found, "… and more") if next(reasons, None) is not None else found
