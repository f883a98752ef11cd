"""What a running server knows about itself: whether it is ready, its connections, requests, sessions and metrics."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.lib import __version__
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.concurrency import Admission
from toolcrib.toolkit.http.endpoint import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.interfaces.http.settings import ServerSettings
    from toolcrib.model.session import Session
    from toolcrib.toolkit.http.endpoint import EndpointTable


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Names of tools come from outside: so many get a line of their own, the rest share one.
MAX_TOOLS = 1_000
OTHERS = "(others)"
UNKNOWN = "(unknown)"
NO_ROUTE = "(none)"

HELP = {
    "toolcrib_ready": "Whether the server takes on work.",
    "toolcrib_calls_running": "Calls of tools that are running.",
    "toolcrib_calls_queued": "Calls of tools that wait for a place.",
    "toolcrib_calls_refused_total": "Calls of tools that were refused because too many wait.",
    "toolcrib_calls_total": "Calls of tools by what they came to.",
    "toolcrib_http_connections": "Connections that are open.",
    "toolcrib_http_connections_refused_total": "Connections that were refused because too many are open.",
    "toolcrib_http_requests_in_flight": "Requests that are being answered.",
    "toolcrib_http_requests_total": "Requests by route, method and status.",
    "toolcrib_http_request_seconds": "How long requests took, by route and class of status.",
    "toolcrib_http_malformed_total": "Requests that were refused before they could be read, by status.",
    "toolcrib_build_info": "What is running.",
    "process_resident_memory_bytes": "Memory in use.",
    "process_open_fds": "Files and connections that are open.",
    "process_cpu_seconds_total": "Time that processors worked for the server.",
    "process_start_time_seconds": "When the server was started.",
}
# Problems are looked for at each request where that takes no longer, else in at most one part in so many of the time.
QUICK_FINDING_SECONDS = 0.05
FINDING_SHARE = 20
# How long a client waits for the first finding.
FIRST_FINDING_SECONDS = 0.3
# One client of IPv6 has all addresses that share the first half.
SHARED_BITS = 64


class TimedRequest(Protocol):
    """A request that is being answered, with deadlines of its own."""

    def look(self, now: float) -> None:
        """Stop it if it is due."""


class Service:
    """Whether the server is ready for work, who may come in, who is being answered, and what has been counted.

    `ending` is set when the server ends, for those whose answer would go on and on. The application opens every call of a
    tool with `async with service.admission:`, and answers `/readyz` by `service.ready` and `/metrics` with
    `service.metrics_text()`.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.ending = asyncio.Event()
        self.admission = Admission(settings.concurrency, settings.queue)
        self.connections = Connections(settings.connections, settings.address_connections)
        self.exchanges: set[TimedRequest] = set()
        self.metrics = HttpMetrics()

    @property
    def ready(self) -> bool:
        """Whether the server takes on work."""
        return not self.ending.is_set()

    def look(self, now: float) -> None:
        """Stop every request that is due."""
        for exchange in tuple(self.exchanges):
            exchange.look(now)

    def metrics_text(self) -> str:
        """Everything that is counted, in the text format of Prometheus."""
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
        )


class Connections:
    """Counts open connections, altogether and of each address, and refuses those that are too many."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self.most = most
        self.most_per_address = most_per_address
        self.total = 0
        self.refused = 0
        self._by_neighbour: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Let a connection from the address in; False if there are enough already."""
        neighbour = neighbour_of(address)
        if self.total >= self.most or self._by_neighbour[neighbour] >= self.most_per_address:
            self.refused += 1
            return False
        self.total += 1
        self._by_neighbour[neighbour] += 1
        return True

    def leave(self, address: str) -> None:
        """A connection that was let in is over."""
        neighbour = neighbour_of(address)
        self.total -= 1
        self._by_neighbour[neighbour] -= 1
        if not self._by_neighbour[neighbour]:
            del self._by_neighbour[neighbour]


def neighbour_of(address: str) -> str:
    """Who is counted as one: an IPv4 address, or everyone in the same half of IPv6."""
    if ":" not in address:
        return address
    number = ip_address(address.partition("%")[0])
    if not isinstance(number, IPv6Address):
        return str(number)
    return str(number.ipv4_mapped or int(number) >> SHARED_BITS)


class _Times:
    """How long something took, in buckets."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class HttpMetrics:
    """Counters of one server; only its event loop touches them."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[tuple[str, int], _Times] = {}
        self._calls: dict[tuple[str, str], int] = {}
        self._tools: set[str] = set()
        self._malformed: dict[int, int] = {}

    def note_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request was answered; `route` is a template, never a path."""
        key = (route, method, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        kind = (route, status // 100)
        times = self._times.get(kind)
        if times is None:
            times = self._times[kind] = _Times()
        times.counts[bisect_left(BUCKETS, seconds)] += 1
        times.seconds += seconds

    def note_call(self, tool: str, outcome: str) -> None:
        """One call of a tool came to `ok` or to a kind of error."""
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
        """What came was no request that the server takes."""
        self._malformed[status] = self._malformed.get(status, 0) + 1

    def text(self, gauges: Mapping[str, float], counters: Mapping[str, float]) -> str:
        """Everything, with further gauges and counters of the caller."""
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
            [(_labels(tool=tool, outcome=outcome), count) for (tool, outcome), count in sorted(self._calls.items())],
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
    """A session, the caller that opened it, and until when it is kept."""

    session: Session
    caller: str
    ends: float


class SessionStore:
    """Keeps open sessions, finds them for their callers, and forgets them after an hour."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # The first to end stands first, because all are kept for equally long.
        self._open: dict[str, OpenSession] = {}

    def refuse_too_many(self, caller: str) -> None:
        """Refuse another session where the caller or the server has enough."""
        self._forget_old()
        own = sum(opened.caller == caller for opened in self._open.values())
        if own >= MAX_SESSIONS_OF_CALLER or len(self._open) >= MAX_SESSIONS:
            message = f"{own} sessions of yours are open, of {len(self._open)} in all; close one with DELETE"
            raise ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": 60})

    def add(self, session: Session, caller: str) -> OpenSession:
        """Keep a new session."""
        opened = OpenSession(session=session, caller=caller, ends=self._clock() + SESSION_SECONDS)
        self._open[session.id] = opened
        return opened

    def find(self, session_id: str, caller: str) -> OpenSession:
        """The session of that id; one of another caller is not found either."""
        self._forget_old()
        opened = self._open.get(session_id)
        if opened is None or opened.caller != caller:
            message = f"no session goes by {session_id[:80]!r}; open one with POST /crib/sessions"
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
    """Finds what could not be loaded, in a thread, and answers from the last finding while another one takes long."""

    def __init__(self, find: Callable[[], Iterable[ToolError]], clock: Callable[[], float] = time.monotonic) -> None:
        self._find = find
        self._clock = clock
        self._found: list[str] | None = None
        self._took = 0.0
        self._task: asyncio.Task[None] | None = None
        self._started_at = self._due_at = -math.inf

    def start(self) -> None:
        """Look for problems, unless that is being done, or was done so recently that it would keep the server busy."""
        now = self._clock()
        if (self._task is not None and not self._task.done()) or now < self._due_at:
            return
        self._started_at = now
        self._task = asyncio.create_task(self._look())

    async def read(self) -> list[str] | None:
        """The messages of all problems; None if none were looked for yet and that takes longer than a moment."""
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
    """A host with what only this interface knows; `tables` are those of all endpoints, for the description of the API."""

    service: Service
    sessions: SessionStore
    problems: ProblemFinder
    tables: tuple[EndpointTable, ...]
    needs_token: bool
