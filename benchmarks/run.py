"""Measures what Toolcrib promises about speed: `make bench [ARGS="call cold peers load scripts folders store archive limits search http_tool sql_tool http stream mcp requests"]`.

Every figure is a ratio against a reference measured in the same run: rounds of both are interleaved, each round takes the
best of its kind away from noise by its length, and the median over rounds counts.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

ROUNDS = 15
CALLS = 4_000

Work = Callable[[], Awaitable[object]]


async def seconds_per_call(work: Work, calls: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(calls):
        await work()
    return (clock() - started) / calls


async def compare(
    works: dict[str, Work],
    *,
    rounds: int = ROUNDS,
    calls: dict[str, int] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds per call of each, measured in turn, round after round.

    What waits for nothing is measured with `time.thread_time`, which other work on the machine disturbs less.
    """
    figures: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        await seconds_per_call(work, 200, clock)
    for _ in range(rounds):
        for name, work in works.items():
            figures[name].append(await seconds_per_call(work, (calls or {}).get(name, CALLS), clock))
    return {name: statistics.median(times) for name, times in figures.items()}


def show(title: str, rows: list[tuple[str, float, float | None, float | None]]) -> bool:
    """Print rows of (name, seconds, ratio, limit); True if every ratio keeps its limit."""
    print(f"\n{title}")
    kept = True
    for name, seconds, ratio, limit in rows:
        text = f"  {name:<44} {seconds * 1e6:>12,.2f} µs"
        if ratio is not None:
            text += f"   {ratio:>7.2f} x"
        if limit is not None and ratio is not None:
            kept = kept and ratio <= limit
            text += f"   limit {limit:g}  {'ok' if ratio <= limit else 'MISSED'}"
        print(text)
    return kept


def main(wanted: list[str]) -> int:
    """Run the wanted measurements, all by default."""
    sys.path.insert(0, __file__.rpartition("/")[0])
    import bench_archive
    import bench_call
    import bench_cold
    import bench_folders
    import bench_http
    import bench_http_tool
    import bench_limits
    import bench_load
    import bench_mcp
    import bench_peers
    import bench_requests
    import bench_scripts
    import bench_search
    import bench_sql_tool
    import bench_store
    import bench_stream

    known = {
        "call": bench_call,
        "load": bench_load,
        "cold": bench_cold,
        "scripts": bench_scripts,
        "folders": bench_folders,
        "store": bench_store,
        "archive": bench_archive,
        "limits": bench_limits,
        "search": bench_search,
        "http_tool": bench_http_tool,
        "http": bench_http,
        "sql_tool": bench_sql_tool,
        "stream": bench_stream,
        "mcp": bench_mcp,
        "requests": bench_requests,
        "peers": bench_peers,
    }
    missed = [name for name in wanted or known if not asyncio.run(known[name].run())]
    print(f"\n{'every limit is kept' if not missed else 'MISSED: ' + ', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
