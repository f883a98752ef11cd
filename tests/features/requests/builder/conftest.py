"""A project with a queue, where a Builder works with makers that a test writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tool_requests import request_of
from toolcrib import Crib, ToolError
from toolcrib.features.requests.builder import Builder
from toolcrib.features.requests.candidate import read_candidate
from toolcrib.features.requests.claim import Proof, ProofSetup
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.features.requests.queues.sqlite_changes import read_clock

SECONDS = 30.0


class Writer:
    """A maker that writes each of the given texts in turn, the last one from then on."""

    name = "writer"

    def __init__(self, *texts):
        self.texts = texts
        self.tasks = []

    async def make(self, maker_task):
        self.tasks.append(maker_task)
        text = self.texts[min(len(self.tasks), len(self.texts)) - 1]
        (maker_task.package / f"{maker_task.request.name}.py").write_text(text)
        return True

    async def close(self):
        """Nothing was started."""


class Stuck:
    """A maker that never ends by itself, and knows when it was ended."""

    name = "stuck"

    def __init__(self):
        self.began = asyncio.Event()
        self.ended = asyncio.Event()

    async def make(self, maker_task):
        self.folder = maker_task.folder
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def close(self):
        """Nothing was started."""


async def trust(path, request, allowance, deadline, say):
    """A gate that lets everything pass that can be read, unless it says that it is wrong: these tests are about the way there."""
    try:
        candidate = await asyncio.to_thread(read_candidate, path, request)
    except ToolError as problem:
        return Proof(complaints=(problem.message,))
    say("looking")
    text = candidate.files[candidate.entry].decode()
    complaints = tuple(line.removeprefix("# wrong: ") for line in text.splitlines() if line.startswith("# wrong: "))
    return Proof(candidate=candidate, passed=not complaints, complaints=complaints, unprovable="unprovable" in text)


def changed(setup, **methods):
    """The setup with other methods."""
    other = type("OtherSetup", (type(setup),), {name: staticmethod(method) for name, method in methods.items()})
    return other(**vars(setup))


class Shop:
    """A project, its crib, its queue, and Builders in it."""

    def __init__(self, root):
        self.root = root
        self.tools = root / "tools"
        self.builds = root / ".toolcrib" / "builds"
        self.later = 0.0
        self.crib = Crib(root)
        self.queue = EmbeddedQueue(root / ".toolcrib" / "requests.db", clock=self.clock)
        self.setup = ProofSetup(
            trial=self.crib._requests.trials, tools=self.tools, exists=self.exists, seconds_per_call=5.0
        )
        self.trusting = changed(self.setup, prove=trust)
        self.said = []

    def trusting_with(self, **methods):
        """The trusting setup with other methods."""
        return changed(self.trusting, **methods)

    def clock(self):
        """The clock of leases, which tests put forward."""
        now = read_clock()
        return replace(now, ticks=now.ticks + self.later)

    def exists(self, name):
        entry = self.crib.find(name)
        return "" if entry is None else entry.tool.address

    def file(self, name, **fields):
        return self.queue.file(self.request(name, **fields))

    def request(self, name="word_counter", **fields):
        wanted = {
            "name": name,
            "description": "Count the words of a text",
            "priority": "medium",
            "requested_by": "fullsend",
            "inputs": [{"name": "text", "type": "string", "description": "What to count in", "required": True}],
            "outputs": [{"name": "words", "type": "integer"}],
            "examples": [
                {"input": {"text": "one two"}, "output": {"words": 2}},
                {"input": {"text": "one"}, "output": {"words": 1}},
            ],
            **fields,
        }
        return request_of(wanted, numbered=False)

    def code(self, name="word_counter"):
        return f"def {name}(text: str) -> dict:\n    return {{'words': len(text.split())}}\n"

    def builder(self, maker, *, setup=None, queue=None, **more):
        return Builder(
            queue or self.queue,
            maker,
            setup or self.trusting,
            folder=self.builds,
            say=self.said.append,
            **{"owner": "builder-1", "lease_seconds": 30.0, "seconds": SECONDS, **more},
        )

    def steps(self, request_id):
        return [event.step for event in self.queue.history(request_id)]

    def texts(self, request_id, step):
        return [event.text for event in self.queue.history(request_id) if event.step == step]

    async def until_over(self, request_id):
        async with asyncio.timeout(SECONDS):
            while not (filed := self.queue.get(request_id)).status.is_final:
                await asyncio.to_thread(self.queue.wait, 0.5)
        return filed


@pytest.fixture
async def shop(project):
    shop = Shop(project)
    yield shop
    shop.queue.close()
    await shop.crib.close()


@pytest.fixture
def writer():
    return Writer


@pytest.fixture
def stuck():
    return Stuck
