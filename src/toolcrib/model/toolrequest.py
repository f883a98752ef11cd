"""A request for a tool that does not exist yet, and its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Priority(StrEnum):
    """How urgent a request is."""

    HIGH = "high"  # an experiment is blocked
    MEDIUM = "medium"  # one is planned
    LOW = "low"  # nothing waits

    @property
    def rank(self) -> int:
        """The sort key of the queue: smaller numbers are built first."""
        return tuple(Priority).index(self)


class Status(StrEnum):
    """The status of a request."""

    PENDING = "pending"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether only a retry can change it."""
        return self in {Status.READY, Status.FAILED, Status.CANCELLED}


class Missing:
    """Marks an input without a default, because None is a default too."""


MISSING: Final = Missing()


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """One argument of the requested tool. `schema` is JSON Schema, with its description and default in it.

    `samples` are its values in the examples of the request.
    """

    name: str
    schema: dict[str, object]
    description: str = ""
    required: bool = False
    default: object = MISSING
    samples: tuple[object, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One value in the result of the requested tool. `is_list` says that it is an array."""

    name: str
    schema: dict[str, object]
    is_list: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """An example call of the requester; `expected` is the whole value that it must return."""

    arguments: dict[str, object]
    expected: object


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedAnswer:
    """A recorded HTTP response, which the gate serves in place of a real server while it proves a tool.

    `url` includes the query only if the query matters.
    """

    url: str
    method: str = "GET"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def to_json(self) -> dict[str, object]:
        """The response as it is stored and sent."""
        return {
            "url": self.url,
            "method": self.method,
            "status": self.status,
            "headers": dict(self.headers),
            "body": self.body,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """What the operator adds to a request: capabilities, hosts, recorded answers, and whether it may be published unproved."""

    capabilities: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()
    answers: tuple[RecordedAnswer, ...] = ()
    unproved: bool = False

    def to_json(self) -> dict[str, object]:
        """The allowance as every interface shows it, with only the number of answers, which may be long and private."""
        return {
            "capabilities": sorted(self.capabilities),
            "hosts": list(self.hosts),
            "answers": len(self.answers),
            "unproved": self.unproved,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A request for a missing tool, read and checked.

    `id` is empty for a request that has no number yet. `text` is the YAML itself. `function` is the name that the example
    imports, else the tool's name. `parameters` and `output_schema` are derived from the inputs and outputs; without outputs
    the result is unconstrained. `shown` are the literal arguments in the usage example. `hosts` restricts its network
    access; None restricts nothing. `extra` are unknown keys, stored as they are. `digest` is equal for two requests of the
    same tool.
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
        """Whether the tool has to return partial results when it fails."""
        return any("partial result" in line.lower() for line in self.requirements)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened to a request. `number` counts from 1 without gap; `at` is RFC 3339 in UTC."""

    number: int
    at: str
    step: str
    text: str = ""

    def to_json(self) -> dict[str, object]:
        """The event as JSON."""
        return {"number": self.number, "at": self.at, "step": self.step, "text": self.text}


@dataclass(frozen=True, kw_only=True, slots=True)
class Filed:
    """A request as the queue stores it.

    `name` and `priority` come from the text; `priority` is raised by other requests for the same tool. `merged_into` is the
    id of the request that is built in its place. `tool` is the address of the built tool. `held` means that a person builds
    it, without a lease. `attempts` counts the claims of builders. Times are RFC 3339 in UTC.
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
        """The JSON that every interface shows."""
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
    """A request that was filed. `merged` means that an open request for the same tool exists, so that it is built once."""

    filed: Filed
    warnings: tuple[str, ...] = ()
    merged: bool = False

    def to_json(self) -> dict[str, object]:
        """The JSON that every interface shows."""
        return {**self.filed.to_json(), "warnings": list(self.warnings), "merged": self.merged}


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A lease to build one request, until it expires or another builder claims it; `fence` is a fencing token, which grows with every claim."""

    id: str
    fence: int
    owner: str
    seconds: float
    attempts: int
    text: str
    allowance: Allowance = Allowance()


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """An experiment that waits for tools; ready when none of its requests is open any more.

    `waits_for` are the names of the tools that are still missing, `requests` the ids of all requests it was named in.
    """

    id: str
    ready: bool
    waits_for: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    released_at: str = ""

    def to_json(self) -> dict[str, object]:
        """The JSON that every interface shows."""
        return {
            "id": self.id,
            "status": "ready" if self.ready else "blocked",
            "waitsFor": list(self.waits_for),
            "requests": list(self.requests),
            "releasedAt": self.released_at or None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A tool that was built and proved: its address, its path in the project, and its content hash."""

    name: str
    version: str
    address: str
    path: str
    digest: str
