"""A guarded call of `add(a, b)` against its floor: two schema checks around an await."""

from __future__ import annotations

import asyncio
import tempfile
import time

import jsonschema_rs

from run import compare, show
from toolcrib import Crib, tool


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_suspending(a: int, b: int) -> int:
    """Add two numbers after a turn of the event loop."""
    await asyncio.sleep(0)
    return a + b


def validator(schema: dict[str, object]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions(), validate_formats=True)


PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


async def run() -> bool:
    arguments, result = validator(PARAMETERS), validator({"type": "integer"})

    async def floor() -> int:
        given = {"a": 1, "b": 2}
        arguments.validate(given)
        value = await add_async(**given)
        result.validate(value)
        return value

    async def floor_suspending() -> int:
        given = {"a": 1, "b": 2}
        arguments.validate(given)
        value = await add_suspending(**given)
        result.validate(value)
        return value

    with tempfile.TemporaryDirectory() as folder:
        async with Crib(folder, tools=[tool(add), tool(add_async), tool(add_suspending)]) as crib:
            call = crib.call
            medians = await compare(
                {
                    "floor": floor,
                    "floor, suspending": floor_suspending,
                    "plain function": lambda: call("add", a=1, b=2),
                    "async function": lambda: call("add_async", a=1, b=2),
                    "async function that suspends": lambda: call("add_suspending", a=1, b=2),
                },
                clock=time.thread_time,
            )
    base = medians["floor"]
    turn = medians["floor, suspending"] - base
    return show(
        "A guarded call through the complete pipeline, in floors",
        [
            ("floor: check, await, check", base, 1.0, None),
            ("plain function", medians["plain function"], medians["plain function"] / base, 4),
            ("async function", medians["async function"], medians["async function"] / base, 4),
            ("one turn of the event loop alone", turn, turn / base, None),
            (
                "async function that suspends, without its turn",
                medians["async function that suspends"] - turn,
                (medians["async function that suspends"] - turn) / base,
                7,
            ),
            (
                "async function that suspends, with its turn",
                medians["async function that suspends"],
                medians["async function that suspends"] / base,
                None,
            ),
        ],
    )
