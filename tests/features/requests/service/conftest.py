"""A project whose crib files requests, and a builder on the other side of its queue that fulfils them."""

from __future__ import annotations

import pytest

from tool_requests import built_tool, queue_of, request_text
from toolcrib import Crib


class Yard:
    """A crib over a project, and another process's view of its queue."""

    def __init__(self, root, **settings):
        self.tools = root / "tools"
        self.crib = Crib(root, **settings)
        self.requests = self.crib.requests
        self.queue = queue_of(root)

    def fields(self, name="word_counter", **more):
        return {
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
            **more,
        }

    def text(self, request_id="", **more):
        return request_text(self.fields(**more), request_id)

    def code(self, name="word_counter"):
        return f"def {name}(text: str) -> dict:\n    return {{'words': len(text.split())}}\n"

    def claim(self, request_id=None):
        return self.queue.claim("somebody", 60.0, request_id)

    def fulfil(self, claim=None):
        """Put a tool in its place and announce it."""
        claim = claim or self.claim()
        name = self.queue.get(claim.id).name
        (self.tools / f"{name}.py").write_text(self.code(name))
        made = built_tool(name, f"tools/{name}.py")
        assert self.queue.finish(claim, made)


@pytest.fixture
async def yards(project):
    opened = []

    def make(**settings):
        opened.append(Yard(project, **settings))
        return opened[-1]

    yield make
    for yard in opened:
        yard.queue.close()
        await yard.crib.close()


@pytest.fixture
def yard(yards):
    return yards()
