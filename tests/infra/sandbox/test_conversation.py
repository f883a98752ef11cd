"""The host's end of a channel: fair to everybody else, however much a job says."""

import asyncio
import contextlib
import socket

from toolcrib.infra.channel import to_line
from toolcrib.infra.sandbox.attempt import Lines


async def test_a_job_that_never_stops_talking_lets_others_have_their_turn():
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                theirs.sendall(b'{"do":"x"}\n' * 100)
        lines, turns, heard = Lines(ours), 0, 0

        async def read():
            nonlocal heard
            for _ in range(1000):
                assert await lines.read() == {"do": "x"}
                heard += 1

        reading = asyncio.ensure_future(read())
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        await reading
    ours.close()
    assert heard == 1000
    assert turns > 20


async def test_lines_of_some_length_let_others_have_their_turn_too():
    ours, theirs = socket.socketpair()
    line = to_line({"text": "x" * 9_000})
    turns, sending = 0, asyncio.ensure_future(asyncio.to_thread(theirs.sendall, line * 20))
    lines = Lines(ours)

    async def read():
        for _ in range(20):
            await lines.read()

    reading = asyncio.ensure_future(read())
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    await asyncio.gather(reading, sending)
    ours.close()
    theirs.close()
    assert turns >= 10


async def test_a_long_line_is_read_whole():
    ours, theirs = socket.socketpair()
    message = {"text": "é" * 200_000}
    sending = asyncio.to_thread(theirs.sendall, to_line(message))
    _, heard = await asyncio.gather(sending, Lines(ours).read())
    assert heard == message
    ours.close()
    theirs.close()
