"""A tool that calls another tool and leaves a line in the journal."""

import asyncio

from toolcrib import Context, Crib, tool


@tool
async def stock(item: str) -> int:
    """How many of an item are in stock."""
    return {"lamp": 4, "chair": 0}.get(item, 0)


@tool
async def order(item: str, pieces: int, context: Context) -> str:
    """Order an item, if there are enough of it."""
    left = await context.call("stock", item=item)
    if not isinstance(left.value, int) or left.value < pieces:
        return f"only {left.value} of {item} are left"
    context.audit("ordered", {"item": item, "pieces": pieces})
    return f"ordered {pieces} of {item}"


async def main() -> None:
    async with Crib(tools=[stock, order]) as crib:
        print((await crib.call("order", item="lamp", pieces=2)).value)
        print((await crib.call("order", item="chair", pieces=1)).value)
        for line in crib.journal.read():
            print(line["event"], line["tool"])


if __name__ == "__main__":
    asyncio.run(main())
