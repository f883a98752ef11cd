"""The gate: a candidate is read, imported, called and watched, and passes if it is what was asked for and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.builder.candidate import tool_of_candidate
from toolcrib.builder.gate.allowing import find_unprovable, terms_of
from toolcrib.builder.gate.contract import derive_contract
from toolcrib.builder.gate.interface import check_interface, line_of_function
from toolcrib.builder.gate.nouns import Judgement
from toolcrib.builder.gate.proving import Passage
from toolcrib.builder.gate.schemas import check_schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.builder.candidate import Candidate
    from toolcrib.builder.trial import OpenTrial
    from toolcrib.model.toolrequest import Allowance, ToolRequest

NOTHING_RAN = ("nothing of it was run",)


async def judge(
    candidate: Candidate,
    request: ToolRequest,
    trial: OpenTrial,
    *,
    allowance: Allowance,
    seconds_per_call: float,
    deadline: float,
    say: Callable[[str], None],
) -> Judgement:
    """Prove a candidate; raises ToolError if that cannot be done here, which says nothing about the candidate.

    `deadline` is a reading of `time.monotonic`; `say` hears what is being looked at.
    """
    say("reading the request and the interface")
    unread = check_schemas(request) or check_interface(candidate, request)
    if unread:
        return Judgement(passed=False, complaints=tuple(unread), checks=NOTHING_RAN)
    unprovable = find_unprovable(request, allowance)
    if unprovable is not None:
        return Judgement(passed=False, complaints=(unprovable,), unprovable=True, checks=NOTHING_RAN)
    # Where it lies is the trial's affair: it runs the bytes that were read.
    tool = tool_of_candidate(candidate, request, folder=Path(candidate.name), allowance=allowance)
    passage = Passage(
        request=request,
        contract=derive_contract(request),
        tool=tool,
        terms=terms_of(tool, request, allowance, seconds_per_call),
        line=line_of_function(candidate, request),
        trial=trial,
        deadline=deadline,
        say=say,
    )
    return await passage.go()
