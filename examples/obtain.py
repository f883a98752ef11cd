"""A program that needs a tool which does not exist yet: it requests the tool, waits and continues."""

import asyncio
import tempfile
from pathlib import Path

from toolcrib import Crib

HERE = Path(__file__).parent / "requests"


async def agent(crib: Crib) -> None:
    print("the agent needs slug_maker")
    tool = await crib.obtain("slug_maker", request=HERE / "slug_maker.yaml", seconds=60)
    result = await crib.call(tool.name, headline="A Cup of Tea", words=2)
    print("the agent goes on:", result.value)


async def maker(crib: Crib) -> None:
    """A maker that has the tool ready."""
    while not (waiting := crib.requests.list()):
        await asyncio.sleep(0.05)
    print("the maker sees:", waiting[0].name, waiting[0].status)
    filed = await crib.requests.deliver(waiting[0].id, HERE / "made")
    print("the maker is done:", filed.status, filed.tool)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Crib(project) as crib:
            await asyncio.gather(agent(crib), maker(crib))


asyncio.run(main())
