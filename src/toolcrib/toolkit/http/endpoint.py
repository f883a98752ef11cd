"""One HTTP operation as a fact, and the table of a feature's operations: routes, checks and OpenAPI come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolcrib.toolkit.http.messages import Answer, Request

if TYPE_CHECKING:
    import asyncio

    from toolcrib.model.access import Scope
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.contract import Body, Parameter, Reply

# A method of the class whose instance `EndpointTable.make` gives.
Handler = Callable[[Any, Request], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One HTTP operation.

    `path` has its free words in braces; `aliases` are further paths with their names. `scope` is what a token must be good
    for, and None leaves the endpoint open to everyone. `refusals` are the statuses that are its own, beside those that every
    endpoint answers. The problems of an `is_call` are failed results as well.
    """

    name: str
    method: str
    path: str
    handler: Handler
    scope: Scope | None
    summary: str
    replies: Mapping[int, Reply]
    description: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    body: Body | None = None
    refusals: tuple[int, ...] = ()
    is_call: bool = False

    @property
    def names(self) -> Mapping[str, str]:
        """The name of the operation at each of its paths."""
        return {self.path: self.name, **self.aliases}


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointTable:
    """The endpoints of a feature, described under one tag.

    `make` gives the object that handles them, from a `Host`. `places` are the parameters that stand in braces in paths, and
    `schemas` what replies and bodies refer to.
    """

    tag: str
    summary: str
    make: Callable[[Any], object]
    endpoints: tuple[Endpoint, ...]
    places: tuple[Parameter, ...] = ()
    schemas: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Host:
    """What endpoints are made from. `ending` is set when the server ends, for answers that would go on."""

    crib: Any  # a Crib, which lies above this module; each feature takes the part that is its own
    threads: Threads
    ending: asyncio.Event
