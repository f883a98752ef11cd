"""Requests for tools that do not exist yet: file them, follow them, deliver what was made for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.requests import read_request, set_field, write_request
from toolcrib.queues.refusals import unknown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from toolcrib.builder.building import Bench
    from toolcrib.crib.waiting import Waiting
    from toolcrib.model.protocols import Queue
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Status, ToolRequest

    # Within the class below, `list` is what it does.
    Filings = list[Filed]
    Events = list[Event]
    Experiments = list[Experiment]
    Remarks = list[str]

PLACE = "request"
MAX_TEXT_BYTES = 256_000
MAX_ID = 200
MAX_REASON = 1_000
MAX_LISTED = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A request that was filed. `merged` means that the same is wished for already, and is built once."""

    filed: Filed
    warnings: tuple[str, ...] = ()
    merged: bool = False

    def to_json(self) -> dict[str, object]:
        """As every face shows it."""
        return {**self.filed.to_json(), "warnings": list(self.warnings), "merged": self.merged}


class Requests:
    """What a crib does with requests; whatever does not wait for a tool blocks for the moment that the queue takes.

    `queue` and `bench` are made when they are first needed, and `builds`, the folder where makers work. `exists` is the
    address of a registered tool of a name, or empty. `owner` is the name that deliveries are claimed by. `strict` refuses
    what is only readable with warnings.
    """

    def __init__(
        self,
        *,
        queue: Callable[[], Queue],
        bench: Callable[[], Bench],
        exists: Callable[[str], str],
        builds: Callable[[], Path],
        owner: str = "",
        strict: bool = False,
        lease_seconds: float = 30.0,
        seconds: float = 900.0,
    ) -> None:
        self._queue = queue
        self._bench = bench
        self._exists = exists
        self._builds = builds
        self._owner = owner or f"delivery-{os.urandom(6).hex()}"
        self._strict = strict
        self._lease_seconds = lease_seconds
        self._seconds = seconds

    @cached_property
    def waiting(self) -> Waiting:
        """Those who wait for requests."""
        from toolcrib.crib.waiting import Waiting

        return Waiting(self._queue)

    def submit(self, text: str | bytes, *, strict: bool | None = None, place: str = PLACE) -> Submitted:
        """File a request under the id that it has; the same text again is no second request. Complaints name the `place`."""
        return self._file(self._read(text, strict=strict, numbered=True, place=place))

    def new(
        self, wish: Mapping[str, object] | str | bytes, *, strict: bool | None = None, place: str = PLACE
    ) -> Submitted:
        """File a wish, given as its fields or as text; without an id it gets the next number of the day."""
        text = write_request(wish) if isinstance(wish, Mapping) else wish
        return self._file(self._read(text, strict=strict, numbered=False, place=place))

    def list(self, status: Status | None = None, *, limit: int = MAX_LISTED) -> Filings:
        """The requests in the order in which they were filed; of many the newest."""
        return self._queue().requests(status, limit=max(1, min(limit, MAX_LISTED)))

    def show(self, request_id: str) -> Filed:
        """One request; raises NOT_FOUND."""
        filed = self._queue().get(request_id) if 0 < len(request_id) <= MAX_ID else None
        if filed is None:
            raise unknown(request_id)
        return filed

    def find_open(self, name: str) -> Filed | None:
        """The request for a tool of that name which is pending or being built."""
        return self._queue().find_open(name)

    def join(self, filed: Filed, experiment: str) -> Filed:
        """Have an experiment wait for what is asked for already."""
        text = set_field(filed.text, "experiment_blocked", experiment)
        # Without an id it becomes part of the open request, or of a new one if that has ended meanwhile.
        return self._queue().file(replace(read_request(text), id=""))

    def history(self, request_id: str, after: int = 0) -> Events:
        """What happened to a request, from the event behind that number on."""
        return self._queue().history(self.show(request_id).id, max(0, after))

    def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """What happens to a request, until it is over; a queue that cannot be reached for a while is asked again."""
        return self.waiting.watch(request_id, after)

    def package(self, request_id: str) -> Path | None:
        """The folder that was laid out last for whoever makes it; None if none was here."""
        from toolcrib.builder.leftovers import find_package

        return find_package(self._builds(), self._leading(request_id).id)

    async def deliver(self, request_id: str, path: Path, say: Callable[[str], None] | None = None) -> Filed:
        """Prove and publish what a person made for a request: a folder, or a file of Python.

        What the gate refuses raises VALIDATION with its complaints in the details, and the request waits as before.
        """
        import asyncio

        from toolcrib.crib.delivering import deliver

        filed = await asyncio.to_thread(self._leading, request_id)
        await deliver(
            self._queue(),
            self._bench(),
            filed,
            path,
            say or (lambda _: None),
            owner=self._owner,
            lease_seconds=self._lease_seconds,
            seconds=self._seconds,
        )
        return await asyncio.to_thread(self.show, request_id)

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Say that nobody wants it any more; whoever builds it stops."""
        return self._queue().cancel(self.show(request_id).id, reason[:MAX_REASON] or "cancelled")

    def retry(self, request_id: str) -> Filed:
        """Have one built again that failed or was cancelled."""
        return self._queue().retry(self.show(request_id).id)

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request that is not ready; one that is over has to be retried for it."""
        return self._queue().allow(self.show(request_id).id, allowance)

    def experiments(self) -> Experiments:
        """Everything that waits or waited for a tool."""
        return self._queue().experiments()

    def remarks(self) -> Remarks:
        """What the operator should know about the queue."""
        return self._queue().remarks()

    def close(self) -> None:
        """Send home whoever waits."""
        if "waiting" in self.__dict__:
            self.waiting.close()

    def _read(self, text: str | bytes, *, strict: bool | None, numbered: bool, place: str) -> ToolRequest:
        size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            message = f"a request has at most {MAX_TEXT_BYTES} bytes, this one has {size}; ask for less at once"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        is_strict = self._strict if strict is None else strict
        return read_request(text, place=place, strict=is_strict, numbered=numbered)

    def _file(self, request: ToolRequest) -> Submitted:
        queue = self._queue()
        # What is filed already may be the very request that the tool was built for.
        if not request.id or queue.get(request.id) is None:
            self._refuse_existing(request.name)
        filed = queue.file(request)
        merged = bool(filed.merged_into) or (not request.id and filed.wishes > 1)
        return Submitted(filed=filed, warnings=request.warnings, merged=merged)

    def _refuse_existing(self, name: str) -> None:
        if address := self._exists(name):
            message = f"{address} is there already: call it, or ask for a tool of another name"
            raise ToolError(Kind.CONFLICT, message, details={"tool": address})

    def _leading(self, request_id: str) -> Filed:
        """The request itself, or the one that is built in its place."""
        filed = self.show(request_id)
        return self.show(filed.merged_into) if filed.merged_into and not filed.status.is_final else filed
