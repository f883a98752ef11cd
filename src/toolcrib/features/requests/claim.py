"""Hold a claim while a request is read and its candidate proved and published; for a Builder, and for a person who delivers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.requests import candidate as candidates
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.gate.judge import find_unprovable, judge, refuse_beyond
from toolcrib.lib.audit_trail import unrecorded
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.features.requests.candidate import Candidate
    from toolcrib.features.requests.gate import OpenTrial
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Allowance, Claim, Made, ToolRequest

    Say = Callable[[str], None]

logger = logging.getLogger("toolcrib.builder")

# About a screenful; the whole text is in the history.
MAX_REASON = 4_000
# How often to check whether the request was cancelled.
POLL_SECONDS = 0.5
RENEWALS = 3
# A history keeps only its latest events: progress of a maker must not push out the others.
MAX_PROGRESS_NOTES = 100
MAX_PROGRESS_LETTERS = 500
MAX_NOTE = 8_000
RETRY_SECONDS = 0.2
LONGEST_RETRY_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The verdict of the gate on a candidate: only one that `passed` may be published.

    `candidate` holds the bytes that were checked; None if they could not be read. `unprovable` means that another attempt
    cannot succeed.
    """

    candidate: Candidate | None = None
    passed: bool = False
    complaints: tuple[str, ...] = ()
    unprovable: bool = False

    @property
    def reason(self) -> str:
        """Why it may not be published."""
        return "\n".join(self.complaints)[:MAX_REASON]


@dataclass(frozen=True, kw_only=True)
class ProofSetup:
    """Where a candidate is proved and published, and what the operator allows there.

    `tools` is the folder of built tools. `exists` is the address of the registered tool of a name, or empty.
    `capabilities` are those that a request may ask for, written as grants are; `unproved` lets tools go live that need a
    network and come without recorded answers.
    """

    trial: OpenTrial
    tools: Path
    exists: Callable[[str], str]
    seconds_per_call: float
    capabilities: frozenset[str] = frozenset()
    unproved: bool = False
    record: Recorder = unrecorded

    async def prove(self, path: Path, request: ToolRequest, allowance: Allowance, deadline: float, say: Say) -> Proof:
        """Read a candidate and have the gate check it; one that cannot be read is refused too.

        `deadline` is a reading of `time.monotonic`. Raises ToolError only for what is not the candidate's fault.
        """
        try:
            candidate = await asyncio.to_thread(candidates.read_candidate, path, request)
        except ToolError as problem:
            return Proof(complaints=(problem.message,))
        judgement = await judge(
            candidate,
            request,
            self.trial,
            allowance=allowance,
            seconds_per_call=self.seconds_per_call,
            deadline=deadline,
            say=say,
        )
        return Proof(
            candidate=candidate,
            passed=judgement.passed,
            complaints=tuple(map(str, judgement.complaints)),
            unprovable=judgement.unprovable,
        )

    def publish(self, candidate: Candidate, request: ToolRequest, allowance: Allowance) -> Made:
        """Put the candidate into the project."""
        with self.record("tool.published", request.name, facts={"request": request.id}):
            return candidates.publish(candidate, request, project_tools=self.tools, allowance=allowance)

    def published(self, request: ToolRequest, allowance: Allowance) -> Made | None:
        """What was already published for a request."""
        return candidates.find_published(request, project_tools=self.tools, allowance=allowance)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTask:
    """A request that can be built, with what the operator adds to it.

    `made` is what a Builder published for it before it crashed.
    """

    request: ToolRequest
    allowance: Allowance
    made: Made | None = None


class Lease:
    """Renews a claim while the `async with` lasts. `lost` is set once another Builder has it, or the request is over.

    A queue that cannot be reached is retried until the lease has expired; then the claim counts as lost, because another
    Builder may have it. `listener` is called with every note at once, also with those that the queue never gets.
    """

    def __init__(self, queue: Queue, claim: Claim, listener: Callable[[str, str], None] | None = None) -> None:
        self.queue = queue
        self.claim = claim
        self._listener = listener or (lambda _step, _text: None)
        self.lost = asyncio.Event()
        self._notes: deque[tuple[str, str]] = deque()
        self._progress_notes = 0
        self._wake = asyncio.Event()
        self._turns = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._keeping: asyncio.Task[None] | None = None
        self._count_from(monotonic())

    async def __aenter__(self) -> Self:
        self._keeping = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keeping is not None:
            await drop(self._keeping)

    def note(self, step: str, text: str = "") -> None:
        """Write an event into the history, in the order of the calls; any thread may call this, and it does not block."""
        self._notes.append((step, text[:MAX_NOTE]))
        self._listener(step, text[:MAX_NOTE])
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    def say(self, text: str) -> None:
        """Note progress of a maker or the gate, up to a limit."""
        self._progress_notes += 1
        if self._progress_notes <= MAX_PROGRESS_NOTES:
            self.note("progress", str(text)[:MAX_PROGRESS_LETTERS])

    async def is_ours(self) -> bool:
        """Renew the claim now; whether the queue confirms that it is still held."""
        self._renew_at = 0.0
        delay = RETRY_SECONDS
        while not await self._look() and not self.lost.is_set():
            await self._pause(delay)
            delay = min(2 * delay, LONGEST_RETRY_SECONDS)
        return not self.lost.is_set()

    async def end(self, act: Callable[[], bool], patience: float | None = None) -> bool:
        """Report the end, after all notes; retried while the queue cannot be reached and the claim may be ours.

        False if it is not, or if the queue could not be reached: then the lease expires.
        """
        over_at = monotonic() + (self.claim.seconds if patience is None else patience)
        delay = RETRY_SECONDS
        while True:
            try:
                if await self._look():
                    return await asyncio.to_thread(act)
            except ToolError as problem:
                logger.warning("%s: its end could not be reported: %s", self.claim.id, problem.message)
                if problem.kind is not Kind.TRANSIENT:
                    return False
            if self.lost.is_set() or monotonic() + delay > over_at:
                return False
            await self._pause(delay)
            delay = min(2 * delay, LONGEST_RETRY_SECONDS)

    async def _keep(self) -> None:
        while not self.lost.is_set():
            await self._pause(min(POLL_SECONDS, self.claim.seconds / RENEWALS))
            await self._look()

    async def _look(self) -> bool:
        """Write notes, renew if due, check whether the claim is still ours; False if not, or if the queue did not answer."""
        async with self._turns:
            self._wake.clear()
            try:
                if not await asyncio.to_thread(self._write_and_renew):
                    self.lost.set()
            except Exception as problem:  # noqa: BLE001 - a background loop; a lease that cannot be renewed expires
                logger.warning("%s: the claim could not be renewed: %s", self.claim.id, problem)
                if monotonic() > self._held_until:
                    self.lost.set()
                return False
        return not self.lost.is_set()

    def _write_and_renew(self) -> bool:
        """Write the waiting notes, and renew the claim if that is due; whether it is still ours."""
        while self._notes:
            if not self._write(*self._notes[0]):
                return False
            self._notes.popleft()
        if monotonic() < self._renew_at:
            filed = self.queue.get(self.claim.id)
            return filed is not None and filed.status is Status.BUILDING
        now = monotonic()
        if not self.queue.renew(self.claim):
            return False
        self._count_from(now)
        return True

    def _write(self, step: str, text: str) -> bool:
        try:
            return self.queue.note(self.claim, step, text)
        except ToolError as problem:
            if problem.kind is Kind.TRANSIENT:
                raise
            # A note that the queue refuses must not prevent the renewal.
            logger.warning("%s: %s could not be noted: %s", self.claim.id, step, problem.message)
            return True

    def _count_from(self, now: float) -> None:
        self._held_until = now + self.claim.seconds
        self._renew_at = now + self.claim.seconds / RENEWALS

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


def read_task(claim: Claim, setup: ProofSetup) -> BuildTask:
    """Read the claimed request; raises ToolError with the reason if it cannot be built."""
    request = read_request(claim.text)
    # The published package was proved, and a maker would not write the same bytes again.
    if made := setup.published(request, claim.allowance):
        return BuildTask(request=request, allowance=claim.allowance, made=made)
    if address := setup.exists(request.name):
        message = f"{address} is registered already: call it, or request a tool of another name"
        raise ToolError(Kind.CONFLICT, message, details={"tool": address})
    allowance = replace(claim.allowance, unproved=claim.allowance.unproved or setup.unproved)
    refuse_beyond(request, allowance, setup.capabilities)
    # Fail early if the request is untestable.
    if unprovable := find_unprovable(request, allowance):
        raise ToolError(Kind.PERMANENT, unprovable.text)
    return BuildTask(request=request, allowance=allowance)


async def publish(lease: Lease, setup: ProofSetup, task: BuildTask, proof: Proof) -> Made | None:
    """Publish a proved candidate and mark its request as ready; None if the claim was lost before."""
    if proof.candidate is None or not proof.passed or not await lease.is_ours():
        return None
    made = await asyncio.to_thread(setup.publish, proof.candidate, task.request, task.allowance)
    lease.note("published", made.path)
    return await announce(lease, made)


async def announce(lease: Lease, made: Made) -> Made | None:
    """Mark the request as ready; None if the claim is lost.

    The package stays then: it is complete and proved, and it names its request. The next holder of the claim finds it and
    announces it, or fails with CONFLICT if it belongs to another request; for a cancelled request nothing is announced.
    Removing it here could remove what the next holder is announcing.
    """
    return made if await lease.end(partial(lease.queue.finish, lease.claim, made)) else None


async def drop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for them, ignoring their results."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
