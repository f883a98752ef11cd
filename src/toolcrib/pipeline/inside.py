"""What a running tool may use: other tools, within what it declares itself, and the journal."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.model.call import Call, Context
from toolcrib.pipeline.case import CALL, mode_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from toolcrib.model.protocols import Line
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.pipeline.case import Case
    from toolcrib.pipeline.plan import Plan

    Perform = Callable[[Call], Awaitable[Result]]
    Record = Callable[[Line], None]


def make_context(case: Case, plan: Plan, deadline: float, room: float, perform: Perform, record: Record) -> Context:
    """The Context of a call; `perform` makes the calls of the tool, `record` keeps its lines."""
    call = case.call
    return Context(
        tool=plan.tool,
        call_id=case.id,
        caller=call.caller,
        mode=mode_of(call),
        deadline=deadline,
        seconds=min(plan.seconds, deadline - case.started),
        session=call.session,
        call=partial(_call_from, perform, call, plan.tool, deadline),
        audit=partial(_audit, record, case, plan),
        room=room,
    )


async def _call_from(
    perform: Perform,
    parent: Call,
    tool: Tool,
    deadline: float,
    name: str,
    arguments: Mapping[str, object] | None = None,
    /,
    **more: object,
) -> Result:
    """A call made by a running tool: same caller, what that tool itself declares, the time it has left."""
    call = Call(
        name=name,
        arguments={**(arguments or {}), **more},
        caller=parent.caller,
        session=parent.session,
        mode=parent.mode,
        deadline=deadline,
        grants=tool.requires,
        parent=parent,
    )
    return await perform(call)


def _audit(record: Record, case: Case, plan: Plan, event: str, data: Mapping[str, object] | None = None) -> None:
    facts = {"data": dict(data or {})}
    # The word for a call is the pipeline's own: a tool cannot write one down that never was.
    event = f"audit:{event}" if event == CALL else event
    record((event, monotonic(), case.id, plan.address, case.call.caller, 0.0, None, facts, plan.tool_id))
