"""What a Builder and a person who delivers have in common: a request is read, a candidate proved and published under a claim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from toolcrib.builder.gate import find_unprovable, judge, refuse_beyond
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from toolcrib.builder.candidate import Candidate
    from toolcrib.builder.heartbeat import Lease
    from toolcrib.builder.trial import OpenTrial
    from toolcrib.model.toolrequest import Allowance, Claim, Made, ToolRequest

    Say = Callable[[str], None]

# A reason that fills a screen is read; a longer one is in the history.
MAX_REASON = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What the gate says to a candidate: only one that `passed` may be published.

    `candidate` holds the very bytes it looked at; None if they could not be read. `unprovable` means that no other attempt is
    of use.
    """

    candidate: Candidate | None = None
    passed: bool = False
    complaints: tuple[str, ...] = ()
    unprovable: bool = False

    @property
    def reason(self) -> str:
        """Why it may not."""
        return "\n".join(self.complaints)[:MAX_REASON]


class Prove(Protocol):
    """Reads what lies at a path and judges it; `deadline` is a reading of `time.monotonic`."""

    def __call__(
        self, path: Path, request: ToolRequest, allowance: Allowance, deadline: float, say: Say
    ) -> Awaitable[Proof]:
        """What the gate says; raises ToolError only for what is not the candidate's fault."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where a candidate is proved and published, and what the operator allows there.

    `publish` puts the candidate into the project. `published` finds what was published for a request already. `exists` is
    the address of a registered tool of a name, or empty. `capabilities` are those that a request may ask for, written as
    grants are; `unproved` lets tools go live that need a network and come without recorded answers.
    """

    read: Callable[[str], ToolRequest]
    prove: Prove
    publish: Callable[[Candidate, ToolRequest, Allowance], Made]
    published: Callable[[ToolRequest, Allowance], Made | None]
    exists: Callable[[str], str]
    capabilities: frozenset[str] = frozenset()
    unproved: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A request that can be built: understood, and with what the operator adds to it.

    `made` is what was published for it before a fall.
    """

    request: ToolRequest
    allowance: Allowance
    made: Made | None = None


def take_order(claim: Claim, bench: Bench) -> Order:
    """Understand what is claimed; raises ToolError for what cannot be built, with the reason."""
    request = bench.read(claim.text)
    # What lies there was proved, and no maker would write the same bytes again.
    if made := bench.published(request, claim.allowance):
        return Order(request=request, allowance=claim.allowance, made=made)
    if address := bench.exists(request.name):
        message = f"{address} is registered already: call it, or ask for a tool of another name"
        raise ToolError(Kind.CONFLICT, message, details={"tool": address})
    allowance = replace(claim.allowance, unproved=claim.allowance.unproved or bench.unproved)
    refuse_beyond(request, allowance, bench.capabilities)
    # Nobody need write what nothing could prove.
    if unprovable := find_unprovable(request, allowance):
        raise ToolError(Kind.PERMANENT, unprovable.text)
    return Order(request=request, allowance=allowance)


async def publish(lease: Lease, bench: Bench, order: Order, proof: Proof) -> Made | None:
    """Publish what was proved and say that it is ready; None if the claim was lost before anybody could be told."""
    if proof.candidate is None or not proof.passed or not await lease.is_ours():
        return None
    made = await asyncio.to_thread(bench.publish, proof.candidate, order.request, order.allowance)
    lease.note("published", made.path)
    return await announce(lease, made)


async def announce(lease: Lease, made: Made) -> Made | None:
    """Say that the tool is there; None if the claim is not ours any more.

    The package stays then, and that is right: it is whole and proved, and it names its request. Whoever holds the claim now
    finds it and announces it, or fails with CONFLICT where it belongs to another request; a cancelled one is not
    announced by anybody. To remove it here could take away what the next holder is announcing.
    """
    return made if await lease.end(partial(lease.queue.finish, lease.claim, made)) else None


def real_bench(
    *,
    trial: OpenTrial,
    tools: Path,
    exists: Callable[[str], str],
    seconds_per_call: float,
    capabilities: frozenset[str] = frozenset(),
    unproved: bool = False,
) -> Bench:
    """The bench of a project whose built tools lie in the folder `tools`."""
    from toolcrib.builder.publishing import find_published
    from toolcrib.builder.publishing import publish as publish_candidate
    from toolcrib.pure.requests import read_request

    return Bench(
        read=read_request,
        prove=partial(prove_candidate, trial, seconds_per_call),
        publish=lambda candidate, request, allowance: publish_candidate(
            candidate, request, project_tools=tools, allowance=allowance
        ),
        published=lambda request, allowance: find_published(request, project_tools=tools, allowance=allowance),
        exists=exists,
        capabilities=capabilities,
        unproved=unproved,
    )


async def prove_candidate(
    trial: OpenTrial,
    seconds_per_call: float,
    path: Path,
    request: ToolRequest,
    allowance: Allowance,
    deadline: float,
    say: Say,
) -> Proof:
    """Read a candidate and have the gate judge it; what cannot be read is refused like what does not pass."""
    from toolcrib.builder.candidate import read_candidate

    try:
        candidate = await asyncio.to_thread(read_candidate, path, request)
    except ToolError as problem:
        return Proof(complaints=(problem.message,))
    judgement = await judge(
        candidate,
        request,
        trial,
        allowance=allowance,
        seconds_per_call=seconds_per_call,
        deadline=deadline,
        say=say,
    )
    complaints = tuple(map(str, judgement.complaints))
    return Proof(candidate=candidate, passed=judgement.passed, complaints=complaints, unprovable=judgement.unprovable)
