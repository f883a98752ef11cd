"""The state of a running server: readiness, connections, requests in progress, sessions and metrics."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import time
from bisect import bisect_left
from collections import Counter
from contextvars import Context
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.lib import __version__
from toolcrib.model.errors import RETRY_AFTER, Kind, ToolError
from toolcrib.toolkit.http.concurrency import Admission
from toolcrib.toolkit.http.endpoint import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.interfaces.http.settings import ServerSettings
    from toolcrib.model.session import Session
    from toolcrib.toolkit.http.endpoint import EndpointTable


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Tool names come from clients: so many get a time series of their own, the rest share one.
MAX_TOOLS = 1_000
OTHERS = "(others)"
UNKNOWN = "(unknown)"
NO_ROUTE = "(none)"

HELP = {
    "toolcrib_ready": "Whether the server accepts work.",
    "toolcrib_calls_running": "Calls of tools that are running.",
    "toolcrib_calls_queued": "Calls of tools that wait for a slot.",
    "toolcrib_calls_refused_total": "Calls of tools that were refused because too many wait.",
    "toolcrib_calls_total": "Calls of tools by outcome.",
    "toolcrib_http_connections": "Connections that are open.",
    "toolcrib_http_connections_refused_total": "Connections that were refused because too many are open.",
    "toolcrib_http_requests_in_flight": "Requests that are being answered.",
    "toolcrib_http_requests_total": "Requests by route, method and status.",
    "toolcrib_http_request_seconds": "How long requests took, by route and class of status.",
    "toolcrib_http_malformed_total": "Malformed requests, by status.",
    "toolcrib_build_info": "Version of Toolcrib and Python.",
    "process_resident_memory_bytes": "Resident memory.",
    "process_open_fds": "Open file descriptors.",
    "process_cpu_seconds_total": "CPU time of the server.",
    "process_start_time_seconds": "Start time of the server.",
}
# A search for problems that takes less is made for each request; a longer one takes at most 1/20 of the time.
QUICK_FINDING_SECONDS = 0.001
FINDING_SHARE = 20
# How long a client waits for the first search.
FIRST_FINDING_SECONDS = 0.3
# An IPv6 client usually owns a /64.
SHARED_BITS = 64


class TimedRequest(Protocol):
    """A request in progress with a deadline."""

    def look(self, now: float) -> None:
        """Cancel it if its deadline has passed."""


class Service:
    """The state of a running server: readiness, admission of calls, connections, requests in progress, and metrics.

    `ending` is set at shutdown, so that streams end, and `listing` is the first listing of all tools. Every call of a tool has a slot of `admission` while it runs. `/readyz`
    answers with `ready`, and `/metrics` with `metrics_text()`.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.ending = asyncio.Event()
        self.listing: asyncio.Future[None] | None = None
        self.admission = Admission(settings.concurrency, settings.queue)
        # Behind the loopback address are all programs of this machine, and often a proxy for all clients.
        is_limited = "address_connections" in settings.explicit_keys
        self.connections = Connections(
            settings.connections, settings.address_connections, is_loopback_limited=is_limited
        )
        self.exchanges: set[TimedRequest] = set()
        self.metrics = HttpMetrics()

    @property
    def ready(self) -> bool:
        """Whether the server accepts work."""
        return not self.ending.is_set() and (self.listing is None or self.listing.done())

    def look(self, now: float) -> None:
        """Cancel every request whose deadline has passed."""
        for exchange in tuple(self.exchanges):
            exchange.look(now)

    def metrics_text(self, shows: Callable[[str], bool] = lambda _: True) -> str:
        """All metrics, in the text format of Prometheus, but for calls of tools that `shows` does not show."""
        admission, connections = self.admission, self.connections
        return self.metrics.text(
            gauges={
                "toolcrib_ready": int(self.ready),
                "toolcrib_calls_running": admission.running,
                "toolcrib_calls_queued": admission.queued,
                "toolcrib_http_connections": connections.total,
                "toolcrib_http_requests_in_flight": len(self.exchanges),
            },
            counters={
                "toolcrib_calls_refused_total": admission.refused,
                "toolcrib_http_connections_refused_total": connections.refused,
            },
            shows=shows,
        )


class Connections:
    """Count open connections, in total and per address, and refuse those over the limits."""

    def __init__(self, most: int, most_per_address: int, *, is_loopback_limited: bool = True) -> None:
        self.most = most
        self._most_per_address = most_per_address
        self._is_loopback_limited = is_loopback_limited
        self.total = 0
        self.refused = 0
        self._by_network: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Admit a connection from the address; False if a limit is reached."""
        network = network_of(address)
        is_full = self._by_network[network] >= self._most_per_address and not self._is_free(address)
        if self.total >= self.most or is_full:
            self.refused += 1
            return False
        self.total += 1
        self._by_network[network] += 1
        return True

    def _is_free(self, address: str) -> bool:
        """Whether only the number of all connections bounds those of the address."""
        if self._is_loopback_limited or not address:
            return False
        number = ip_address(address.partition("%")[0])
        mapped = number.ipv4_mapped if isinstance(number, IPv6Address) else None
        return (mapped or number).is_loopback

    def leave(self, address: str) -> None:
        """Count an admitted connection as closed."""
        network = network_of(address)
        self.total -= 1
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]


def network_of(address: str) -> str:
    """The unit that connections are counted by: an IPv4 address, or a /64 of IPv6."""
    if ":" not in address:
        return address
    number = ip_address(address.partition("%")[0])
    if not isinstance(number, IPv6Address):
        return str(number)
    return str(number.ipv4_mapped or int(number) >> SHARED_BITS)


class _Times:
    """A histogram of durations."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class HttpMetrics:
    """Counters of one server, used on its event loop only."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[tuple[str, int], _Times] = {}
        self._calls: dict[tuple[str, str], int] = {}
        self._tools: set[str] = set()
        self._malformed: dict[int, int] = {}

    def note_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request; `route` is a template, never a path."""
        key = (route, method, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        kind = (route, status // 100)
        times = self._times.get(kind)
        if times is None:
            times = self._times[kind] = _Times()
        times.counts[bisect_left(BUCKETS, seconds)] += 1
        times.seconds += seconds

    def note_call(self, tool: str, outcome: str) -> None:
        """Count a call by its outcome: `ok` or the kind of its error."""
        if tool not in self._tools:
            tool = self._admit(tool)
        key = (tool, outcome)
        self._calls[key] = self._calls.get(key, 0) + 1

    def _admit(self, tool: str) -> str:
        if len(self._tools) >= MAX_TOOLS:
            return OTHERS
        self._tools.add(tool)
        return tool

    def note_malformed(self, status: int) -> None:
        """Count a malformed request."""
        self._malformed[status] = self._malformed.get(status, 0) + 1

    def text(
        self, gauges: Mapping[str, float], counters: Mapping[str, float], shows: Callable[[str], bool] = lambda _: True
    ) -> str:
        """All metrics, with further gauges and counters; of calls, those of tools that `shows` shows."""
        calls = [(*key, count) for key, count in sorted(self._calls.items()) if shows(key[0])]
        lines: list[str] = []
        for name, value in gauges.items():
            lines += _family(name, "gauge", [("", value)])
        for name, value in counters.items():
            lines += _family(name, "counter", [("", value)])
        lines += _family(
            "toolcrib_http_requests_total",
            "counter",
            [(_labels(route=r, method=m, status=s), count) for (r, m, s), count in sorted(self._requests.items())],
        )
        lines += _family(
            "toolcrib_calls_total",
            "counter",
            [(_labels(tool=tool, outcome=outcome), count) for tool, outcome, count in calls],
        )
        lines += _family(
            "toolcrib_http_malformed_total",
            "counter",
            [(_labels(status=status), count) for status, count in sorted(self._malformed.items())],
        )
        lines += self._histogram()
        lines += self._process()
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name = "toolcrib_http_request_seconds"
        lines = _head(name, "histogram")
        for (route, hundreds), times in sorted(self._times.items()):
            below, names = 0, {"route": route, "status": f"{hundreds}xx"}
            for bound, count in zip((*BUCKETS, float("inf")), times.counts, strict=True):
                below += count
                lines.append(f"{name}_bucket{_labels(**names, le=_number(bound))} {below}")
            lines.append(f"{name}_sum{_labels(**names)} {_number(times.seconds)}")
            lines.append(f"{name}_count{_labels(**names)} {below}")
        return lines

    def _process(self) -> list[str]:
        labels = _labels(version=__version__, python=platform.python_version())
        return [
            *_family("toolcrib_build_info", "gauge", [(labels, 1)]),
            *_family("process_resident_memory_bytes", "gauge", [("", _resident_bytes())]),
            *_family("process_open_fds", "gauge", [("", sum(1 for _ in Path("/proc/self/fd").iterdir()))]),
            *_family("process_cpu_seconds_total", "counter", [("", time.process_time())]),
            *_family("process_start_time_seconds", "gauge", [("", self._started)]),
        ]


def _family(name: str, kind: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    return [*_head(name, kind), *(f"{name}{labels} {_number(value)}" for labels, value in samples)]


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]


def _labels(**labels: object) -> str:
    return "{" + ",".join(f'{name}="{_escape(str(value))}"' for name, value in labels.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(value) if isinstance(value, int) else repr(round(value, 6))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


SESSION_SECONDS = 3_600
MAX_SESSIONS = 10_000
MAX_SESSIONS_OF_CALLER = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSession:
    """A session, the caller that opened it, and when it expires."""

    session: Session
    caller: str
    ends: float


class SessionStore:
    """Open sessions by id, each for its caller, for an hour."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # In the order of expiry, because all last equally long.
        self._open: dict[str, OpenSession] = {}

    def refuse_too_many(self, caller: str) -> None:
        """Refuse another session if the caller or the server has too many."""
        self._forget_old()
        own = sum(opened.caller == caller for opened in self._open.values())
        if own >= MAX_SESSIONS_OF_CALLER or len(self._open) >= MAX_SESSIONS:
            message = f"{own} sessions of yours are open, of {len(self._open)} in all; close one with DELETE"
            raise ToolError(Kind.OVERLOADED, message, retryable=True, details={RETRY_AFTER: 60})

    def add(self, session: Session, caller: str) -> OpenSession:
        """Store a new session."""
        opened = OpenSession(session=session, caller=caller, ends=self._clock() + SESSION_SECONDS)
        self._open[session.id] = opened
        return opened

    def find(self, session_id: str, caller: str) -> OpenSession:
        """The session of that id; a session of another caller is not found."""
        self._forget_old()
        opened = self._open.get(session_id)
        if opened is None or opened.caller != caller:
            message = f"there is no session {session_id[:80]!r}; open one with POST /crib/sessions"
            raise ToolError(Kind.NOT_FOUND, message)
        return opened

    def close(self, opened: OpenSession) -> None:
        """End a session."""
        opened.session.close()
        del self._open[opened.session.id]

    def _forget_old(self) -> None:
        now = self._clock()
        while self._open:
            first = next(iter(self._open.values()))
            if first.ends > now:
                return
            self.close(first)


class ProblemFinder:
    """Search for problems in a background thread, and report the last result while a new search takes long."""

    def __init__(self, find: Callable[[], Iterable[ToolError]], clock: Callable[[], float] = time.monotonic) -> None:
        self._find = find
        self._clock = clock
        self._found: list[str] | None = None
        self._took = 0.0
        self._task: asyncio.Task[None] | None = None
        self._started_at = self._due_at = -math.inf

    def start(self) -> None:
        """Start a search, unless one is running or the last one was too recent for its cost."""
        now = self._clock()
        if (self._task is not None and not self._task.done()) or now < self._due_at:
            return
        self._started_at = now
        # Its result is for every caller, so it is not limited to what the one sees that happens to ask.
        self._task = asyncio.create_task(self._look(), context=Context())

    async def read(self) -> list[str] | None:
        """The messages of all problems; None if the first search has not finished within a moment."""
        self.start()
        is_quick = self._took < QUICK_FINDING_SECONDS
        left = FIRST_FINDING_SECONDS + self._started_at - self._clock() if self._found is None or is_quick else 0.0
        if self._task is not None and left > 0:
            await asyncio.wait({self._task}, timeout=left)
        if self._task is not None and self._task.done():
            self._task.result()
        return self._found

    async def _look(self) -> None:
        try:
            self._found = await asyncio.to_thread(lambda: [problem.message for problem in self._find()])
        except ToolError as problem:
            self._found = [problem.message]
        finally:
            ended = self._clock()
            self._took = ended - self._started_at
            self._due_at = ended + FINDING_SHARE * self._took if self._took >= QUICK_FINDING_SECONDS else ended


@dataclass(frozen=True, kw_only=True)
class HttpHost(Host):
    """A host with the state of this interface; `tables` are all endpoints, for the OpenAPI document."""

    service: Service
    sessions: SessionStore
    problems: ProblemFinder
    tables: tuple[EndpointTable, ...]
    needs_token: bool
