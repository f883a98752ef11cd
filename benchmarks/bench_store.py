"""The store of documents: many processes that write under one lock, and what it costs to see that nothing changed."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import show
from toolcrib.infra.storage.file_store import FileStore

WRITERS = 8
SECONDS = 3.0
ROUNDS = 3
# Fewest writes of a process over most, at least one half; writes of all together over those of one alone, at least 0.6.
UNFAIRNESS = 1 / 0.5
SLOWNESS = 1 / 0.6
DOCUMENTS = 10_000
FOLDERS = 100
DOCUMENT = b'{"slug": "weather"}\n' * 50


async def run() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return all([write_together(Path(folder)), look_around(Path(folder) / "many")])


def write_together(folder: Path) -> bool:
    """One writer alone and eight together in turn, each with documents of its own, all under the lock of one bundle."""
    alone, together, unfair, waits = [], [], [], []
    for turn in range(ROUNDS):
        counts, _ = _write(folder / f"alone-{turn}", 1)
        alone.append(SECONDS / sum(counts))
        root = folder / f"together-{turn}"
        counts, waited = _write(root, WRITERS)
        together.append(SECONDS / sum(counts))
        unfair.append(max(counts) / min(counts))
        waits.append(max(waited))
        assert len(FileStore(root).keys("bundles/")) == sum(counts), "a document was lost"
    one, many = statistics.median(alone), statistics.median(together)
    return show(
        f"{WRITERS} processes writing under one lock",
        [
            ("a write of one process alone", one, 1.0, None),
            ("a write of one among many, over all", many, many / one, SLOWNESS),
            ("most writes of a process over fewest", 0.0, statistics.median(unfair), UNFAIRNESS),
            ("the longest of a hundred waits for the lock", statistics.median(waits), None, None),
        ],
    )


def _write(root: Path, writers: int) -> tuple[list[int], list[float]]:
    """The number of writes of each process, and how long each waited for the lock in the worst of a hundred cases."""
    command = [sys.executable, __file__, str(root)]
    started = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(writers)
    ]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [json.loads(process.communicate()[0]) for process in started]
    return [answer["writes"] for answer in answers], [answer["wait"] for answer in answers]


def write_until_told(root: Path, me: str) -> None:
    """What each of the processes does."""
    store, waits = FileStore(root), []
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.perf_counter() + SECONDS
    for number in itertools.count():
        asked = time.perf_counter()
        if asked > end:
            break
        with store.lock("bundle/b", 60):
            waits.append(time.perf_counter() - asked)
            store.create(f"bundles/b/{me}-{number}.json", DOCUMENT)
    print(json.dumps({"writes": len(waits), "wait": statistics.quantiles(waits, n=100)[-1]}))


def look_around(root: Path) -> bool:
    """What a reader does to see that nothing changed, in units of reading a document."""
    store = FileStore(root)
    for number in range(DOCUMENTS):
        # Written past the store: ten thousand synced writes would measure the disk.
        path = root / "bundles" / f"b{number % FOLDERS}" / f"tool-{number}@v1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DOCUMENT)
    store.replace("bundles/b0/tool-0@v1.json", DOCUMENT)
    get = _seconds(lambda: store.get("bundles/b0/tool-0@v1.json"), 2_000)
    rows = {
        "its generation": _seconds(lambda: store.generation("bundles"), 2_000),
        "its stamp": _seconds(lambda: store.stamp("bundles/b0/tool-0@v1.json"), 2_000),
        f"the stamps of {FOLDERS} folders": _seconds(lambda: store.folders("bundles"), 20),
        f"the stamps of {DOCUMENTS} documents": _seconds(lambda: store.stamps("bundles/"), 5),
    }
    return show(
        "Looking whether anything changed",
        [
            ("a document read", get, 1.0, None),
            *((name, seconds, seconds / get, None) for name, seconds in rows.items()),
        ],
    )


def _seconds(work, times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


if __name__ == "__main__":
    write_until_told(Path(sys.argv[1]), sys.argv[2])
