"""Describe cases, run each on a session of its own, and compare the result, the sent messages and the audit entries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from toolcrib.infra.plain_code import run_alone
from toolcrib.lib.comparison import SHOWN_LETTERS, differences, show
from toolcrib.model.call import CALL, Call
from toolcrib.model.errors import Kind, ToolError, cure_of
from toolcrib.model.tool import Behaviour, SideEffects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Explanation, Result, Verdict
    from toolcrib.model.session import Send, Session
    from toolcrib.model.tool import Tool


OK, FAILS, CLOSED = SENDING = ("ok", "fails", "closed")
TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class FakeContext:
    """A client with its session.

    `send` says what happens to messages: `ok`, they arrive; `fails`, each is lost; `closed`, there is no connection. Without a
    `mode` the tool is called in one that it allows. `confirm` is the answer to every confirmation. `sent` are the messages
    that arrived, `audited` the audit entries, each as `{"event", "data"}`.
    """

    send: str = OK
    mode: str | None = None
    state: Mapping[str, object] = field(default_factory=dict)
    is_active: bool = True
    client_id: str = "test"
    confirm: bool = True
    sent: list[object] = field(default_factory=list)
    audited: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.send not in SENDING:
            raise ValueError(f"send is {self.send!r}; write one of {', '.join(SENDING)}")

    @property
    def is_cut_off(self) -> bool:
        """Whether there is no connection to the client."""
        return self.send == CLOSED

    def afresh(self, mode: str | None = None) -> FakeContext:
        """A fresh copy of the client, in this mode if it has none of its own."""
        return replace(self, mode=self.mode or mode, sent=[], audited=[])

    def mode_for(self, tool: Tool | None) -> str:
        """The mode of its session: its own, else text, else one that the tool allows."""
        if self.mode is not None:
            return self.mode
        modes = None if tool is None else tool.modes
        return TEXT if not modes or TEXT in modes else min(modes)

    async def deliver(self, message: object) -> None:
        """Receive a message of the tool."""
        if self.send == FAILS:
            raise ToolError(Kind.TRANSIENT, "the message was lost on its way to the client", retryable=True)
        self.sent.append(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Arguments for a tool, the client that calls it, and the expectation, with the keys of a case file.

    Unless `expect` has `ok` or `error`, the call is expected to succeed. `problem` says why the case cannot be read; such a
    case fails. `is_documented` marks an example in the documentation of the tool.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    context: FakeContext = field(default_factory=FakeContext)
    expect: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    problem: str = ""
    is_documented: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def expects_failure(self) -> bool:
        """Whether the call is expected to fail."""
        return "error" in self.expect or self.expect.get("ok") is False

    @property
    def expected_kind(self) -> object:
        """The type of error that is expected; None if none is named."""
        error = self.expect.get("error")
        return error.get("type") if isinstance(error, dict) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """The result of a case.

    `reasons` are all differences between the expectation and the result; `skipped` says why the case could not be run here,
    and `warnings` are problems that do not make it fail.
    """

    name: str
    place: str = ""
    passed: bool
    reasons: tuple[str, ...] = ()
    skipped: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    result: Result | None = None

    @property
    def failed(self) -> bool:
        """Whether the case was run and does not match, or could not be read."""
        return not self.passed and not self.skipped

    def to_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "name": self.name,
            "place": self.place,
            "passed": self.passed,
            "skipped": self.skipped or None,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "result": None if self.result is None else self.result.to_json(),
        }


class OpenSession(Protocol):
    """Opens a session."""

    def __call__(self, *, mode: str, state: Mapping[str, object], send: Send | None) -> Session:
        """Open a new session."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHost:
    """What running cases needs of a crib.

    `refusal` is the verdict that would stop a call, None if nothing would; `journal` reads all entries, oldest first.
    """

    call: Callable[[Call], Awaitable[Result]]
    refusal: Callable[[Call], Verdict | None]
    session: OpenSession
    journal: Callable[[], Iterable[Mapping[str, object]]]


MOST_REASONS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Performance:
    """One call: its result, what its client saw, and how long it took."""

    result: Result
    context: FakeContext
    seconds: float


async def run_cases(
    host: CaseHost,
    tool: Tool,
    cases: Iterable[Case],
    *,
    mode: str | None = None,
    heard: Callable[[CaseResult], None] | None = None,
    agreed: bool = True,
) -> list[CaseResult]:
    """Try the cases one after the other, in this mode where a case names none; `heard` is called with each result.

    Unless a person `agreed`, a recorded case confirms nothing: a tool may have written it.
    """
    results = []
    for case in cases:
        results.append(await _try(host, tool, case, mode, agreed=agreed or case.is_documented))
        if heard is not None:
            heard(results[-1])
    return results


async def perform(host: CaseHost, call: Call, context: FakeContext, tool: Tool | None) -> Performance:
    """Make a call as this client, confirmed if it confirms; `context` records what the tool sends."""
    call = _as_client(host, call, context, tool)
    if context.confirm and _is_kind(host.refusal(call), Kind.CONFIRMATION_REQUIRED):
        asked = await host.call(call)
        token = None if asked.error is None else asked.error.details.get("confirmation")
        call = replace(call, confirmation=token if isinstance(token, str) else None)
    started = time.monotonic()
    result = await host.call(call)
    return Performance(result=result, context=context, seconds=time.monotonic() - started)


def read_audit(host: CaseHost, performance: Performance) -> None:
    """Add the audit entries of the call to what its client has `audited`; this waits until the journal is written."""
    call_id = performance.result.meta.get("callId")
    for line in host.journal():
        if line.get("id") == call_id and line.get("event") != CALL:
            performance.context.audited.append({"event": line.get("event"), "data": line.get("data", {})})


def compare(case: Case, result: Result, context: FakeContext) -> Iterator[str]:
    """Every difference between what the case expects and the result of its call."""
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


async def _try(host: CaseHost, tool: Tool, case: Case, mode: str | None, *, agreed: bool) -> CaseResult:
    if case.problem:
        return CaseResult(name=case.name, place=case.place, passed=False, reasons=(case.problem,))
    call = Call(name=tool.name, bundle=tool.bundle, version=tool.version, arguments=dict(case.arguments))
    context = case.context.afresh(mode)
    verdict = host.refusal(_as_client(host, call, context, tool))
    skipped = _why_skipped(verdict, case)
    if not agreed and context.confirm and _is_kind(verdict, Kind.CONFIRMATION_REQUIRED):
        skipped = skipped or "the call asks to be confirmed; if the case is yours, run the test with --yes"
    if skipped:
        return CaseResult(name=case.name, place=case.place, passed=False, skipped=skipped)
    first = await perform(host, call, context, tool)
    if "audit" in case.expect:
        read_audit(host, first)
    again = await perform(host, call, context.afresh(), tool) if _is_repeated(tool, first) else first
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


def _as_client(host: CaseHost, call: Call, context: FakeContext, tool: Tool | None) -> Call:
    """The call on a new session, with a copy of the arguments, which a function of the host may change."""
    session = host.session(
        mode=context.mode_for(tool), state=context.state, send=None if context.is_cut_off else context.deliver
    )
    if not context.is_active:
        session.close()
    return replace(call, caller=context.client_id, session=session, arguments=deepcopy(call.arguments))


def _why_skipped(verdict: Verdict | None, case: Case) -> str:
    """Why a case cannot be run here for reasons other than the tool; empty if the case expects that refusal."""
    if verdict is None or verdict.kind == case.expected_kind:
        return ""
    if verdict.kind is Kind.CAPABILITY_MISSING:
        missing = verdict.details.get("missing")
        needs = ", ".join(missing) if isinstance(missing, list) else "a capability"
        return f"needs {needs}; {cure_of(verdict.cure).operator}"
    if verdict.kind is Kind.DISABLED or (verdict.kind is Kind.MODE_RESTRICTED and case.context.mode is None):
        return verdict.reason
    return ""


def _is_kind(verdict: Verdict | None, kind: Kind) -> bool:
    return verdict is not None and verdict.kind is kind


def _is_repeated(tool: Tool, first: Performance) -> bool:
    """Whether to call again, to check that a utility is deterministic.

    A tool with side effects is not called twice.
    """
    return first.result.ok and tool.behaviour is Behaviour.UTILITY and tool.side_effects is not SideEffects.WRITES


def _warnings(first: Performance, again: Performance) -> Iterator[str]:
    """The warnings of the call, and those that a second call showed."""
    if difference := next(differences(first.result.value, again.result.value, "value", exact=True), ""):
        yield f"not deterministic: the same arguments gave something else the second time: {difference}"
    said = first.result.meta.get("warnings")
    yield from map(str, said if isinstance(said, list) else ())


def _bounded(reasons: Iterator[str]) -> tuple[str, ...]:
    """The first differences, up to a limit."""
    found = tuple(islice(reasons, MOST_REASONS))
    return (*found, "… and more") if next(reasons, None) is not None else found


class TriedCrib(Protocol):
    """What running cases uses of a crib."""

    @property
    def session(self) -> OpenSession:
        """Opens a conversation."""

    @property
    def journal(self) -> Journal:
        """The journal of the crib."""

    def call_sync(self, call: Call, /) -> Result:
        """Make a call."""

    def explain(self, call: Call, /) -> Explanation:
        """The finding of every gate for a call, without making it."""


def try_cases(
    crib: TriedCrib,
    tool: Tool,
    cases: Iterable[Case],
    *,
    mode: str | None = None,
    heard: Callable[[CaseResult], None] | None = None,
    agreed: bool = True,
) -> list[CaseResult]:
    """Try cases and report how each went, from code that is not async; `heard` is called with each result.

    Unless a person `agreed`, a recorded case confirms nothing.
    """
    host = case_host_of(crib, called_at_once(crib))
    return run_alone(run_cases(host, tool, cases, mode=mode, heard=heard, agreed=agreed))


def case_host_of(crib: TriedCrib, call: Callable[[Call], Awaitable[Result]]) -> CaseHost:
    """Make a CaseHost of a crib and a function that makes calls."""

    def refusal(call: Call) -> Verdict | None:
        finding = crib.explain(call).refusal
        return None if finding is None else finding.verdict

    return CaseHost(call=call, refusal=refusal, session=crib.session, journal=crib.journal.read)


def called_at_once(crib: TriedCrib) -> Callable[[Call], Awaitable[Result]]:
    """Make calls synchronously, behind an async function that never suspends and so needs no event loop."""

    async def call(call: Call) -> Result:
        return crib.call_sync(call)

    return call
