"""How often each tool was called, and when last: counted behind the answer, by many processes at once."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolcrib.journal.lines import CALL
from toolcrib.journal.tallies import Count, Counts, Tallies, add_counts
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolcrib.model.protocols import Line

__all__ = ["Count", "Metrics"]

logger = logging.getLogger("toolcrib.journal")

# How far behind the counts of other processes may be.
LOOK_SECONDS = 0.1
# So many files of processes that have ended are summed up.
MANY_FILES = 32


class Metrics:
    """Counts the calls in lines of a journal. Without a folder the counts last as long as the process.

    `gather` has the journal hand over the lines that it has not handed over yet. A disk that refuses costs no call and,
    once it takes writes again, no count.
    """

    def __init__(
        self,
        folder: Path | None,
        clock: Callable[[], float] = time.time,
        *,
        gather: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._gather = gather
        self._tallies = None if folder is None else Tallies(folder)
        self._unwritten: Counts = {}
        self._totals: Counts = {}
        self._changed = True
        self._look_at = 0.0
        self._complaints: dict[str, str] = {}
        self._counting = threading.Lock()

    def note(self, lines: Sequence[Line]) -> None:
        """Count the calls among the lines; what was refused before it ran is no call of the tool."""
        counted = self._count(lines)
        if not counted:
            return
        with self._counting:
            add_counts(self._unwritten, counted)
            self._changed = True
            self._write()

    def read(self) -> Mapping[str, Count]:
        """The counts by the id of the tool: what this process counted to the last call, others at most a moment behind."""
        if self._gather is not None:
            self._gather()
        with self._counting:
            self._look()
            return MappingProxyType(self._totals)

    def compact(self) -> None:
        """Sum up what processes that have ended have left behind."""
        with self._counting:
            self._sum_up()

    def close(self) -> None:
        """Write down what is still in memory."""
        with self._counting:
            self._write()
            if self._unwritten and self._tallies is not None:
                calls = sum(count.calls for count in self._unwritten.values())
                logger.warning("metrics: %d calls were not counted", calls)
            self._sum_up(least=MANY_FILES)

    def _count(self, lines: Sequence[Line]) -> Counts:
        # Many lines, few tools: what is done for each line is done by comprehensions.
        ran = [line for line in lines if line[0] == CALL and (line[7] is None or line[7].get("refused") is not True)]
        keys = [line[8] or line[3] for line in ran]
        last = dict(zip(keys, ran, strict=True))
        ahead = self._clock() - time.monotonic()
        return {key: Count(calls, _spell(last[key][1] + ahead)) for key, calls in Counter(keys).items()}

    def _write(self) -> None:
        tallies = self._tallies
        if tallies is None or not self._unwritten:
            return
        if not self._try("write counts", lambda: tallies.append(self._unwritten)):
            return
        self._unwritten = {}
        if tallies.is_full:
            self._sum_up()

    def _look(self) -> None:
        """Bring the totals up to date, as far as the disk lets us."""
        now, tallies = time.monotonic(), self._tallies
        if tallies is not None and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._try("read counts", tallies.look)
            self._changed = True
        if self._changed:
            # A new dictionary: somebody may be going through the one that was handed out.
            totals = {} if tallies is None else tallies.totals()
            add_counts(totals, self._unwritten)
            self._totals, self._changed = _by_id(totals), False

    def _sum_up(self, *, least: int = 1) -> None:
        tallies = self._tallies
        if tallies is not None:
            tallies.release()
            self._try("sum counts up", lambda: tallies.compact(least))

    def _try(self, aim: str, work: Callable[[], None]) -> bool:
        """Whether the disk let us; what it says against an aim is logged once for as long as it says the same."""
        try:
            work()
        except (OSError, ToolError) as problem:
            if self._complaints.get(aim) != str(problem):
                logger.warning("metrics: cannot %s: %s", aim, problem)
            self._complaints[aim] = str(problem)
            return False
        self._complaints.pop(aim, None)
        return True


def _by_id(counts: Counts) -> Counts:
    """The counts of tools that are kept under no id moved from their addresses to the ids that these have."""
    for address in [key for key in counts if "/" in key]:
        add_counts(counts, {_id_of(address): counts.pop(address)})
    return counts


@lru_cache(maxsize=10_000)
def _id_of(address: str) -> str:
    # Only whoever reads needs ids: whoever makes one call and ends does not wait for what works them out.
    from toolcrib.pure.ids import stable_id

    return stable_id("tool", address)


def _spell(moment: float) -> str:
    milliseconds = int(moment * 1000)
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return f"{day}.{milliseconds % 1000:03d}Z"
