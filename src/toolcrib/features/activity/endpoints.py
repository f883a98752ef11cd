"""The HTTP endpoint of the screen Activity."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.activity.statistics import sum_up
from toolcrib.model.call import Scope
from toolcrib.toolkit.http import answer_json
from toolcrib.toolkit.http.contract import Reply, whole
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.model.protocols import Journal
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

HOUR_SECONDS = 3_600
DAY, MAX_HOURS = 24, 24 * 90


class NamedToken(Protocol):
    """A token; its id is the name of the caller in the journal."""

    @property
    def id(self) -> str:
        """The id."""

    @property
    def name(self) -> str:
        """The name of its holder."""


class Tokens(Protocol):
    """The tokens of the project."""

    def list(self) -> Sequence[NamedToken]:
        """Every token."""


class ActiveCrib(Protocol):
    """What the endpoint uses of a crib."""

    @property
    def journal(self) -> Journal:
        """The journal of the project."""

    @property
    def tokens(self) -> Tokens:
        """The tokens."""


class ActivityEndpoints:
    """Sum up the journal."""

    def __init__(self, crib: ActiveCrib, threads: Threads) -> None:
        self._crib = crib
        self._threads = threads

    async def read(self, request: Request) -> Answer:
        """GET /ui/activity."""
        hours = request.query.number("hours") or DAY
        return answer_json(await self._threads.read(self._sum_up, hours))

    def _sum_up(self, hours: int) -> dict[str, object]:
        now = time.time()
        found = sum_up(self._crib.journal.read(), since=now - hours * HOUR_SECONDS, until=now)
        names = {token.id: token.name for token in self._crib.tokens.list()}
        callers = [{**row, "holder": names.get(str(row["name"]), "")} for row in found["callers"]]
        return {**found, "callers": callers}


def _make(host: Host) -> ActivityEndpoints:
    return ActivityEndpoints(host.crib, host.threads)


endpoints = (
    EndpointTable(
        tag="activity",
        summary="What was called, how long it took, and what it cost.",
        make=_make,
        described=False,
        endpoints=(
            Endpoint(
                name="readActivity",
                method="GET",
                path="/ui/activity",
                handler=ActivityEndpoints.read,
                # It names every tool and caller.
                scope=Scope.MANAGE,
                summary="Sum up the calls of the last hours.",
                query=(whole("hours", "How many hours back.", 1, MAX_HOURS, DAY),),
                replies={200: Reply(description="The figures.")},
            ),
        ),
    ),
)
