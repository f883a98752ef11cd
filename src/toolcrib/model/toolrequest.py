"""A request for a tool that does not exist yet, and its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Priority(StrEnum):
    """How much waits for the tool."""

    HIGH = "high"  # an experiment is blocked
    MEDIUM = "medium"  # one is planned
    LOW = "low"  # nothing waits

    @property
    def rank(self) -> int:
        """Its place in the queue: the smaller, the sooner."""
        return tuple(Priority).index(self)


class Status(StrEnum):
    """How far a request has come."""

    PENDING = "pending"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self in {Status.READY, Status.FAILED, Status.CANCELLED}


class Missing:
    """The default of an input that has none; null is a default."""


MISSING: Final = Missing()


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One argument of the requested tool. `schema` is JSON Schema, with its description and default in it.

    `samples` are values that the request shows for it, where it shows any.
    """

    name: str
    schema: dict[str, object]
    description: str = ""
    required: bool = False
    default: object = MISSING
    samples: tuple[object, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One value of its answer. `is_list` says that it is an array."""

    name: str
    schema: dict[str, object]
    is_list: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A call that the requester gives as an example, and the right answer; `expected` is the whole value."""

    arguments: dict[str, object]
    expected: object


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedAnswer:
    """What a web server answers while a tool is proved: no real server is reached.

    `url` is the address without its query, or with it where the query matters.
    """

    url: str
    method: str = "GET"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def to_json(self) -> dict[str, object]:
        """The answer as it is stored and sent."""
        return {
            "url": self.url,
            "method": self.method,
            "status": self.status,
            "headers": dict(self.headers),
            "body": self.body,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """What the operator adds to a request: capabilities, hosts, answers of web servers, and whether it may go unproved."""

    capabilities: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    unproved: bool = False

    def to_json(self) -> dict[str, object]:
        """As every face shows it: of the answers, which may be long and private, only how many there are."""
        return {
            "capabilities": sorted(self.capabilities),
            "hosts": list(self.hosts),
            "answers": len(self.answers),
            "unproved": self.unproved,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A request for a missing tool, read and checked.

    `id` is empty for a request that has no number yet. `text` is the YAML itself. `function` is what the example imports, else
    the tool's own name. `parameters` and `output_schema` are derived from
    the inputs and outputs; without outputs the answer is unconstrained. `shown` are the arguments that the example shows,
    as far as they are literals. `hosts` narrows where its network leads; None narrows nothing. `extra` are unknown
    keys, kept as they are. `digest` is the same for two requests that ask for the same thing.
    """

    id: str
    name: str
    description: str
    priority: Priority
    requested_by: str
    text: str
    digest: str
    function: str
    parameters: dict[str, object]
    output_schema: dict[str, object] | None = None
    experiment: str = ""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] | None = None
    requirements: tuple[str, ...] = ()
    example_usage: str = ""
    shown: Mapping[str, object] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    examples: tuple[Example, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def entry_file(self) -> str:
        """The name of the file that has to hold the function."""
        return f"{self.name}.py"

    @property
    def asks_for_partial_results(self) -> bool:
        """Whether what was achieved has to survive a failure."""
        return any("partial result" in line.lower() for line in self.requirements)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened to a request. `number` counts from 1 without gap; `at` is RFC 3339 in UTC."""

    number: int
    at: str
    step: str
    text: str = ""

    def to_json(self) -> dict[str, object]:
        """As plain facts."""
        return {"number": self.number, "at": self.at, "step": self.step, "text": self.text}


@dataclass(frozen=True, kw_only=True, slots=True)
class Filed:
    """A request as the queue keeps it.

    `name` and `priority` are what the text says, `priority` raised by others that ask for the same. `merged_into` is the id of
    the request that is built in its place. `tool` is the address of what was built. `held` means that a person builds it and
    no lease runs. `attempts` counts how often building it was begun. Times are RFC 3339 in UTC.
    """

    id: str
    name: str
    status: Status
    priority: Priority
    text: str
    created_at: str
    updated_at: str
    experiment: str = ""
    error: str = ""
    tool: str = ""
    merged_into: str = ""
    owner: str = ""
    held: bool = False
    attempts: int = 0
    requesters: int = 1
    allowance: Allowance = Allowance()

    def to_json(self) -> dict[str, object]:
        """As every face shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "status": str(self.status),
            "priority": str(self.priority),
            "experiment": self.experiment or None,
            "tool": self.tool or None,
            "error": self.error or None,
            "mergedInto": self.merged_into or None,
            "owner": self.owner or None,
            "held": self.held,
            "attempts": self.attempts,
            "requesters": self.requesters,
            "allowance": self.allowance.to_json(),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "yaml": self.text,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A request that was filed. `merged` means that the same is requested already, and is built once."""

    filed: Filed
    warnings: tuple[str, ...] = ()
    merged: bool = False

    def to_json(self) -> dict[str, object]:
        """As every interface shows it."""
        return {**self.filed.to_json(), "warnings": list(self.warnings), "merged": self.merged}


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The right to build one request, until the lease ends or another builder claims it: `fence` grows with every claim."""

    id: str
    fence: int
    owner: str
    seconds: float
    attempts: int
    text: str
    allowance: Allowance = Allowance()


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """Something that waits for tools; ready when none of the requests it waits for is open any more.

    `waits_for` are the names of the tools that are still missing, `requests` the ids of all requests it was named in.
    """

    id: str
    ready: bool
    waits_for: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    released_at: str = ""

    def to_json(self) -> dict[str, object]:
        """As every face shows it."""
        return {
            "id": self.id,
            "status": "ready" if self.ready else "blocked",
            "waitsFor": list(self.waits_for),
            "requests": list(self.requests),
            "releasedAt": self.released_at or None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """What was built and proved: the address of the tool, where it lies from the project, and its content hash."""

    name: str
    version: str
    address: str
    path: str
    digest: str
