"""Serve a job from the host: the tools that it calls over its channel, and the proxy to its hosts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.infra.programs import ParentSlot
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.programs.observed_effects import EffectRecorder
    from toolcrib.infra.sandbox.attempt import Lines, Proxy
    from toolcrib.model.call import Context
    from toolcrib.model.result import Result

    Id = str | int | None

CAPABILITY = "rye.execute"
MAX_AT_ONCE = 8

_SHAPE = '{"id": 1, "tool": "name", "arguments": {}}'
_KEYS = frozenset({"id", "tool", "arguments"})


def serve_calls(context: Context) -> Callable[[Lines], Awaitable[None]]:
    """The handler of a script's channel: its calls are made on behalf of the script, several at a time."""

    async def talk(lines: Lines) -> None:
        slot = ParentSlot()
        slots = asyncio.Semaphore(MAX_AT_ONCE)
        under_way: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            while (message := await _next_message(lines, slots)) is not None:
                task = group.create_task(_answer(message, context, lines, slot))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                task.add_done_callback(lambda _: slots.release())
            # No reader is left for the answers.
            for task in under_way:
                task.cancel()

    return talk


def lead_out(
    egress: Callable[[], Egress], hosts: tuple[str, ...] | None, deadline: float, recorder: EffectRecorder | None = None
) -> Proxy:
    """The proxy of a job; without hosts it allows every public host."""
    proxy = egress().proxy(None if hosts is None else parse_hosts(hosts), deadline=deadline)
    return proxy if recorder is None else recorder.record_visits(proxy)


async def _next_message(lines: Lines, slots: asyncio.Semaphore) -> dict[str, object] | None:
    """The next request of the script, read only when one can be served: a script that sends more waits."""
    await slots.acquire()
    return await lines.read()


async def _answer(message: dict[str, object], context: Context, lines: Lines, slot: ParentSlot) -> None:
    slot.lend_in_this_task()
    number = _id_of(message)
    try:
        tool, arguments = _read(message)
        answer = {"id": number, "ok": True, "value": _value_of(tool, await context.call(tool, arguments))}
    except ToolError as refusal:
        answer = _refuse(number, refusal)
    try:
        await lines.write(answer)
    except ToolError as problem:
        await lines.write(_refuse(number, problem))


def _id_of(message: dict[str, object]) -> Id:
    given = message.get("id")
    return given if isinstance(given, str | int) and not isinstance(given, bool) else None


def _read(message: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The tool and the arguments of a request."""
    tool, arguments = message.get("tool"), message.get("arguments", {})
    if _id_of(message) is None:
        raise _malformed("the id is neither a number nor a text")
    if not isinstance(tool, str):
        raise _malformed("the tool is not named")
    if not isinstance(arguments, dict):
        raise _malformed("the arguments are not an object")
    if unknown := sorted(message.keys() - _KEYS):
        raise _malformed(f"{unknown[0][:40]!r} is not a known key")
    return tool, arguments


def _malformed(reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"{reason}; write {_SHAPE}")


def _value_of(tool: str, result: Result) -> object:
    """The whole value, or an error."""
    if result.error is not None:
        raise result.error
    kept = result.meta.get("kept")
    if isinstance(kept, dict):
        message = f"{tool} returned {kept.get('bytes')} bytes, more than a call hands over at once; ask it for less"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    return result.value


def _refuse(number: Id, error: ToolError) -> dict[str, object]:
    return {"id": number, "ok": False, "error": error.to_json()}
