"""The state of a call in the pipeline (CallState), and a tool prepared for its calls (Plan)."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from toolcrib.core.grants import Grants
from toolcrib.core.sources import current_view, seen_through
from toolcrib.infra.settings import Table, read_positive, setting
from toolcrib.lib.schema import check_schema, compile_schema, fill_defaults
from toolcrib.lib.schema_structure import bound_integers, holds_text
from toolcrib.model.call import CALL, Call, Context
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MEGABYTE, ONCE, REPEAT_IDEMPOTENT, Function
from toolcrib.values import joins_text
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolcrib.core.execution import Deadlines, SecretsMask, Watch
    from toolcrib.core.sources import View
    from toolcrib.infra.secrets.chunk_mask import ChunkMask
    from toolcrib.lib.schema import Validator
    from toolcrib.model.call import ClientLink, Question
    from toolcrib.model.limits import Claim, Quota, Taken
    from toolcrib.model.protocols import Bound, Line, Rule, Runner
    from toolcrib.model.result import Outcome, Result, Verdict
    from toolcrib.model.session import CountedCall, Turn
    from toolcrib.model.tool import Entry, RetryPolicy, Tool

    Perform = Callable[[Call], Awaitable[Result]]
    Record = Callable[[Line], None]


TEXT_MODE = "text"
# The longest that a tool may wait for an answer of its client.
ASK_SECONDS = 600.0
# The limit of items that also applies to a generator without a streaming client.
MAX_CHUNKS = 100_000
MAX_CHUNK_BYTES = 64 * MEGABYTE


# The quota of the current caller; None for one without a quota.
QUOTA: ContextVar[Quota | None] = ContextVar("quota", default=None)
current_quota = QUOTA.get


@contextmanager
def limited_to(quota: Quota | None) -> Iterator[None]:
    """Count calls within a `with` block, and in tasks started in it, against this quota."""
    token = QUOTA.set(quota)
    try:
        yield
    finally:
        QUOTA.reset(token)


class CallState:
    """The mutable state of one call in the pipeline."""

    __slots__ = (
        "approval",
        "arguments",
        "asks",
        "attempts",
        "began",
        "call",
        "chunk_bytes",
        "chunks",
        "claims",
        "entry",
        "id",
        "outcome",
        "plan",
        "prepared",
        "quota",
        "ran",
        "started",
        "step",
        "taken",
        "turn",
        "watch",
    )

    def __init__(self, call: Call, call_id: str, started: float | None = None) -> None:
        self.call = call
        self.id = call_id
        self.started = monotonic() if started is None else started
        self.entry: Entry | None = None
        self.plan: Plan | None = None
        # When the tool itself started to run, after waiting for slots and processes.
        self.began = self.started
        self.ran = False
        # The arguments as given; the argument gate adds the defaults.
        self.arguments = call.arguments
        # The verdict of a rule that demands confirmation.
        self.asks: Verdict | None = None
        # The id of a person's approval of exactly this call.
        self.approval = ""
        # How the session counts the call, and in which turn.
        self.step: CountedCall | None = None
        self.turn: Turn | None = None
        # How much the client has been streamed already; after that there is no retry.
        self.chunks = 0
        self.chunk_bytes = 0
        # The quota of its caller, the claims on limits, and the receipt for them.
        self.quota = current_quota()
        self.claims: Sequence[Claim] = ()
        self.taken: Taken | None = None
        self.attempts = 1
        # The return value of `Bound.check`.
        self.prepared: object = None
        self.outcome: Outcome | None = None
        self.watch: Watch | None = None


def mode_of(call: Call) -> str:
    """The mode of a call: its own, else that of its session, else text."""
    if call.mode is not None:
        return call.mode
    return TEXT_MODE if call.session is None else call.session.mode


def make_context(
    state: CallState,
    plan: Plan,
    deadline: float,
    grace: float,
    perform: Perform,
    record: Record,
    deadlines: Deadlines,
    mask: SecretsMask,
) -> Context:
    """Make the Context of a call; `perform` makes the calls of the tool, `record` writes its journal entries."""
    call = state.call
    link = None if call.client is None else PatientLink(call.client, state, plan, deadlines, mask)
    return Context(
        tool=plan.tool,
        call_id=state.id,
        caller=call.caller,
        mode=mode_of(call),
        deadline=deadline,
        seconds=min(plan.seconds, deadline - state.started),
        session=call.session,
        call=partial(_call_from, perform, call, plan.tool, deadline, current_view(), state.quota, link),
        audit=lambda event, data=None: _audit(
            record, state, plan, str(mask.value(event)), mask.value(dict(data or {}))
        ),
        grace=grace,
        client=link,
        prepared=state.prepared,
        mask=mask.value,
    )


def json_size(value: object) -> int:
    """The size of a value as JSON in bytes; falls back to the standard library for integers beyond 64 bit."""
    if isinstance(value, str):
        return len(value)
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return len(json.dumps(value, ensure_ascii=False))


class PatientLink:
    """The connection of a running tool to the client, which stops the clock of the tool while it waits for an answer.

    Everything sent to the client has its secrets masked, also where they span chunks, and the number of chunks is limited.
    A tool that was called by another tool sends no chunks: only its caller gets its value.
    """

    def __init__(
        self, client: ClientLink, state: CallState, plan: Plan, deadlines: Deadlines, mask: SecretsMask
    ) -> None:
        self._is_one_text = joins_text(plan.tool.output_schema)
        self.can_ask = client.can_ask
        self.takes_chunks = client.takes_chunks and state.call.parent is None
        self._mask = mask
        self._chunk_mask: ChunkMask | None = None
        self._client = client
        self._state = state
        self._deadlines = deadlines
        self._hold: Callable[[], AbstractContextManager[None]] = nullcontext
        self._held = ExitStack()
        self._open = 0
        self._waited = self._since = self._left = 0.0

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Report progress to the client."""
        self._client.progress(progress, total, str(self._mask.value(message)))

    def log(self, level: str, data: object, logger: str) -> None:
        """Send the client a log message."""
        self._client.log(level, self._mask.value(data), logger)

    async def chunk(self, value: object) -> None:
        """Send the client a chunk; raises ToolError if it is not JSON, or if there were too many."""
        state, name = self._state, self._state.call.name
        try:
            state.chunk_bytes += json_size(value)
        except (TypeError, ValueError, RecursionError) as problem:
            message = f"{name} yielded what is not JSON: {problem}"
            raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
        state.chunks += 1
        if state.chunks > MAX_CHUNKS or state.chunk_bytes > MAX_CHUNK_BYTES:
            message = f"{name} yielded more than {MAX_CHUNKS} chunks or {MAX_CHUNK_BYTES} bytes; yield less"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
        # Not in the constructor: a secret becomes known when the tool first uses it.
        self._chunk_mask = self._chunk_mask or self._mask.chunks(is_one_text=self._is_one_text)
        for shown in (value,) if self._chunk_mask is None else self._chunk_mask.feed(value):
            await self._client.chunk(shown)

    async def end_chunks(self) -> None:
        """Send the text that was held back because it could have been the beginning of a secret."""
        for shown in () if self._chunk_mask is None else self._chunk_mask.flush():
            await self._client.chunk(shown)

    def waited(self) -> float:
        """Seconds spent waiting for the client so far, also by tools that this one called."""
        return self._waited + (monotonic() - self._since if self._open else 0.0)

    def hold_while_asking(self, hold: Callable[[], AbstractContextManager[None]]) -> None:
        """Enter the context manager of `hold` while questions are open."""
        self._hold = hold

    async def ask(self, question: Question) -> dict[str, object]:
        """The answer of the client."""
        # Of concurrent questions, the first stops the clock of the tool and the last starts it again.
        if not self._open:
            self._stop_clock()
        self._open += 1
        try:
            params = {name: self._mask.value(each) for name, each in question.params.items()}
            return await self._client.ask(replace(question, params=params))
        finally:
            self._open -= 1
            if not self._open:
                self._start_clock()

    def _stop_clock(self) -> None:
        self._held.enter_context(self._hold())
        self._since, watch = monotonic(), self._state.watch
        if watch is not None:
            self._left = watch.deadline - self._since
            self._deadlines.move(watch, self._since + ASK_SECONDS)

    def _start_clock(self) -> None:
        now, watch = monotonic(), self._state.watch
        self._waited += now - self._since
        if watch is not None:
            self._deadlines.move(watch, now + self._left)
        self._held.close()


async def _call_from(
    perform: Perform,
    parent: Call,
    tool: Tool,
    deadline: float,
    view: View | None,
    quota: Quota | None,
    link: PatientLink | None,
    name: str,
    arguments: Mapping[str, object] | None = None,
    /,
    **more: object,
) -> Result:
    """Make a call for a running tool: same caller and view, the grants of that tool, the remaining time."""
    call = Call(
        name=name,
        arguments={**(arguments or {}), **more},
        caller=parent.caller,
        session=parent.session,
        mode=parent.mode,
        deadline=deadline if link is None else deadline + link.waited(),
        grants=tool.requires,
        parent=parent,
        consent=parent.consent,
        # While the called tool waits for its client, this tool waits too.
        client=link,
    )
    # Set explicitly, because a tool may call from a thread or task whose context is that of another caller.
    with seen_through(view), limited_to(quota):
        return await perform(call)


def _audit(record: Record, state: CallState, plan: Plan, event: str, data: object) -> None:
    # Only the pipeline writes `call` events, so that a tool cannot forge one.
    event = f"audit:{event}" if event == CALL else event
    record((event, monotonic(), state.id, plan.address, state.call.caller, 0.0, None, {"data": data}, plan.tool_id))


HOLDS_THE_LOOP_SECONDS = 0.05
# The output schemas that are satisfied by every value of a type.
PLAIN_OUTPUTS: tuple[tuple[dict[str, object], type], ...] = (({"type": "integer"}, int), ({"type": "string"}, str))
CALL_SECONDS = 30.0
RESULT_BYTES = 256_000
# The grace period of tools that run in child processes, to end them at their time limit and report it.
GRACE_SECONDS = 0.5


class CallsSettings(Table, name="calls"):
    """Limits of calls."""

    timeout_ms: int = setting(
        default=30_000,
        read=read_positive,
        opens=False,
        summary="time limit of a call whose tool declares none",
    )
    result_bytes: int = setting(
        default=256_000,
        read=read_positive,
        opens=False,
        summary="how large a value may be before it is stored, to be read in pieces",
    )
    confirmation_seconds: int = setting(
        default=300, read=read_positive, opens=False, summary="how long a confirmation can be used"
    )
    max_steps: int = setting(default=20, read=read_positive, opens=False, summary="how many calls a session may make")


@record
class Policy:
    """The grants and default limits that the operator has set."""

    grants: Grants = field(default_factory=Grants)
    timeout_seconds: float = CALL_SECONDS
    result_bytes: int = RESULT_BYTES


@record
class Plan:
    """A tool prepared for its calls: its validators, its effective limits, the rules that concern it.

    `simple` is the function of a tool whose calls can take the fast path, because only the argument gate could refuse them.
    """

    tool: Tool
    bound: Bound
    rules: tuple[Rule, ...]
    parameters: dict[str, object]
    arguments: Validator
    holds_text: bool
    fill: Callable[[dict[str, object]], dict[str, object]] | None
    output: Validator | None
    seconds: float
    grace: float
    retry: RetryPolicy
    is_inline: bool
    is_async: bool
    simple: Callable[..., Any] | None
    name: str
    address: str
    tool_id: str
    # Template for `meta` of results. Its `source` is the kind of the tool and its bundle.
    meta: dict[str, object]
    # If set, every value of this type satisfies the output schema, so that it need not be validated.
    returns: type | None
    # A successful call that took longer than so many seconds has warnings or costs to report.
    attention: float

    def is_over_budget(self, seconds: float) -> bool:
        """Whether a call of this duration exceeds the latency budget of the tool."""
        budget = self.tool.limits.latency_budget_ms
        return budget is not None and seconds * 1000 > budget

    def warn(self, seconds: float) -> Iterator[str]:
        """Warnings for the operator or the author about a call of this duration."""
        name = self.tool.name
        if self.is_over_budget(seconds):
            yield f"{name} took {seconds * 1000:.0f} ms, its budget is {self.tool.limits.latency_budget_ms} ms"
        if self.is_inline and seconds > self.seconds:
            yield f"{name} took longer than its time limit of {self.seconds:g} s; write @tool(thread=True) to have it ended"
        elif self.is_inline and seconds > HOLDS_THE_LOOP_SECONDS:
            yield f"{name} held everything else up for {seconds * 1000:.0f} ms; write @tool(thread=True) or make it async"
        if self.tool.deprecated:
            yield f"{name} is deprecated"


class Gate(Protocol):
    """One check of a call."""

    name: str

    def concerns(self, plan: Plan) -> bool:
        """Whether the gate could refuse a plain call with valid arguments; if not, the fast path skips it."""

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Allow, or refuse with a reason; consumes nothing."""


class CallLimits(Protocol):
    """Rate limits of tools and quotas of callers, counted across processes; raises ToolError if it cannot count."""

    def judge(self, state: CallState, plan: Plan) -> Verdict:
        """Allow, or deny a call that exceeds a limit; consumes nothing."""

    def admit(self, state: CallState, plan: Plan) -> Verdict:
        """Count the call, or deny it."""

    def give_back(self, state: CallState) -> None:
        """Refund a call that was not made."""

    def charge(self, state: CallState, result: Result | None, seconds: float) -> None:
        """Count what is known only at the end of a call."""

    def describe(self, state: CallState, plan: Plan) -> str:
        """Describe what is left of the limits."""


def prepare(
    tool: Tool,
    *,
    runners: Mapping[str, Runner],
    rules: tuple[Rule, ...],
    gates: tuple[Gate, ...],
    policy: Policy,
) -> Plan:
    """Make the Plan of a tool: validate and compile its schemas, bind its runner, merge its limits."""
    runner = runners.get(tool.kind)
    if runner is None:
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"nothing here runs tools of kind {tool.kind!r}")
    check_schema(tool.parameters, f"{tool.name}: parameters")
    if tool.output_schema is not None:
        check_schema(tool.output_schema, f"{tool.name}: output schema")
    has_text = holds_text(tool.parameters)
    # With text, the argument gate inspects every value; with numbers alone, bounds in the schema suffice.
    parameters = tool.parameters if has_text else bound_integers(tool.parameters)
    bound = runner.bind(tool)
    retry = tool.limits.retry or (REPEAT_IDEMPOTENT if tool.idempotent else ONCE)
    is_inline = isinstance(tool.run, Function) and not bound.is_async
    plan = Plan(
        tool=tool,
        bound=bound,
        rules=rules,
        parameters=parameters,
        arguments=compile_schema(parameters),
        holds_text=has_text,
        fill=fill_defaults(parameters),
        output=None if tool.output_schema is None else compile_schema(tool.output_schema),
        seconds=_seconds(tool, policy),
        grace=0.0 if isinstance(tool.run, Function) else GRACE_SECONDS,
        retry=retry,
        is_inline=is_inline,
        is_async=bound.is_async,
        simple=None,
        name=tool.name,
        address=tool.address,
        tool_id=tool.id,
        meta={
            "callId": "",
            "tool": tool.name,
            "version": tool.version,
            "source": f"{tool.kind}:{tool.bundle}",
            "durationMs": 0.0,
        },
        returns=next((kind for schema, kind in PLAIN_OUTPUTS if schema == tool.output_schema), None),
        attention=_attention(tool, is_inline=is_inline),
    )
    is_simple = retry.max_attempts == 1 and not any(gate.concerns(plan) for gate in gates)
    return replace(plan, simple=bound.function if is_simple else None)


def _seconds(tool: Tool, policy: Policy) -> float:
    if tool.limits.timeout_ms is not None:
        return tool.limits.timeout_ms / 1000
    return policy.timeout_seconds


def _attention(tool: Tool, *, is_inline: bool) -> float:
    """Seconds above which a successful call has something to report; negative for always."""
    if tool.cost is not None or tool.deprecated:
        return -1.0
    held = HOLDS_THE_LOOP_SECONDS if is_inline else math.inf
    return min(held, (tool.limits.latency_budget_ms or math.inf) / 1000)
