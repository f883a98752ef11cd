"""Store calls that need a person's approval, record the decision once, and let an approved call run once.

Each fact is a document of its own that is only ever created: the question, the decision about it, and its use. So two
processes that decide, or two calls that use the same approval, cannot both win, and nothing is lost when one of them is killed.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import hmac
import math
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from toolcrib.core.confirmations import bound_to
from toolcrib.core.sources import current_view
from toolcrib.features.approvals.run_parts import digest_parts, preview_call, show_parts
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.lib.redaction import HIDDEN, hide_secrets
from toolcrib.model.approval import Approval, State
from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.lib.run_part import RunPart
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Bound, Store
    from toolcrib.model.result import Verdict
    from toolcrib.model.tool import Tool

    # The class below has a method `list`, which hides the type.
    Found = list[Approval]

SPACE = "approvals"
QUESTIONS = f"{SPACE}/questions"
DECISIONS = f"{SPACE}/decisions"
USES = f"{SPACE}/uses"
# What would run is stored apart from the question, because it is large and lists do not need it.
RUNS = f"{SPACE}/runs"
PARTS, ABOUT = "parts", "about"

# Keys of stored documents beside those of the approval: who has the token of the caller, and the signature.
HOLDER, SEAL = "holder", "seal"
FORGED: Mapping[str, Any] = {
    "approved": False,
    "by": "unknown",
    "at": None,
    "note": "the decision was not written by this project",
}

STAMP_LETTERS = 8
DIGEST_LETTERS = 16
RANDOM_BYTES = 4
ID = re.compile(rf"[0-9a-f]{{{STAMP_LETTERS + DIGEST_LETTERS + 2 * RANDOM_BYTES}}}")
MAX_ARGUMENT_BYTES = 256_000
MAX_NOTE = 1_000
MAX_BY = 200
POLL_SECONDS = 0.2
SWEEP_SECONDS = 60.0
# The characters of keys, tokens and user names in URLs; a command needs others.
_CREDENTIAL = re.compile(r"[\w.~+/=@:%-]+")
# How long a decision or a use is stored after the approval expired.
KEPT_SECONDS = 86_400


class Approvals:
    """The approvals of a project; many processes may share them.

    `hide` masks the values of stored secrets. At most `max_pending` approvals wait at once, of one caller a tenth of them.
    `find` returns the tool of an address, if the current caller may see it; the caller is shown no approvals of other tools.
    `holder_of` says who has the token of a caller; a holder of two tokens cannot decide with one about the calls of the other.
    `tell` is called with each new approval and the holder.
    Stored documents are signed with the key of the project: one without a valid signature approves nothing.
    """

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        key: Callable[[], bytes],
        hide: Callable[[object], object],
        seconds: float,
        max_pending: int,
        find: Callable[[str], object | None] = lambda _: None,
        holder_of: Callable[[str], str] = lambda _: "",
        tell: Callable[[Approval, str], None] | None = None,
        record: Recorder = unrecorded,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # Functions, because store and key of a project are created on first use.
        self._store = store
        self._key = key
        self._hide = hide
        self._seconds = seconds
        self._max_pending = max_pending
        self._find_tool = find
        self._holder_of = holder_of
        self._tell = tell
        self._record = record
        self._clock = clock
        self._swept = 0.0

    # --- the call ------------------------------------------------------------------------------------------------------

    def file(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call, verdict: Verdict) -> Approval:
        """Store a pending approval for a call, or return the one that is pending already for exactly this call.

        Raises LIMIT_EXCEEDED when too many wait, or when the arguments are too large to be shown to a person.
        """
        self._sweep()
        shown = self._masked(tool, arguments)
        parts = preview_call(tool, bound, shown, call)
        digest = self._digest(tool, arguments, call, parts)
        waiting = next((found for found in self._with_digest(digest) if found.state is State.PENDING), None)
        if waiting is not None:
            return waiting
        if len(orjson.dumps(shown)) > MAX_ARGUMENT_BYTES:
            message = (
                f"the arguments of {tool.name} are larger than {MAX_ARGUMENT_BYTES} bytes; no person could check them"
            )
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        self._refuse_too_many(call.caller)
        now = self._clock()
        expires_at = float(int(now + self._seconds))
        approval = Approval(
            id=f"{int(expires_at):0{STAMP_LETTERS}x}{digest[:DIGEST_LETTERS]}{os.urandom(RANDOM_BYTES).hex()}",
            tool=tool.address,
            version=tool.version,
            content_hash=tool.content_hash,
            arguments=shown,
            digest=digest,
            caller=call.caller,
            reason=str(verdict.details.get("reason", verdict.reason)),
            rule=verdict.rule,
            created_at=now,
            expires_at=expires_at,
        )
        # Before the question, which cannot be approved without it.
        holder = self._holder_of(call.caller)
        run = {PARTS: show_parts(parts, self._hide), ABOUT: _describe(tool, holder)}
        self._store_signed(_key(RUNS, approval.id), run)
        self._store_signed(_key(QUESTIONS, approval.id), {**_facts(approval), HOLDER: holder})
        if self._tell is not None:
            self._tell(approval, holder)
        return approval

    def find(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call) -> Approval | None:
        """The newest approval of exactly this call that is approved, refused or pending, or None; does not use it up.

        The runner is asked again what would run: an approval of anything else is not found.
        """
        parts = preview_call(tool, bound, self._masked(tool, arguments), call)
        found = self._with_digest(self._digest(tool, arguments, call, parts))
        # A decision counts before a pending approval of the same call.
        order = (State.APPROVED, State.REFUSED, State.PENDING)
        open_ones = [approval for approval in found if approval.state in order and not self._is_expired(approval)]
        return min(open_ones, key=lambda one: (order.index(one.state), -one.created_at), default=None)

    def use(self, approval_id: str) -> bool:
        """Use an approval up; False if another call, in any process, has used it already."""
        return self._store().create(_key(USES, approval_id), b"{}")

    # --- the person ----------------------------------------------------------------------------------------------------

    def list(self, state: State | None = State.PENDING) -> Found:
        """The approvals in a state, or in any state; the oldest first."""
        chosen = [found for found in self._all() if (state is None or found.state is state) and self._is_shown(found)]
        return sorted(chosen, key=lambda approval: (approval.created_at, approval.id))

    def show(self, approval_id: str) -> Approval:
        """The approval of that id, with what exactly would run; raises NOT_FOUND."""
        approval = self._read(approval_id) if ID.fullmatch(approval_id) else None
        if approval is None or not self._is_shown(approval):
            cure = Cure("see: crib approvals list --all", "see: GET /approvals")
            raise ToolError(Kind.NOT_FOUND, f"there is no approval {approval_id[:80]!r}", cure=cure)
        runs = self._read_signed(_key(RUNS, approval_id))
        return approval if runs is None else replace(approval, runs=tuple(runs[PARTS]), about=runs.get(ABOUT, {}))

    def approve(self, approval_id: str, *, by: str = "", note: str = "") -> Approval:
        """Let the call run once; raises CONFLICT if it is not pending, and AUTH if `by` is the caller itself.

        Without `by` the operating-system user decides, who is the caller of no call.
        """
        return self._decide(approval_id, approved=True, by=by or _local_user(), note=note)

    def refuse(self, approval_id: str, *, by: str = "", note: str = "") -> Approval:
        """Refuse the call until the approval expires; raises the same errors as `approve`."""
        return self._decide(approval_id, approved=False, by=by or _local_user(), note=note)

    # --- waiting -------------------------------------------------------------------------------------------------------

    async def wait(self, approval_id: str, seconds: float) -> Approval:
        """Wait until the approval is decided or expired, or for that many seconds; returns its current state."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            approval = self.show(approval_id)
            left = end - loop.time()
            if approval.state is not State.PENDING or left <= 0:
                return approval
            await asyncio.sleep(min(POLL_SECONDS, left))

    async def watch(self) -> AsyncGenerator[Approval, None]:
        """Yield the pending approvals, then each approval that is stored or changes its state."""
        known: dict[str, Approval] | None = None
        generation, next_expiry = "", 0.0
        while True:
            current = self._store().generation(SPACE)
            # Nothing is written when an approval expires, so the time is checked as well.
            if known is None or current != generation or self._clock() > next_expiry:
                found = {approval.id: approval for approval in await asyncio.to_thread(self.list, None)}
                for approval in found.values():
                    if approval.state is State.PENDING if known is None else _is_changed(approval, known):
                        yield approval
                generation, known = current, found
                pending = (approval for approval in found.values() if approval.state is State.PENDING)
                next_expiry = min((approval.expires_at for approval in pending), default=math.inf)
            await asyncio.sleep(POLL_SECONDS)

    # --- documents -----------------------------------------------------------------------------------------------------

    def _decide(self, approval_id: str, *, approved: bool, by: str, note: str) -> Approval:
        approval = self.show(approval_id)
        if by == approval.caller:
            message = f"{by} made the call and cannot decide about it; another person has to"
            raise ToolError(Kind.AUTH, message)
        if self._is_same_holder(approval, by):
            message = "the token that made the call has the same name as this one, so both have one holder; another person has to decide"
            raise ToolError(Kind.AUTH, message)
        if len(note) > MAX_NOTE or len(by) > MAX_BY:
            raise ToolError(Kind.VALIDATION, f"note: write at most {MAX_NOTE} characters")
        if approved and approval.state is State.PENDING and approval.runs is None:
            message = f"what {approval.tool} would run was not stored by this project; refuse it, and have the call made again"
            raise ToolError(Kind.CONFLICT, message)
        if approval.state is not State.PENDING:
            raise _decided_already(approval)
        what = "call.approved" if approved else "call.refused"
        facts = {"tool": approval.tool, "caller": approval.caller, "digest": approval.digest}
        with self._record(what, approval.id, why=note, actor=(by, self._holder_of(by)), facts=facts):
            document = {"approved": approved, "by": by, "at": self._clock(), "note": note}
            self._store_signed(_key(DECISIONS, approval.id), document)
            # Of two concurrent decisions the first counts.
            decided = self.show(approval_id)
            if decided.decided_by != by or (decided.state is not State.REFUSED) is not approved:
                raise _decided_already(decided)
        return decided

    def _all(self) -> Found:
        return [approval for approval in map(self._read, self._ids()) if approval is not None]

    def _is_shown(self, approval: Approval) -> bool:
        return current_view() is None or self._find_tool(approval.tool) is not None

    def _is_same_holder(self, approval: Approval, by: str) -> bool:
        question = self._read_signed(_key(QUESTIONS, approval.id))
        holder, other = ("" if question is None else str(question[HOLDER])), self._holder_of(by)
        return bool(holder) and holder.casefold() == other.casefold()

    def _store_signed(self, key: str, document: Mapping[str, object]) -> None:
        """Create a document with a signature that is valid for this key only; an existing document stays."""
        signed = {**document, SEAL: self._sign(key, document)}
        self._store().create(key, orjson.dumps(signed, option=orjson.OPT_INDENT_2))

    def _read_signed(self, key: str) -> dict[str, Any] | None:
        """Read a document; None if it does not exist or has no valid signature for this key."""
        data = self._store().get(key)
        found = None if data is None else orjson.loads(data)
        if not isinstance(found, dict) or not isinstance(seal := found.pop(SEAL, None), str) or not seal.isascii():
            return None
        return found if hmac.compare_digest(seal, self._sign(key, found)) else None

    def _sign(self, key: str, document: Mapping[str, object]) -> str:
        text = orjson.dumps([key, document], option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key(), b"approval document" + text, hashlib.sha256).hexdigest()

    def _with_digest(self, digest: str) -> Found:
        part = slice(STAMP_LETTERS, STAMP_LETTERS + DIGEST_LETTERS)
        ids = [found for found in self._ids() if found[part] == digest[:DIGEST_LETTERS]]
        approvals = (self._read(found) for found in ids)
        return [approval for approval in approvals if approval is not None and approval.digest == digest]

    def _ids(self) -> Iterable[str]:
        for key in self._store().keys(f"{QUESTIONS}/"):
            found = key.removeprefix(f"{QUESTIONS}/").removesuffix(".json")
            if ID.fullmatch(found):
                yield found

    def _read(self, approval_id: str) -> Approval | None:
        try:
            question = self._read_signed(_key(QUESTIONS, approval_id))
            if question is None:
                return None
            del question[HOLDER]
            return self._with_state(Approval(**{**question, "id": approval_id, "state": State.PENDING}))
        except (ValueError, TypeError, KeyError):
            # A document of another version or program approves nothing.
            return None

    def _with_state(self, approval: Approval) -> Approval:
        place = _key(DECISIONS, approval.id)
        if self._store().stamp(place) is not None:
            # A decision without a valid signature counts as a refusal, and cannot be replaced.
            decision = self._read_signed(place) or FORGED
            state = State.APPROVED if decision["approved"] is True else State.REFUSED
            approval = replace(
                approval, state=state, decided_by=decision["by"], decided_at=decision["at"], note=decision["note"]
            )
        if approval.state is State.APPROVED and self._store().stamp(_key(USES, approval.id)) is not None:
            return replace(approval, state=State.USED)
        is_open = approval.state in {State.PENDING, State.APPROVED}
        return replace(approval, state=State.EXPIRED) if is_open and self._is_expired(approval) else approval

    def _is_expired(self, approval: Approval) -> bool:
        return approval.expires_at < self._clock()

    def _refuse_too_many(self, caller: str) -> None:
        pending = [approval for approval in self._all() if approval.state is State.PENDING]
        own = sum(approval.caller == caller for approval in pending)
        if len(pending) >= self._max_pending or own >= max(1, self._max_pending // 10):
            whose = "of this caller " if len(pending) < self._max_pending else ""
            message = f"{own if whose else len(pending)} calls {whose}wait for approval already"
            cure = Cure("decide some: crib approvals list", "ask the operator to decide some")
            raise ToolError(Kind.LIMIT_EXCEEDED, message, cure=cure, retryable=True)

    def _masked(self, tool: Tool, arguments: dict[str, object]) -> dict[str, object]:
        """The arguments as a person sees them, with secrets masked."""
        shown = self._hide(_mask_secrets(arguments, tool))
        return shown if isinstance(shown, dict) else {}

    def _digest(self, tool: Tool, arguments: dict[str, object], call: Call, parts: Iterable[RunPart]) -> str:
        """Bind the approval to the exact arguments and to what would run; the hash of the tool does not cover its executors."""
        bound = bound_to(tool, arguments, call) + digest_parts(parts)
        return hmac.new(self._key(), b"approval" + bound, hashlib.sha256).hexdigest()

    def _sweep(self) -> None:
        """Remove what expired more than a day ago; an id begins with the time at which it expires."""
        now = self._clock()
        if now - self._swept < SWEEP_SECONDS:
            return
        self._swept = now
        limit = f"{int(max(0, now - KEPT_SECONDS)):0{STAMP_LETTERS}x}"
        for key in self._store().keys(f"{SPACE}/"):
            if key.rpartition("/")[2][:STAMP_LETTERS] < limit:
                self._store().remove(key)


def _describe(tool: Tool, holder: str) -> dict[str, object]:
    """The words of the tool's author at the time of the question, and who asks."""
    named = tool.parameters.get("properties")
    schemas = named if isinstance(named, dict) else {}
    return {
        "title": tool.display_name or tool.name,
        "description": tool.description,
        "sideEffects": str(tool.side_effects or ""),
        # In the order of the author, also those without a text.
        "arguments": {
            name: str(schema.get("description") or "") for name, schema in schemas.items() if isinstance(schema, dict)
        },
        "asker": holder,
    }


def _decided_already(approval: Approval) -> ToolError:
    return ToolError(Kind.CONFLICT, f"the approval {approval.id} is {approval.state} already")


def _local_user() -> str:
    return f"user:{getpass.getuser()}"


def _mask_secrets(arguments: dict[str, object], tool: Tool) -> dict[str, object]:
    """Mask the secrets in arguments, and nothing else: a caller must not be able to hide what would run.

    A parameter that the author of the tool named like a secret is masked. Nested names and texts come from the caller;
    there a value is masked only if all of it may be a credential.
    """
    hidden = hide_secrets(arguments)
    if not isinstance(hidden, dict):
        return arguments
    named = tool.parameters.get("properties")
    secret = {name for name in named if hidden.get(name) == HIDDEN} if isinstance(named, dict) else set()
    return {name: HIDDEN if name in secret else _unmask(value, hidden[name]) for name, value in arguments.items()}


def _unmask(value: object, hidden: object) -> object:
    if isinstance(value, dict) and isinstance(hidden, dict):
        return {name: _unmask(member, hidden[name]) for name, member in value.items()}
    if isinstance(value, list | tuple) and isinstance(hidden, list):
        return [_unmask(*pair) for pair in zip(value, hidden, strict=True)]
    if isinstance(value, str) and isinstance(hidden, str) and not _masks_only_credentials(value, hidden):
        return value
    return hidden


def _masks_only_credentials(text: str, hidden: str) -> bool:
    """Whether all masked parts of the text may be credentials."""
    beginning, *kept = hidden.split(HIDDEN)
    end = len(beginning)
    if not text.startswith(beginning):
        return False
    for number, part in enumerate(kept, 1):
        start, found = end, text.find(part, end) if part or number < len(kept) else len(text)
        end = found + len(part)
        if found < 0 or not _CREDENTIAL.fullmatch(text[start:found]):
            return False
    return end == len(text)


def _is_changed(approval: Approval, known: Mapping[str, Approval]) -> bool:
    before = known.get(approval.id)
    return before is None or before.state is not approval.state


def _key(folder: str, approval_id: str) -> str:
    return f"{folder}/{approval_id}.json"


def _facts(approval: Approval) -> dict[str, object]:
    fields = ("tool", "version", "content_hash", "arguments", "digest", "caller", "reason", "rule")
    return {name: getattr(approval, name) for name in (*fields, "created_at", "expires_at")}
