"""Loopback sites that answer with bytes as written, an egress that may reach them, and its proxy."""

import asyncio
import re
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from toolcrib.infra.egress import Request
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.proxy import ProxyLimits
from toolcrib.lib.http_syntax import parse_url

PATIENCE = 15


class Site:
    """A server that records what arrives and answers each request with what `reply(head)` gives."""

    def __init__(self, reply, tls):
        self.reply = reply
        self.tls = tls
        self.requests = []
        self.connections = 0
        self.gone = asyncio.Event()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0, ssl=self.tls)
        self.port = self.server.sockets[0].getsockname()[1]
        self.tasks = set()
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.server.wait_closed()

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    def url(self, target="/"):
        return f"http://{self.endpoint}{target}"

    async def answer(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.talk(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over; asyncio would report the cancellation of a connection's task
        finally:
            self.gone.set()
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self.tasks.discard(task)

    async def talk(self, reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
            reply = self.reply(head)
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
                continue
            await reply(reader, writer)
            return


@pytest.fixture
async def serve():
    """Start a site: `await serve(reply)`, the reply being bytes or a function of the request's head."""
    async with AsyncExitStack() as stack:

        async def start(reply, tls=None):
            return await stack.enter_async_context(Site(reply if callable(reply) else lambda _: reply, tls))

        yield start


@pytest.fixture
async def open_egress():
    """Make an egress that is closed at the end of the test."""
    opened = []

    def make(*private, resolve=None):
        opened.append(Egress(private=private, resolve=resolve))
        return opened[-1]

    yield make
    for egress in opened:
        await egress.close()


@pytest.fixture
def fetch():
    """Fetch a URL, given as text, within a bounded time."""

    async def run(
        egress, url, *, hosts=None, max_bytes=100_000, max_sent_bytes=100_000, follows=True, seconds=PATIENCE, **request
    ):
        async with asyncio.timeout(2 * PATIENCE):
            return await egress.fetch(
                Request(url=parse_url(url), **request),
                hosts=hosts,
                max_bytes=max_bytes,
                max_sent_bytes=max_sent_bytes,
                timeout=seconds,
                follows=follows,
            )

    return run


@pytest.fixture
def names():
    """A resolver over a table; each name gives its answers in turn, the last one for ever."""

    def make(**table):
        asked = []

        async def resolve(host, port):
            asked.append((host, port))
            answers = table[host.replace(".", "_")]
            return answers.pop(0) if len(answers) > 1 else answers[0]

        resolve.asked = asked
        return resolve

    return make


class Door:
    """A proxy that is being served: where it listens, and what it has noted."""

    def __init__(self, port, log):
        self.port = port
        self.log = log
        self.url = f"http://127.0.0.1:{port}"
        self.clients = []

    async def open(self):
        """Connect as a client that is closed after the proxy."""
        async with asyncio.timeout(PATIENCE):
            client = await asyncio.open_connection("127.0.0.1", self.port)
        self.clients.append(client)
        return client

    async def close(self):
        for _, writer in self.clients:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def ask(self, request):
        """Send bytes and read until the proxy ends the connection: status, and all that follows the first line."""
        reader, writer = await self.open()
        async with asyncio.timeout(PATIENCE):
            writer.write(request.encode("latin-1") if isinstance(request, str) else request)
            head, _, rest = (await reader.read()).partition(b"\r\n")
        writer.close()
        return (int(head.split()[1]) if head else None), rest.decode("latin-1")


@pytest.fixture
async def open_proxy():
    """Serve a proxy of an egress: `async with open_proxy(egress, …) as door`."""

    @asynccontextmanager
    async def start(egress, hosts=None, *, seconds=30.0, **limits):
        listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        port = listener.getsockname()[1]
        serve = egress.proxy(hosts, deadline=time.monotonic() + seconds, limits=ProxyLimits(**limits))
        async with AsyncExitStack() as stack:
            door = Door(port, None)
            stack.push_async_callback(door.close)
            door.log = await stack.enter_async_context(serve(listener))
            yield door

    return start
