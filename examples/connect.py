"""Start a server and use it like a crib of this machine, from async code and with a model's chat adapter."""

import asyncio
import subprocess
import sys

from toolcrib import AnyCrib, Crib
from toolcrib.adapters import OpenAIChat

SERVER = [sys.executable, "-m", "toolcrib", "serve", "--port", "0", "-C", "examples/server"]
REPLY = {"tool_calls": [{"id": "c1", "function": {"name": "count_words", "arguments": '{"text": "a b a", "top": 1}'}}]}


async def count(crib: AnyCrib, text: str) -> object:
    result = await crib.call("count_words", text=text, top=1)
    return result.unwrap()


async def main(url: str) -> None:
    async with Crib.connect(url) as crib:
        print(await count(crib, "the cat and the hat"))
        chat = OpenAIChat(crib, tools=["count_words"])
        print([message["content"] for message in await chat.answer(REPLY)])
    async with Crib("examples/words") as crib:
        print(await count(crib, "the same function takes a crib of this machine, the same way"))


with subprocess.Popen(SERVER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
    assert server.stdout is not None
    try:
        asyncio.run(main(server.stdout.readline().split()[-1]))
    finally:
        server.terminate()
