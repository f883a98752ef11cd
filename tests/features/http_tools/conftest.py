"""Loopback sites that answer with bytes as written, and tools over them that run as in a call."""

import asyncio
import json
import re
import time
from contextlib import AsyncExitStack, suppress

import pytest

from sample_tools import http_call, http_run
from toolcrib import Call, Context, Tool
from toolcrib.features.http_tools.runner import HttpRunner
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.secrets.secret import Secret

PATIENCE = 10
OPEN = {"type": "object", "properties": {}}


class Site:
    """A server that records what arrives and answers each request with what `reply(head, body)` gives.

    A reply is bytes, which keep the connection open, or a coroutine function that is handed reader and writer.
    """

    def __init__(self, reply):
        self.reply = reply
        self.requests = []
        self.connections = 0
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.tasks = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
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

    @property
    def targets(self):
        """Method and target of everything that arrived."""
        return [request.split(b" HTTP/", 1)[0].decode() for request in self.requests]

    def header(self, name, index=-1):
        """The value of a header that arrived, or None."""
        head = self.requests[index].partition(b"\r\n\r\n")[0].decode()
        found = re.search(rf"(?im)^{name}: (.*?)\r?$", head)
        return None if found is None else found[1]

    def body(self, index=-1):
        return self.requests[index].partition(b"\r\n\r\n")[2]

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
            self.arrived.set()
            reply = self.reply
            if isinstance(reply, list):
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
            if not isinstance(reply, bytes):
                reply = reply(self.requests[-1])
            if not isinstance(reply, bytes):
                await reply(reader, writer)
                return
            writer.write(reply)
            await writer.drain()


class TinySecrets:
    """Secrets in a dictionary."""

    def __init__(self, **values):
        self.values = values

    def get(self, name):
        return Secret(name, self.values[name]) if name in self.values else None

    def names(self):
        return list(self.values)


class Bench:
    """A runner over an egress that may reach the sites of the test; `pauses` are the waits between attempts."""

    def __init__(self):
        self.sites = []
        self.hosts = None
        self.private = None
        self.resolve = None
        self.secrets = TinySecrets()
        self.limits = {}
        self.pauses = []
        self.egress = None
        self.caller = "ann"

    async def pause(self, seconds):
        self.pauses.append(seconds)

    def runner(self):
        endpoints = [site.endpoint for site in self.sites]
        if self.egress is None:
            self.egress = Egress(private=endpoints if self.private is None else self.private, resolve=self.resolve)
        return HttpRunner(
            lambda: self.egress,
            hosts=tuple(endpoints if self.hosts is None else self.hosts),
            secrets=self.secrets,
            version="7.8.9",
            sleep=self.pause,
            **{"max_retries": 4, "max_sent_bytes": 10_000, "max_response_bytes": 100_000, **self.limits},
        )

    def tool(self, *calls, parameters=None, **facts):
        calls = tuple(http_call(url=call) if isinstance(call, str) else call for call in calls)
        return Tool(
            name="sample", description="A sample.", parameters=parameters or OPEN, run=http_run(*calls), **facts
        )

    def check(self, tool, **arguments):
        self.runner().bind(tool).check(arguments, Call(name=tool.name, arguments=arguments))

    async def run(self, tool, *, seconds=PATIENCE, mode="text", **arguments):
        """Check and run, as a pipeline does."""
        bound = self.runner().bind(tool)
        bound.check(arguments, Call(name=tool.name, arguments=arguments))
        context = Context(
            tool=tool,
            call_id="call-1",
            caller=self.caller,
            mode=mode,
            deadline=time.monotonic() + seconds,
            seconds=seconds,
            session=None,
            call=None,
            audit=None,
        )
        async with asyncio.timeout(2 * PATIENCE):
            return await bound.run(arguments, context)

    async def value(self, call, **arguments):
        outcome = await self.run(self.tool(call), **arguments)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    if made.egress is not None:
        await made.egress.close()


@pytest.fixture
async def serve(bench):
    """Start a site; the bench may reach it."""
    async with AsyncExitStack() as stack:

        async def start(reply):
            site = await stack.enter_async_context(Site(reply))
            bench.sites.append(site)
            return site

        yield start


@pytest.fixture(scope="session")
def answer():
    """The bytes of an answer."""

    def make(body=b"", status="200 OK", content_type="application/json", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {content_type}"] if content_type else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body

    return make


@pytest.fixture(scope="session")
def secrets_of():
    return TinySecrets
