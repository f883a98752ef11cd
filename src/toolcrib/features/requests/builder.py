"""The Builder: claims requests one by one, and has their tools made, proved and published."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.requests.claim import Lease, Proof, announce, drop, publish, read_task
from toolcrib.features.requests.gate.contract_tests import write_contract_tests
from toolcrib.features.requests.queues import HistoryStep
from toolcrib.features.requests.workspace import remove_workspace, sweep, workspace_of, write_workspace
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.protocols import MakerTask

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from toolcrib.features.requests.claim import BuildTask, ProofSetup
    from toolcrib.model.protocols import Maker, Queue
    from toolcrib.model.toolrequest import Claim, Event, Filed

logger = logging.getLogger("toolcrib.builder")

RECONCILE_SECONDS = 30.0
# How long one wait for a change lasts; an expired lease is not a change, so the queue is polled this often.
WAIT_SECONDS = 0.5
RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 15.0
# A request that crashes its Builder is not retried forever.
MAX_LOST_LEASES = 5
GIVEN_BACK = "the Builder ends"
# How long a maker may exceed its deadline, a cancelled task may take to end, and the queue may take at shutdown.
OVERTIME_SECONDS = 1.0
GRACE_SECONDS = 5.0
PARTING_SECONDS = 2.0
REMEMBERED = 100
# Events after which earlier claims do not count; a person who delivers is not a Builder.
ENDS = frozenset({HistoryStep.FAILED, HistoryStep.CANCELLED, HistoryStep.RETRIED, HistoryStep.HELD})
# Errors that another attempt does not cure, and errors that every other request would meet too.
HOPELESS = frozenset({Kind.HOST_NOT_ALLOWED, Kind.SANDBOX_UNAVAILABLE, Kind.TIMEOUT, Kind.CANCELLED})
UNFIT = frozenset({Kind.AUTH, Kind.EXECUTOR_NOT_FOUND})


class StoppedError(Exception):
    """The Builder was told to stop."""


class ClaimLostError(Exception):
    """The claim is lost: another Builder has it, or the request is over."""


class UnfitError(ToolError):
    """The maker cannot work until the operator corrects something; requests are not marked as failed for that."""


class Builder:
    """Builds one request at a time: `run` until it is told to stop, or `build_one`; both raise UnfitError.

    `folder` is where makers work. `owner` is the unique name under which this Builder claims. `seconds` is the time
    for one request with all its `attempts`. `say` is called with each line of progress, from any thread.
    """

    def __init__(
        self,
        queue: Queue,
        maker: Maker,
        setup: ProofSetup,
        *,
        folder: Path,
        owner: str,
        lease_seconds: float = 30.0,
        seconds: float = 900.0,
        attempts: int = 3,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._queue = queue
        self._maker = maker
        self._setup = setup
        self._folder = folder
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._seconds = seconds
        self._attempts = attempts
        self._say = say or (lambda _: None)
        # What became of the last requests; a Builder may run for months.
        self.worked_on: deque[Filed] = deque(maxlen=REMEMBERED)

    async def run(self, stop: asyncio.Event) -> None:
        """Build requests until `stop` is set; the one in progress is then returned to the queue."""
        looked = asyncio.Event()
        reconciling = asyncio.create_task(self._keep_reconciling(looked))
        delay = RETRY_SECONDS
        try:
            # Requests that arrived while no Builder ran may be more urgent than the known ones.
            await _first_of(looked, stop)
            while not stop.is_set():
                try:
                    if await self.build_one(stop) is None:
                        await self._wait(stop)
                    delay = RETRY_SECONDS
                except UnfitError:
                    raise
                except Exception as problem:  # noqa: BLE001 - a background loop: one failure must not be the last
                    _log(problem, "the queue could not be asked")
                    await _pause(stop, delay)
                    delay = min(2 * delay, LONGEST_RETRY_SECONDS)
        finally:
            await drop(reconciling)

    async def build_one(self, stop: asyncio.Event | None = None) -> Filed | None:
        """Build the next request; its state afterwards, or None if there was nothing to build."""
        claim = await asyncio.to_thread(self._queue.claim, self._owner, self._lease_seconds)
        if claim is None:
            return None
        self._say(f"{claim.id}: claimed")
        await self._build(claim, stop or asyncio.Event())
        filed = await asyncio.to_thread(self._queue.get, claim.id)
        if filed is not None:
            self.worked_on.append(filed)
            self._tell(filed.id, "held" if filed.held else filed.status, filed.error or filed.tool)
        return filed

    async def reconcile(self) -> None:
        """Accept requests that arrived while no Builder ran, and remove workspaces of killed makers."""
        await asyncio.to_thread(self._queue.reconcile)
        await asyncio.to_thread(sweep, self._folder, self._queue)

    async def close(self) -> None:
        """Close the maker."""
        await self._maker.close()

    async def _build(self, claim: Claim, stop: asyncio.Event) -> None:
        queue = self._queue
        async with Lease(queue, claim, partial(self._tell, claim.id)) as lease:
            try:
                await self._build_held(lease, stop)
            except ClaimLostError:
                self._say(f"{claim.id}: the claim is lost")
            except StoppedError:
                await self._give_back(lease)
            except asyncio.CancelledError:
                await asyncio.shield(self._give_back(lease))
                raise
            except UnfitError as problem:
                lease.note("progress", problem.message)
                await self._give_back(lease)
                raise
            except ToolError as problem:
                await lease.end(partial(queue.fail, claim, problem.message))
            except Exception as problem:
                logger.exception("%s: building it failed", claim.id)
                reason = f"building it failed with {type(problem).__name__}; the log of the Builder says more"
                await lease.end(partial(queue.fail, claim, reason))

    def _tell(self, request_id: str, step: str, text: str) -> None:
        """Report an event of a request; of progress only the text."""
        place = request_id if step == "progress" else f"{request_id}: {step}"
        for line in text.splitlines() or [""]:
            self._say(f"{place}: {line}" if line else place)

    async def _give_back(self, lease: Lease) -> None:
        await lease.end(partial(self._queue.give_back, lease.claim, GIVEN_BACK), PARTING_SECONDS)

    async def _build_held(self, lease: Lease, stop: asyncio.Event) -> None:
        """Build a claimed request; raises ToolError with the reason if that fails."""
        claim = lease.claim
        if claim.attempts > MAX_LOST_LEASES and await self._loses_leases(claim):
            raise ToolError(Kind.PERMANENT, f"the builder lost its lease {MAX_LOST_LEASES} times in a row")
        task = await asyncio.to_thread(read_task, claim, self._setup)
        if task.made is not None:
            lease.note("published", f"{task.made.path}, before")
            await announce(lease, task.made)
            return
        folder = workspace_of(self._folder, claim)
        is_left_to_a_person = False
        try:
            proof = await self._until(self._make(lease, task, folder), lease, stop)
            is_left_to_a_person = proof is None
            if proof is not None:
                await publish(lease, self._setup, task, proof)
        finally:
            if not is_left_to_a_person:
                await asyncio.to_thread(remove_workspace, folder)
        if is_left_to_a_person:
            await lease.end(partial(self._queue.hold, claim, f"left to a person, in {folder}"))

    async def _loses_leases(self, claim: Claim) -> bool:
        return count_lost_leases(await asyncio.to_thread(self._queue.history, claim.id)) >= MAX_LOST_LEASES

    async def _make(self, lease: Lease, task: BuildTask, folder: Path) -> Proof | None:
        """What passed the gate; None if the maker leaves it to a person. Raises ToolError if no attempt passes."""
        deadline = monotonic() + self._seconds
        proof = Proof()
        for attempt in range(1, self._attempts + 1):
            lease.note("making", f"attempt {attempt} of {self._attempts} by {self._maker.name}")
            laid_out = partial(self._lay_out, lease, task, folder, attempt, proof.complaints, deadline)
            maker_task = await _finish_in_thread(laid_out)
            try:
                if not await self._maker.make(maker_task):
                    return None
            except ToolError as problem:
                if problem.kind in UNFIT or isinstance(problem, SettingsError):
                    raise UnfitError(problem.kind, problem.message) from problem
                if problem.kind in HOPELESS:
                    raise
                proof = Proof(complaints=(problem.message,))
            else:
                lease.note("proving", f"attempt {attempt}")
                proof = await self._setup.prove(maker_task.package, task.request, task.allowance, deadline, lease.say)
            if proof.passed:
                return proof
            lease.note("refused", proof.reason)
            if proof.unprovable:
                raise ToolError(Kind.PERMANENT, proof.reason)
        raise ToolError(Kind.PERMANENT, f"refused after {self._attempts} attempts: {proof.reason}")

    def _lay_out(
        self, lease: Lease, task: BuildTask, folder: Path, attempt: int, complaints: tuple[str, ...], deadline: float
    ) -> MakerTask:
        """Write the workspace, and describe the work for the maker."""
        brief = write_workspace(
            folder,
            task.request,
            contract_tests=write_contract_tests(task.request),
            complaints=complaints,
            attempt=attempt,
            allowance=task.allowance,
        )
        return MakerTask(
            request=task.request,
            folder=folder,
            brief=brief,
            attempt=attempt,
            complaints=complaints,
            deadline=deadline,
            say=lease.say,
        )

    async def _until(
        self, work: Coroutine[object, object, Proof | None], lease: Lease, stop: asyncio.Event
    ) -> Proof | None:
        """Wait for the work; raises if the claim is lost, the Builder is told to stop, or the time is over."""
        working = asyncio.create_task(work)
        others = asyncio.create_task(lease.lost.wait()), asyncio.create_task(stop.wait())
        try:
            timeout = self._seconds + OVERTIME_SECONDS
            await asyncio.wait({working, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if lease.lost.is_set():
                raise ClaimLostError
            if working.done():
                return _outcome(working)
            if stop.is_set():
                raise StoppedError
            message = f"building it took longer than {self._seconds:g} seconds; see builder.seconds"
            raise ToolError(Kind.TIMEOUT, message)
        finally:
            await drop(*others)
            await _end(working)

    async def _keep_reconciling(self, looked: asyncio.Event) -> None:
        while True:
            try:
                await self.reconcile()
            except Exception as problem:  # noqa: BLE001 - a background loop: one failure must not be the last
                _log(problem, "the queue could not be reconciled")
            looked.set()
            await asyncio.sleep(RECONCILE_SECONDS)

    async def _wait(self, stop: asyncio.Event) -> None:
        """Wait for a change of the queue, for a short time or until `stop` is set."""
        waiting = asyncio.create_task(asyncio.to_thread(self._queue.wait, WAIT_SECONDS))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            await drop(waiting, stopping)


def _outcome(working: asyncio.Task[Proof | None]) -> Proof | None:
    """The result of the work; a BaseException of the maker fails the request and does not end the Builder."""
    problem = asyncio.CancelledError() if working.cancelled() else working.exception()
    if problem is None or isinstance(problem, Exception):
        return working.result()
    raise ToolError(Kind.PERMANENT, f"the maker broke off with {type(problem).__name__}") from problem


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await drop(*waits)


async def _finish_in_thread(work: Callable[[], MakerTask]) -> MakerTask:
    """Run it in a thread, to its end even if cancelled: what it writes is removed afterwards."""
    doing = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


async def _end(working: asyncio.Task[Proof | None]) -> None:
    """Cancel the work; a maker that ignores that is abandoned."""
    working.cancel()
    done, _ = await asyncio.wait({working}, timeout=GRACE_SECONDS)
    if not done:
        logger.error("a maker ignored its cancellation; it is abandoned")
    elif not working.cancelled():
        working.exception()  # retrieved, so that asyncio does not log it; the caller has it already


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def _log(problem: Exception, what: str) -> None:
    if isinstance(problem, ToolError):
        logger.warning("%s: %s", what, problem.message)
    else:
        logger.error("%s", what, exc_info=problem)


def count_lost_leases(history: list[Event]) -> int:
    """How many claims in a row lost their lease; the last claim is the present one."""
    lost, is_given_back = -1, False
    for event in reversed(history):
        if event.step == HistoryStep.RETURNED:
            is_given_back = event.text == GIVEN_BACK
        elif event.step == HistoryStep.BUILDING:
            lost, is_given_back = lost + (not is_given_back), False
        elif event.step in ENDS:
            break
    return lost
