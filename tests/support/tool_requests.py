"""Tool requests with what an operator and a builder add to them: read from fields, allowed, built, and the queue of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.requests import QUEUE_FILE
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.writer import with_id, write_request
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.model.toolrequest import Allowance, Made, RecordedAnswer, ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any


def request_text(fields: Mapping[str, object], request_id: str = "") -> str:
    """The document of a request with these fields, and with this id if there is one."""
    text = write_request(fields)
    return with_id(text, request_id) if request_id else text


def request_of(document: Mapping[str, object] | str, *, numbered: bool = True) -> ToolRequest:
    """The request that a document or these fields describe; it has an id unless it is not `numbered`."""
    return read_request(document if isinstance(document, str) else write_request(document), numbered=numbered)


def allowance_of(
    *capabilities: str, hosts: Iterable[str] = (), answers: Iterable[RecordedAnswer] = (), unproved: bool = False
) -> Allowance:
    """What an operator adds to a request; nothing, if nothing is given."""
    return Allowance(
        capabilities=frozenset(capabilities), hosts=tuple(hosts), answers=tuple(answers), unproved=unproved
    )


def recorded_answer(url: str, **facts: Any) -> RecordedAnswer:
    """A response that is served in place of a real server while a tool is proved."""
    return RecordedAnswer(url=url, **facts)


def built_tool(name: str = "t", path: str = "", digest: str = "d" * 64) -> Made:
    """What a builder hands over: the first version of a tool in the folder `tools`."""
    address = f"tools/{name.replace('_', '-')}@1.0.0"
    return Made(name=name, version="1.0.0", address=address, path=path or f"tools/{name}", digest=digest)


def queue_of(project: Path) -> EmbeddedQueue:
    """The queue that a Crib of this project opens, once more."""
    return EmbeddedQueue(project / ".toolcrib" / QUEUE_FILE)
