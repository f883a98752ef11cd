"""Requests by hand, and queues on one file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.model.toolrequest import Priority, ToolRequest


def a_request(name: str = "some_tool", *, id: str = "", priority: str = "medium", experiment: str = "") -> ToolRequest:
    """A request by hand; two of the same name ask for the same thing."""
    head = f"tool_request:\n  id: {id}\n" if id else "tool_request:\n"
    return ToolRequest(
        id=id,
        name=name,
        description="Does what it says",
        priority=Priority(priority),
        requested_by="fullsend",
        text=f"{head}  name: {name}\n",
        digest=hashlib.sha256(name.encode()).hexdigest(),
        function=name,
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
        experiment=experiment,
    )


@pytest.fixture(name="a_request")
def _a_request() -> Callable[..., ToolRequest]:
    return a_request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of the queue lies."""
    return tmp_path / "deep" / "queue.sqlite3"


@pytest.fixture
def open_one(path: Path) -> Iterator[Callable[..., EmbeddedQueue]]:
    """Open one more queue on the file; all are closed at the end."""
    opened: list[EmbeddedQueue] = []

    def open_(**options) -> EmbeddedQueue:
        opened.append(EmbeddedQueue(path, **options))
        return opened[-1]

    yield open_
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(open_one: Callable[..., EmbeddedQueue]) -> EmbeddedQueue:
    """A queue on the file."""
    return open_one()
