"""Deliver what a person made for a request: it is proved and published like the work of a Builder."""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.requests.claim import Lease, announce, publish, read_task
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.requests.claim import Bench, BuildTask, Proof
    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Filed

    Say = Callable[[str], None]

PARTING_SECONDS = 2.0


async def deliver(
    queue: Queue, bench: Bench, filed: Filed, path: Path, say: Say, *, owner: str, lease_seconds: float, seconds: float
) -> None:
    """Prove and publish the package at the path for a request; after an error the request waits as before.

    A package that the gate refuses raises VALIDATION, with the complaints in the details.
    """
    claim = await asyncio.to_thread(queue.claim, owner, lease_seconds, filed.id)
    if claim is None:
        now = await asyncio.to_thread(queue.get, filed.id)
        raise _why_not(filed if now is None else now)
    async with Lease(queue, claim) as lease:
        try:
            await _deliver(lease, bench, path, say, seconds)
        except BaseException as problem:
            text = problem.message if isinstance(problem, ToolError) else "the delivery was interrupted"
            leave = queue.hold if filed.held else queue.give_back
            await asyncio.shield(lease.end(partial(leave, claim, text), PARTING_SECONDS))
            raise


async def _deliver(lease: Lease, bench: Bench, path: Path, say: Say, seconds: float) -> None:
    lease.note("delivered", path.name)
    task = await asyncio.to_thread(read_task, lease.claim, bench)
    if task.made is not None:
        made = await announce(lease, task.made)
    else:
        proof = await _prove(lease, bench, task, path, say, seconds)
        made = await publish(lease, bench, task, proof)
    if made is None:
        message = f"{lease.claim.id} is over, or another Builder has it, so it was not announced; look at it again"
        raise ToolError(Kind.CONFLICT, message)


async def _prove(lease: Lease, bench: Bench, task: BuildTask, path: Path, say: Say, seconds: float) -> Proof:
    def tell(text: str) -> None:
        lease.say(text)
        say(text)

    try:
        async with asyncio.timeout(seconds):
            proof = await bench.prove(path, task.request, task.allowance, monotonic() + seconds, tell)
    except TimeoutError:
        message = f"proving it took longer than {seconds:g} seconds; see builder.seconds"
        raise ToolError(Kind.TIMEOUT, message) from None
    if not proof.passed:
        lease.note("refused", proof.reason)
        raise ToolError(Kind.VALIDATION, proof.reason, details={"complaints": list(proof.complaints)})
    return proof


def _why_not(filed: Filed) -> ToolError:
    if filed.status.is_final:
        return ToolError(Kind.CONFLICT, f"{filed.id} is {filed.status} already, so nothing can be delivered for it")
    return ToolError(Kind.CONFLICT, f"{filed.owner or 'a Builder'} builds {filed.id}; cancel it or wait for it")
