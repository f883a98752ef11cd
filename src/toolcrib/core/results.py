"""Validate the output of a call, make its Result, and write it to the journal and the log."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from time import monotonic
from traceback import extract_tb, format_list
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import orjson

from toolcrib.core.execution import classify, copy_error, leave, must_pass
from toolcrib.core.gates import explain_problems, note_empty
from toolcrib.model.call import CALL, Consent
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.result import Decision, Outcome, Result, succeed
from toolcrib.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.call_state import CallState, Plan
    from toolcrib.core.confirmations import Confirmations
    from toolcrib.core.execution import SecretsMask
    from toolcrib.infra.storage.expiring import KeptResults
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import ApprovalStore, Line
    from toolcrib.model.result import Intent, Verdict
    from toolcrib.model.session import Session

    Fields = Mapping[str, object]


logger = logging.getLogger("toolcrib.pipeline")

STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
HEAD_LETTERS = 2_000
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
AT_ONCE = "immediate"
COST = "cost"
# What a tool printed, and the traceback of its failure.
PRINTED = ("stdout", "stderr")
TRACE = "traceback"
MAX_TRACE = 20_000
OURS = __file__.removesuffix("core/results.py")


def settle(plan: Plan, value: object, limit: int) -> object:
    """Validate a value against the output schema; returns it, or a `Whole` if it is longer than `limit` bytes."""
    kind: type = type(value)
    is_plain = (kind is int and MIN_INT64 <= value <= MAX_INT64) or (  # type: ignore[operator]  # it is an int
        kind is str and len(value) <= limit and value.isascii()  # type: ignore[arg-type, attr-defined]  # it is a str
    )
    if is_plain and kind is plan.returns:
        return value
    try:
        if plan.output is not None and not plan.output.is_valid(value):
            raise _broken_promise(plan, explain_problems(plan.output, value, plan.tool.output_schema))
    except (ValueError, TypeError, RecursionError) as problem:
        raise _broken_promise(plan, [str(problem)]) from problem
    return value if is_plain or value is None else bound(plan.tool.name, value, limit)


def _broken_promise(plan: Plan, problems: list[str]) -> ToolError:
    return ToolError(
        Kind.OUTPUT_INVALID,
        f"{plan.tool.name} returned something else than it promises: {'; '.join(problems)}",
        partial_side_effects=True,
        details={"problems": problems},
    )


class Whole(str):
    """The whole text of a value that is too long to return; the caller gets its head and a handle."""

    __slots__ = ()


def bound(name: str, value: object, limit: int) -> object:
    """The value as plain JSON, or a `Whole` if that is longer than `limit` bytes."""
    try:
        value, raw = _encode(value)
    except Exception as problem:  # an object may convert itself, with foreign code
        message = f"{name} returned a {type(value).__name__} that is not JSON: {problem}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
    if len(raw) <= limit:
        return value
    return Whole(value if isinstance(value, str) else raw.decode())


def store_whole(text: str, kept: KeptResults, caller: str, meta: dict[str, object]) -> str:
    """Store a text that is too long and return its head; `meta` gets the handle to read the rest."""
    head = text[:HEAD_LETTERS]
    meta["kept"] = {
        "handle": kept.keep(text, caller),
        "bytes": len(text.encode()),
        "letters": len(text),
        "shown": len(head),
    }
    return head


def _encode(value: object) -> tuple[object, bytes]:
    try:
        raw = orjson.dumps(value, option=STRICT)
    except TypeError:
        value = to_json(value)
        # The standard library and not orjson: it keeps integers beyond 64 bit.
        return value, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    # orjson writes NaN and infinity as null, so only a text with a null can hide one.
    if b"null" in raw:
        to_json(value)
    return value, raw


def deliver(intents: Iterable[Intent], session: Session | None, call_id: str) -> list[str]:
    """Apply the intents of a successful call to its session and pass each to the host; returns warnings.

    Without a session nothing is applied, and only unknown or malformed intents are reported.
    """
    warnings: list[str] = []
    for intent in intents:
        changes = changes_of(intent)
        if isinstance(changes, str):
            warnings.append(changes)
        elif session is not None:
            session.set_state(**changes)
            if not tell_intent(intent, session, call_id):
                warnings.append(f"the host failed to act on the intent {intent.type}; the log has the details")
    return warnings


def changes_of(intent: Intent) -> dict[str, object] | str:
    """The changes of an intent to the state of its session, or why it is ignored."""
    kind: object = intent.type
    change = CHANGES.get(kind) if isinstance(kind, str) else None
    if change is None:
        return f"the intent {kind!r:.80} is unknown and was ignored; known are {', '.join(CHANGES)}"
    return change(intent.fields)


def tell_intent(intent: Intent, session: Session, call_id: str) -> bool:
    """Pass an intent to the host; False if its callback failed."""
    if session.on_intent is None:
        return True
    try:
        returned: object = session.on_intent(intent)
    except Exception:
        logger.exception("call %s: on_intent failed at %s", call_id, intent.type)
        return False
    # The callback is an `async def`, which is not supported: nothing awaits it.
    if type(returned) is CoroutineType:
        returned.close()
        logger.error("call %s: on_intent is async, so %s was not told; write it as def", call_id, intent.type)
        return False
    return True


def _end_voice_session(fields: Fields) -> dict[str, object] | str:
    after = fields.get("after")
    if after is None or isinstance(after, str):
        return {"endVoiceSession": {"after": after or AT_ONCE}}
    return "the intent END_VOICE_SESSION was ignored; its after must be a text such as 'current_turn'"


def _switch(kind: str, key: str) -> Callable[[Fields], dict[str, object] | str]:
    def change(fields: Fields) -> dict[str, object] | str:
        value = fields.get("value")
        if value is None or isinstance(value, bool):
            return {key: value is not False}
        return f"the intent {kind} was ignored; its value must be true or false"

    return change


def _set_pending_message(fields: Fields) -> dict[str, object] | str:
    if fields.get("message") is None:
        return "the intent SET_PENDING_MESSAGE was ignored; it has no message"
    return {"pendingMessage": fields["message"]}


CHANGES: dict[str, Callable[[Fields], dict[str, object] | str]] = {
    "END_VOICE_SESSION": _end_voice_session,
    "SUPPRESS_AUDIO": _switch("SUPPRESS_AUDIO", "suppressAudio"),
    "SUPPRESS_TRANSCRIPT": _switch("SUPPRESS_TRANSCRIPT", "suppressTranscript"),
    "SET_PENDING_MESSAGE": _set_pending_message,
}


class ResultMaker:
    """Makes the Result of a call: succeeded, failed or refused."""

    def __init__(
        self,
        record: Callable[[Line], None],
        confirmations: Callable[[], Confirmations],
        approvals: Callable[[], ApprovalStore],
        kept: Callable[[], KeptResults],
        result_bytes: int,
        mask: SecretsMask,
    ) -> None:
        self._mask = mask
        self._record = record
        self._confirmations = confirmations
        self._approvals = approvals
        self._kept = kept
        self._result_bytes = result_bytes

    def finish(self, state: CallState, plan: Plan, answer: object) -> Result:
        """Make the Result of what a runner returned, after validating it against the output schema."""
        try:
            is_final = False
            if isinstance(answer, Outcome):
                state.outcome = self._masked(answer)
                state.began += answer.waited  # the latency budget covers only the tool's own time
                if answer.error is not None:
                    raise copy_error(answer.error, value=answer.value)
                is_final = answer.stands_in
                answer = answer.value
            value = answer if is_final else settle(plan, answer, self._result_bytes)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - an object may convert itself, with foreign code
            return self.fail(problem, state)
        return self.succeed(state, plan, value)

    def succeed(self, state: CallState, plan: Plan, value: object) -> Result:
        """Make and record the Result of a success; a value that is too large is stored, and fetched with its handle."""
        seconds, call = monotonic() - state.started, state.call
        value = self._mask.value(value)
        meta = {**plan.meta, "callId": state.id, "durationMs": seconds * 1000}
        if state.outcome is not None:
            meta |= state.outcome.meta
        if call.session is not None and call.session.max_calls is not None:
            meta["steps"] = {"used": call.session.calls, "max": call.session.max_calls}
        facts = _facts_of(state, seconds)
        note_empty(state, plan, value)
        if type(value) is Whole:
            value = self._keep(value, call, meta)
        _tell(state, plan, meta, facts)
        intents = state.outcome.intents if state.outcome else ()
        if intents:
            _warn(deliver(intents, call.session, state.id), state, meta)
        self._record(
            (CALL, state.started, state.id, plan.address, call.caller, seconds, None, facts or None, plan.tool_id)
        )
        logger.info("call %s: %s succeeded after %.1f ms", state.id, plan.name, seconds * 1000)
        return succeed(value, intents, meta)

    def refuse(self, gate: str, verdict: Verdict, state: CallState, plan: Plan) -> Result:
        """Make and record the Result of a call that a gate refused."""
        error = verdict.to_error(gate)
        if verdict.decision is Decision.CONFIRM:
            # A tool that calls another must not get a token with which it could confirm the call itself.
            if state.call.parent is None and state.call.consent is not Consent.PERSON:
                error = self._with_token(error, state, plan)
            if state.call.consent is not Consent.TOKEN:
                error = self._with_approval(error, verdict, state, plan)
        return self.answer(error, state)

    def fail(self, problem: BaseException, state: CallState) -> Result:
        """Make and record the Result of a call that raised; re-raises what is meant for the host program."""
        name = state.call.name
        problem = leave(state.watch, problem, name, state.started)
        error = classify(problem, name)
        if must_pass(problem):
            self.answer(error, state)
            try:
                raise problem
            finally:
                # Its traceback references this frame: a reference cycle, which would keep the objects of the call alive.
                del problem
        if error.kind is Kind.INTERNAL and not isinstance(problem, ToolError):
            raised = self._mask.raised(problem)
            logger.error("call %s: %s failed unexpectedly", state.id, name, exc_info=raised)
            # Without its message, which may hold arguments, and without our own frames.
            # Python makes a RuntimeError of a StopIteration that leaves a coroutine.
            raised = raised.__cause__ if isinstance(raised.__cause__, StopIteration) else raised
            frames = [frame for frame in extract_tb(raised.__traceback__) if not frame.filename.startswith(OURS)]
            error.trace = "".join([*format_list(frames), type(raised).__name__])[-MAX_TRACE:]
        return self.answer(error, state)

    def answer(self, error: ToolError, state: CallState) -> Result:
        """Make and record the Result of a failure."""
        seconds, plan, call = monotonic() - state.started, state.plan, state.call
        # The name of an unknown tool may be anything that a caller sends, even a secret.
        wanted = self._mask.value(call.name) if plan is None else call.name
        name, tool_id = (str(wanted), "") if plan is None else (plan.address, plan.tool_id)
        meta: dict[str, object] = {"callId": state.id, "tool": wanted, "durationMs": seconds * 1000}
        if plan is not None:
            meta |= {"tool": plan.name, "version": plan.tool.version, "source": plan.meta["source"]}
        if state.outcome is not None:
            meta |= state.outcome.meta
        error = self._mask.error(error)
        value = self._partial(error, call, meta)
        facts = _facts_of(state, seconds)
        if error.trace:
            facts[TRACE] = error.trace
        if plan is not None and state.ran:
            _tell(state, plan, meta, facts)
        self._record((CALL, state.started, state.id, name, call.caller, seconds, error.kind, facts or None, tool_id))
        logger.info("call %s: %s failed after %.1f ms: %s", state.id, name, seconds * 1000, error.kind)
        intents = state.outcome.intents if state.outcome else ()
        return Result(value=value, error=error, intents=intents, meta=meta, refused=plan is None or not state.ran)

    def _masked(self, outcome: Outcome) -> Outcome:
        """Mask all but value and error, which are masked when they are final."""
        mask: Callable[[Any], Any] = self._mask.value
        intents = tuple(replace(intent, fields=mask(intent.fields)) for intent in outcome.intents)
        return replace(outcome, intents=intents, meta={name: mask(fact) for name, fact in outcome.meta.items()})

    def _with_token(self, error: ToolError, state: CallState, plan: Plan) -> ToolError:
        """Add a confirmation token to a refusal; if none can be issued, say why."""
        try:
            token, expiry = self._confirmations().issue(plan.tool, state.arguments, state.call)
        except ToolError as problem:
            return error.replace(cure=error.cure.then(problem.as_cure()))
        return error.replace(details={**error.details, "confirmation": token, "expiresAt": expiry})

    def _with_approval(self, error: ToolError, verdict: Verdict, state: CallState, plan: Plan) -> ToolError:
        """Store the call for approval and add its id to the refusal; if it cannot be stored, say why."""
        try:
            approval = self._approvals().file(plan.tool, plan.bound, state.arguments, state.call, verdict)
        except ToolError as problem:
            return error.replace(cure=error.cure.then(problem.as_cure()))
        facts = {"approval": approval.id, "approvalExpiresAt": int(approval.expires_at)}
        command = f"crib approvals approve {approval.id}"
        who = Cure(f"that person runs: {command}", f"it waits as {approval.id}", model=f"the operator runs: {command}")
        return error.replace(cure=error.cure.then(who), details={**error.details, **facts})

    def _partial(self, error: ToolError, call: Call, meta: dict[str, object]) -> object:
        """The partial value of a failed call, limited in size like any value; None if it is not JSON."""
        if error.value is None:
            return None
        try:
            value = self._mask.value(bound(call.name, error.value, self._result_bytes))
        except ToolError as problem:
            meta["warnings"] = [problem.message]
            return None
        return self._keep(value, call, meta) if type(value) is Whole else value

    def _keep(self, whole: str, call: Call, meta: dict[str, object]) -> str:
        """Store a value that is too large; if that fails, return only its head and warn in `meta`."""
        try:
            return store_whole(whole, self._kept(), call.caller, meta)
        except (ToolError, OSError, TypeError, ValueError) as problem:
            logger.warning("a result of %s could not be stored: %s", call.name, problem)
            meta["warnings"] = [f"the rest of {len(whole)} letters could not be stored"]
            return whole[:HEAD_LETTERS]


def _facts_of(state: CallState, seconds: float) -> dict[str, object]:
    """The further facts of a journal entry: refused or not, cost, whether over budget, and what the tool printed."""
    if state.plan is None or not state.ran:
        return {"refused": True}
    # The audit trail has who approved it, and why, under this id.
    facts: dict[str, object] = {"approval": state.approval} if state.approval else {}
    cost = state.plan.tool.cost
    if cost is not None:
        facts[COST] = {"amount": cost.of(seconds), "currency": cost.currency}
    if state.plan.is_over_budget(monotonic() - state.began):
        facts["overBudget"] = True
    for stream in PRINTED:
        if state.outcome is not None and (written := state.outcome.meta.get(stream)):
            facts[stream] = written
    return facts


def _tell(state: CallState, plan: Plan, meta: dict[str, object], facts: dict[str, object]) -> None:
    """Add attempts, cost and warnings to the `meta` of a call that ran."""
    if state.attempts > 1:
        meta["attempts"] = state.attempts
    if COST in facts:
        meta[COST] = facts[COST]
    _warn(plan.warn(monotonic() - state.began), state, meta)


def _warn(warnings: Iterable[str], state: CallState, meta: dict[str, object]) -> None:
    """Log warnings and append them to those in `meta`."""
    if new := list(warnings):
        logger.warning("call %s: %s", state.id, "; ".join(new))
        kept = meta.get("warnings")
        meta["warnings"] = [*(kept if isinstance(kept, list) else []), *new]
