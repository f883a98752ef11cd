"""An HTTP tool at 64 calls at once, against bare aiohttp over as many connections to the same server.

Processor time of this process counts: at so many calls it never waits, and a machine that does other things, too, measures the same.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import aiohttp
import orjson

from run import show
from toolcrib import Crib
from toolcrib.model.tool import Http, HttpCall, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

CONNECTIONS = 64
CALLS = 2_000
ROUNDS = 15
SHARE = 0.7

# In a process of its own, so that it takes no time from those who ask it.
SERVER = """
import asyncio, uvloop

BODY = b'{"location": {"name": "Lisbon"}, "current": {"temp_c": 21.5, "condition": {"text": "Sunny", "code": 1000}}}'
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(BODY), BODY)

class Answers(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.heads = transport, b""
    def data_received(self, data):
        self.heads += data
        asked, end, self.heads = self.heads.rpartition(b"\\r\\n\\r\\n")
        self.transport.write(ANSWER * (asked.count(b"\\r\\n\\r\\n") + bool(end)))

async def main():
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

uvloop.run(main())
"""


@contextmanager
def serving() -> Iterator[str]:
    """The endpoint of a server that answers everything the same."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        yield f"127.0.0.1:{server.stdout.readline().strip()}"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def weather(endpoint: str) -> Tool:
    call = HttpCall(
        url=f"http://{endpoint}/v1/current.json?q=${{city}}&lang=en",
        headers={"User-Agent": "Bench/${version}"},
        extract="$.current.condition.text",
    )
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    output = {"type": "string"}
    return Tool(
        name="weather",
        description="The weather of a city.",
        parameters=parameters,
        output_schema=output,
        run=Http(calls=(call,)),
        requires=frozenset({"net.http"}),
    )


async def seconds_per_call(work: Callable[[], Awaitable[object]]) -> float:
    """Perform the work many times, always 64 of them at once."""

    async def repeat() -> None:
        for _ in range(CALLS // CONNECTIONS):
            await work()

    started = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(repeat())
    return (time.process_time() - started) / (CALLS // CONNECTIONS * CONNECTIONS)


async def run() -> bool:
    with serving() as endpoint:
        crib = Crib(tools=[weather(endpoint)], http_tools={"hosts": [endpoint]}, egress={"private": [endpoint]})
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

            async def ask_bare() -> None:
                parameters = {"q": "Lisbon", "lang": "en"}
                async with session.get(f"http://{endpoint}/v1/current.json", params=parameters) as response:
                    assert orjson.loads(await response.read())["current"]["condition"]["text"] == "Sunny"

            async def ask_tool() -> None:
                result = await crib.call("weather", city="Lisbon")
                assert result.value == "Sunny", result

            works = {"bare": ask_bare, "tool": ask_tool}
            figures: dict[str, list[float]] = {name: [] for name in works}
            for _ in range(ROUNDS + 1):
                for name, work in works.items():
                    figures[name].append(await seconds_per_call(work))
        await crib.close()
    # The first round makes the connections.
    medians = {name: statistics.median(times[1:]) for name, times in figures.items()}
    slower = medians["tool"] / medians["bare"]
    print(f"  {1 / medians['tool']:,.0f} calls a second against {1 / medians['bare']:,.0f}: {1 / slower:.2f} of them")
    return show(
        f"An HTTP tool, {CONNECTIONS} calls at once",
        [
            ("bare aiohttp", medians["bare"], 1.0, None),
            ("the tool", medians["tool"], slower, 1 / SHARE),
        ],
    )
