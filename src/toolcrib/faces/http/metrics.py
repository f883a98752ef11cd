"""What the server counts, and how it tells a Prometheus."""

from __future__ import annotations

import os
import platform
import time
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        """Everything, with further gauges and counters of whoever asks."""
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
