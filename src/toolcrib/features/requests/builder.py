"""The Builder: takes requests one by one, has their tools made, proved and published, and says what became of each."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.requests.claim import Lease, Proof, announce, drop, publish, take_order
from toolcrib.features.requests.gate.contract_tests import write_contract_tests
from toolcrib.features.requests.queues.records import Step
from toolcrib.features.requests.workspace import remove_workspace, sweep, workspace_of, write_workspace
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.protocols import Commission

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from toolcrib.features.requests.claim import Bench, Order
    from toolcrib.model.protocols import Maker, Queue
    from toolcrib.model.toolrequest import Claim, Event, Filed

logger = logging.getLogger("toolcrib.builder")

RECONCILE_SECONDS = 30.0
# How long a thread waits at the doorbell; a lease that runs out rings none, so what is due is looked for that often.
SLICE_SECONDS = 0.5
AGAIN_SECONDS = 0.5
LONGEST_AGAIN_SECONDS = 15.0
# A request whose building takes the Builder down with it is not tried for ever.
MAX_FALLS = 5
GIVEN_BACK = "the Builder ends"
# How long a maker that knows its time may be over it, what was cancelled may take to end, and a queue to answer at the end.
OVERTIME_SECONDS = 1.0
GRACE_SECONDS = 5.0
PARTING_SECONDS = 2.0
# What a history may say of a claim that ended well; a person who delivers is no Builder.
ENDS = frozenset({Step.FAILED, Step.CANCELLED, Step.RETRIED, Step.HELD})
# What no further attempt of the maker cures, and what no other request would fare better with.
HOPELESS = frozenset({Kind.HOST_NOT_ALLOWED, Kind.SANDBOX_UNAVAILABLE, Kind.TIMEOUT, Kind.CANCELLED})
UNFIT = frozenset({Kind.AUTH, Kind.EXECUTOR_NOT_FOUND})


class StoppedError(Exception):
    """The Builder is told to end."""


class LostError(Exception):
    """The request is somebody else's by now, or over."""


class UnfitError(ToolError):
    """The maker can make nothing before the operator has put something right; no request is failed for that."""


class Builder:
    """Builds one request at a time: `run` until it is told to stop, or `build_one`; both raise UnfitError.

    `folder` is where makers work. `owner` is the name that this Builder claims by, another for each. `seconds` is the time
    for one request with all its `attempts`. `say` hears what happens, line by line; any thread may call it.
    """

    def __init__(
        self,
        queue: Queue,
        maker: Maker,
        bench: Bench,
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
        self._bench = bench
        self._folder = folder
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._seconds = seconds
        self._attempts = attempts
        self._say = say or (lambda _: None)

    async def run(self, stop: asyncio.Event) -> None:
        """Build whatever is asked for, until it is time to stop; what is under way then is given back."""
        looked = asyncio.Event()
        reconciling = asyncio.create_task(self._go_on_reconciling(looked))
        delay = AGAIN_SECONDS
        try:
            # What came while nobody listened may be more urgent than what is known already.
            await _first_of(looked, stop)
            while not stop.is_set():
                try:
                    if await self.build_one(stop) is None:
                        await self._wait(stop)
                    delay = AGAIN_SECONDS
                except UnfitError:
                    raise
                except Exception as problem:  # noqa: BLE001 - a background loop: one failure must not be the last
                    _log(problem, "the queue could not be asked")
                    await _pause(stop, delay)
                    delay = min(2 * delay, LONGEST_AGAIN_SECONDS)
        finally:
            await drop(reconciling)

    async def build_one(self, stop: asyncio.Event | None = None) -> Filed | None:
        """Build what is due, whatever comes of it; None if there is nothing to build."""
        claim = await asyncio.to_thread(self._queue.claim, self._owner, self._lease_seconds)
        if claim is None:
            return None
        self._say(f"{claim.id}: claimed")
        await self._build(claim, stop or asyncio.Event())
        filed = await asyncio.to_thread(self._queue.get, claim.id)
        if filed is not None:
            self._tell(filed.id, "held" if filed.held else filed.status, filed.error or filed.tool)
        return filed

    async def reconcile(self) -> None:
        """Take in what came while nobody listened, and take away what killed makers left behind."""
        await asyncio.to_thread(self._queue.reconcile)
        await asyncio.to_thread(sweep, self._folder, self._queue)

    async def close(self) -> None:
        """End whatever the maker has started."""
        await self._maker.close()

    async def _build(self, claim: Claim, stop: asyncio.Event) -> None:
        queue = self._queue
        async with Lease(queue, claim, partial(self._tell, claim.id)) as lease:
            try:
                await self._build_held(lease, stop)
            except LostError:
                self._say(f"{claim.id}: it is not ours any more")
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
        """Say what happens to a request; progress goes without saying."""
        place = request_id if step == "progress" else f"{request_id}: {step}"
        for line in text.splitlines() or [""]:
            self._say(f"{place}: {line}" if line else place)

    async def _give_back(self, lease: Lease) -> None:
        await lease.end(partial(self._queue.give_back, lease.claim, GIVEN_BACK), PARTING_SECONDS)

    async def _build_held(self, lease: Lease, stop: asyncio.Event) -> None:
        """From the claim to its end; raises ToolError with the reason if it comes to nothing."""
        claim = lease.claim
        if claim.attempts > MAX_FALLS and await self._has_fallen(claim):
            raise ToolError(Kind.PERMANENT, f"{MAX_FALLS} times in a row whoever built it fell silent")
        order = await asyncio.to_thread(take_order, claim, self._bench)
        if order.made is not None:
            lease.note("published", f"{order.made.path}, before")
            await announce(lease, order.made)
            return
        folder = workspace_of(self._folder, claim)
        is_left_to_a_person = False
        try:
            proof = await self._until(self._make(lease, order, folder), lease, stop)
            is_left_to_a_person = proof is None
            if proof is not None:
                await publish(lease, self._bench, order, proof)
        finally:
            if not is_left_to_a_person:
                await asyncio.to_thread(remove_workspace, folder)
        if is_left_to_a_person:
            await lease.end(partial(self._queue.hold, claim, f"left to a person, in {folder}"))

    async def _has_fallen(self, claim: Claim) -> bool:
        return count_falls(await asyncio.to_thread(self._queue.history, claim.id)) >= MAX_FALLS

    async def _make(self, lease: Lease, order: Order, folder: Path) -> Proof | None:
        """What passed the gate; None if it is left to a person. Raises ToolError if nothing passes."""
        deadline = monotonic() + self._seconds
        proof = Proof()
        for attempt in range(1, self._attempts + 1):
            lease.note("making", f"attempt {attempt} of {self._attempts} by {self._maker.name}")
            laid_out = partial(self._commission, lease, order, folder, attempt, proof.complaints, deadline)
            commission = await _to_its_end(laid_out)
            try:
                if not await self._maker.make(commission):
                    return None
            except ToolError as problem:
                if problem.kind in UNFIT or isinstance(problem, SettingsError):
                    raise UnfitError(problem.kind, problem.message) from problem
                if problem.kind in HOPELESS:
                    raise
                proof = Proof(complaints=(problem.message,))
            else:
                lease.note("proving", f"attempt {attempt}")
                proof = await self._bench.prove(commission.package, order.request, order.allowance, deadline, lease.say)
            if proof.passed:
                return proof
            lease.note("refused", proof.reason)
            if proof.unprovable:
                raise ToolError(Kind.PERMANENT, proof.reason)
        raise ToolError(Kind.PERMANENT, f"refused after {self._attempts} attempts: {proof.reason}")

    def _commission(
        self, lease: Lease, order: Order, folder: Path, attempt: int, complaints: tuple[str, ...], deadline: float
    ) -> Commission:
        """Lay out what the maker needs."""
        brief = write_workspace(
            folder,
            order.request,
            contract_tests=write_contract_tests(order.request),
            complaints=complaints,
            attempt=attempt,
            allowance=order.allowance,
        )
        return Commission(
            request=order.request,
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
        """Wait for the work, unless the claim is lost, the Builder is told to stop, or it takes too long."""
        working = asyncio.create_task(work)
        others = asyncio.create_task(lease.lost.wait()), asyncio.create_task(stop.wait())
        try:
            timeout = self._seconds + OVERTIME_SECONDS
            await asyncio.wait({working, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if lease.lost.is_set():
                raise LostError
            if working.done():
                return _outcome(working)
            if stop.is_set():
                raise StoppedError
            message = f"building it took longer than {self._seconds:g} seconds; see builder_seconds"
            raise ToolError(Kind.TIMEOUT, message)
        finally:
            await drop(*others)
            await _end(working)

    async def _go_on_reconciling(self, looked: asyncio.Event) -> None:
        while True:
            try:
                await self.reconcile()
            except Exception as problem:  # noqa: BLE001 - a background loop: one failure must not be the last
                _log(problem, "what came while nobody listened could not be taken in")
            looked.set()
            await asyncio.sleep(RECONCILE_SECONDS)

    async def _wait(self, stop: asyncio.Event) -> None:
        """Wait at the doorbell, at most for a moment, and no longer than until it is time to stop."""
        waiting = asyncio.create_task(asyncio.to_thread(self._queue.wait, SLICE_SECONDS))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            await drop(waiting, stopping)


def _outcome(working: asyncio.Task[Proof | None]) -> Proof | None:
    """What the work came to; a maker that ends itself in a way that would end a Builder too has only failed."""
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


async def _to_its_end(work: Callable[[], Commission]) -> Commission:
    """Do it in a thread, also to its end if nobody waits for it any more: what it writes is removed afterwards."""
    doing = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


async def _end(working: asyncio.Task[Proof | None]) -> None:
    """Cancel work that may be under way; a maker that does not heed that is left behind."""
    working.cancel()
    done, _ = await asyncio.wait({working}, timeout=GRACE_SECONDS)
    if not done:
        logger.error("a maker did not end when it was told to; it is left behind")
    elif not working.cancelled():
        working.exception()  # whoever asked has it already


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def _log(problem: Exception, what: str) -> None:
    if isinstance(problem, ToolError):
        logger.warning("%s: %s", what, problem.message)
    else:
        logger.error("%s", what, exc_info=problem)


def count_falls(history: list[Event]) -> int:
    """How often in a row whoever had claimed a request fell silent; the last claim is the present one."""
    falls, is_given_back = -1, False
    for event in reversed(history):
        if event.step == Step.RETURNED:
            is_given_back = event.text == GIVEN_BACK
        elif event.step == Step.BUILDING:
            falls, is_given_back = falls + (not is_given_back), False
        elif event.step in ENDS:
            break
    return falls
