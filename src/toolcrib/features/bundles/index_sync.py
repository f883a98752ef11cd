"""Keep the search index in sync with stored documents, which other processes and people change too."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, nullcontext
from itertools import count, islice
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from toolcrib.features.bundles.index_rows import Roster, is_on, light_row, make_roster, row_of, stand_in
from toolcrib.features.bundles.stored_documents import SPACE, bundle_key, folder_of, slot_at
from toolcrib.lib.names import is_uuid7
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from toolcrib.features.bundles.stored_documents import Documents, StoredTool
    from toolcrib.infra.search import Row
    from toolcrib.infra.search.index import Index
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.protocols import Store

LOOK_SECONDS = 0.1
# A call waits while so many documents are read; more are left to a background thread.
QUICK_DOCUMENTS = 100
PATIENCE_SECONDS = 0.02
# A walk over all documents takes at most 1/20 of the time, and a long one runs in a background thread.
WALK_SHARE = 20
QUICK_WALK_SECONDS = 0.005
QUICK_WALK_DOCUMENTS = 1_000
LONGEST_WALK_SECONDS = 600.0
# Large transactions are fastest for full-text indexes, but writers in other processes wait for one.
BATCH = 5_000
LAYOUT = "1"
# How often a read is repeated if the index file is deleted meanwhile.
REPEATS = 5

T = TypeVar("T")

logger = logging.getLogger("toolcrib.catalog")


class IndexSync:
    """Checks the store at most every 100 ms, and updates the index and the roster of bundles. Threads may share it.

    A write through a store changes the stamp of its folder; the index records the stamp of each folder it is complete for, so
    that only one of many processes does the work. Edits within a file, and leftovers of a killed process, are found by a walk
    over all documents. `epoch` changes whenever anything may have changed.
    """

    def __init__(self, store: Store, index: Index, documents: Documents) -> None:
        self._store = store
        self._index = index
        self._documents = documents
        self._following = threading.RLock()
        self._enrolling = threading.Lock()
        self._walking = threading.Lock()
        self._look_at = 0.0
        self._walk_at = 0.0
        self._walk_seconds: float | None = None
        self._generation: str | None = None
        self._incarnation = 0
        # Cleared while the index is far behind, and calls use the store instead.
        self._caught_up = threading.Event()
        self._caught_up.set()
        self._closing = threading.Event()
        self._enrolled: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._walked: dict[str, int] = {}
        self._behind: set[str] = set()
        self._taken: frozenset[str] = frozenset()
        self._epochs = count(1)
        self.roster = Roster()
        self.epoch = 0

    def look(self, patience: float | None = None) -> bool:
        """Update the index, unless that was done a moment ago; True if it is complete.

        With `patience` the caller waits at most so many seconds, and a background thread does the rest.
        """
        if patience is not None:
            return self.look_quickly() or (self._caught_up.wait(patience) and self.look_quickly())
        if self._is_fresh():
            return True
        with self._following:
            if not self._is_fresh():
                self._look()
        if monotonic() >= self._walk_at:
            self._start_walk()
        return True

    def look_quickly(self) -> bool:
        """Update for a call: the roster always, the index only if that is quick.

        False if the index is far behind, and a background thread updates it; until then use the store itself.
        """
        while not self._is_fresh():
            if not self._caught_up.is_set():
                self._enrol_changed()
                return False
            if self._following.acquire(timeout=PATIENCE_SECONDS):
                try:
                    is_done = self._is_fresh() or self._look(QUICK_DOCUMENTS)
                finally:
                    self._following.release()
                if not is_done:
                    self._caught_up.clear()
                    threading.Thread(target=self._look_alone, name="toolcrib-index", daemon=True).start()
                    return False
                break
        if monotonic() >= self._walk_at:
            self._start_walk()
        return True

    def read(self, work: Callable[[], T], look: Callable[[], object] | None = None) -> T:
        """Read from the index; repeat if the index file was deleted meanwhile."""
        for _ in range(REPEATS):
            before = self._incarnation
            found = work()
            if self._index.incarnation() == before:
                return found
            (look or self.look)()
        return work()

    def _is_fresh(self) -> bool:
        """Whether the store was checked a moment ago, and the index file is still the same."""
        return monotonic() < self._look_at and self._index.incarnation() == self._incarnation

    def _look(self, most: int | None = None) -> bool:
        """Update the index; False if it is behind by more than `most` documents."""
        # Read first: if the index is lost meanwhile nothing is recorded, and the next update starts anew.
        incarnation = self._index.incarnation()
        generation = self._store.generation(SPACE)
        if generation != self._generation or not self._is_complete():
            is_done = self._follow(incarnation, QUICK_DOCUMENTS if most is None else most)
            if not is_done and most is not None:
                return False
            if not is_done:
                with self._bypassing_index():
                    self._follow(incarnation)
        self._generation, self._incarnation = generation, incarnation
        self._look_at = monotonic() + LOOK_SECONDS
        return True

    def _look_alone(self) -> None:
        try:
            with self._bypassing_index():
                self.look()
        except ToolError as problem:
            logger.warning("the index is behind: %s", problem.message)

    def look_at_everything(self) -> None:
        """Update the index and check every document, however long that takes."""
        self._look_at = 0.0
        self.look()
        with self._walking:
            self._walk()

    def close(self) -> None:
        """Stop background threads; the next process does the rest."""
        self._closing.set()
        with self._walking, self._following:
            self._closing.clear()

    def reserve_names(self, names: Collection[str]) -> None:
        """Set the names of other sources' bundles, which no stored bundle may use in addresses."""
        if self._taken != names:
            self._taken = frozenset(names)
            self._enrol({})

    @contextmanager
    def noting(self, bundle_id: str) -> Iterator[None]:
        """Around the write of one tool, under the bundle's lock: record that nothing else in the folder changed."""
        before = self._store.folders(SPACE).get(bundle_id)
        was_complete, incarnation = False, 0
        with self._logging_failure(bundle_id):
            incarnation = self._index.incarnation()
            was_complete = before is not None and self._index.facts().get(_fact(bundle_id)) == before
        yield
        with self._logging_failure(bundle_id):
            if was_complete and bundle_id not in self._behind:
                after = self._store.folders(SPACE).get(bundle_id, "")
                self._index.note({_fact(bundle_id): after}, incarnation=incarnation)
                for stamps in (self._folders, self._enrolled):
                    if stamps.get(bundle_id) == before:
                        stamps[bundle_id] = after
        self._behind.discard(bundle_id)

    def put_tool(self, stored_tool: StoredTool) -> None:
        """Index a tool that this process wrote."""
        self._begin_epoch()
        with self._logging_failure(stored_tool.slot.partition("/")[0]):
            self._index.put([row_of(stored_tool)])

    def remove_tool(self, slot: str) -> None:
        """Remove a tool from the index that this process removed."""
        self._begin_epoch()
        self._documents.forget(slot)
        with self._logging_failure(slot.partition("/")[0]):
            self._index.remove([slot])

    def put_bundle(self, bundle: Bundle) -> None:
        """Index a bundle that this process wrote."""
        self._enrol({bundle.id: bundle})
        with self._logging_failure(bundle.id):
            self._index.put_bundle(bundle.id, enabled=is_on(bundle))

    def put_folder(self, bundle: Bundle) -> None:
        """Index a bundle and all its tools, which this process wrote in one step."""
        self.put_bundle(bundle)
        with self._logging_failure(bundle.id):
            self._catch_up(bundle.id, self._store.stamps(folder_of(bundle.id)))

    def remove_bundle(self, bundle_id: str) -> None:
        """Remove a bundle from the index that this process removed."""
        self._enrol({}, gone=(bundle_id,))
        with self._logging_failure(bundle_id):
            self._index.remove_bundle(bundle_id)
            self._index.note({_fact(bundle_id): ""})

    @contextmanager
    def _logging_failure(self, bundle_id: str) -> Iterator[None]:
        """Update the index after a write; on failure the write still counts, and the next update catches up."""
        try:
            yield
        except ToolError as problem:
            logger.warning("the index is behind: %s", problem.message)
            self._behind.add(bundle_id)

    def _begin_epoch(self) -> None:
        self.epoch = next(self._epochs)

    def _is_complete(self) -> bool:
        """Whether the index is complete for all folders that this process knows."""
        facts = self._index.facts()
        return facts.get("layout") == LAYOUT and all(
            facts.get(_fact(id_)) == stamp for id_, stamp in self._folders.items()
        )

    def _follow(self, incarnation: int, most: int | None = None) -> bool:
        """Update the roster and the index for folders that have changed.

        False, without a change to the index, if more than `most` documents would have to be read.
        """
        folders = self._enrol_changed()
        facts = self._facts(incarnation)
        stamps: dict[str, dict[str, str]] = {}
        number = 0
        for id_ in (id_ for id_, stamp in folders.items() if facts.get(_fact(id_)) != stamp):
            stamps[id_] = self._store.stamps(folder_of(id_))
            number += len(self._stale(id_, stamps[id_]))
            if most is not None and number > most:
                return False
        self._sync(stamps)
        gone = _known(facts) - folders.keys()
        for id_ in gone:
            self._index.remove_bundle(id_)
        if stamps or gone:
            done = {_fact(id_): folders.get(id_, "") for id_ in (*stamps, *gone)}
            self._index.note(done, incarnation=incarnation)
        self._folders = folders
        return True

    def _enrol_changed(self) -> dict[str, str]:
        """Update the roster; return the stamps of the bundle folders."""
        # Read first, so that a bundle written meanwhile is not taken for a removed one.
        known = self.roster.bundles.keys()
        folders = {id_: stamp for id_, stamp in self._store.folders(SPACE).items() if is_uuid7(id_)}
        changed = [id_ for id_, stamp in folders.items() if self._enrolled.get(id_) != stamp]
        gone = known - folders.keys()
        if changed or gone:
            self._enrol(dict.fromkeys(changed), gone=gone)
        self._enrolled = folders
        return folders

    def _facts(self, incarnation: int) -> Mapping[str, str]:
        """The facts recorded in the index; an index of another layout is emptied first."""
        facts = self._index.facts()
        if facts.get("layout") == LAYOUT:
            return facts
        known = _known(facts)
        for id_ in known:
            self._index.remove_bundle(id_)
        self._index.note({**{_fact(id_): "" for id_ in known}, "layout": LAYOUT}, incarnation=incarnation)
        return {}

    def _enrol(self, fresh: Mapping[str, Bundle | None], gone: Collection[str] = ()) -> None:
        """Add bundles to the roster, reading the documents of those that are None, and remove others."""
        with self._enrolling:
            # Read under the lock, so that the latest read wins.
            read = {id_: self._read_bundle(id_) if bundle is None else (bundle, "") for id_, bundle in fresh.items()}
            before = self.roster
            bundles = {id_: bundle for id_, bundle in before.bundles.items() if id_ not in gone}
            problems = {id_: text for id_, text in before.problems.items() if id_ not in gone and id_ not in read}
            bundles |= {id_: bundle for id_, (bundle, _) in read.items()}
            problems |= {id_: problem for id_, (_, problem) in read.items() if problem}
            self.roster = make_roster(bundles, problems, self._taken)
        self._begin_epoch()

    def _read_bundle(self, bundle_id: str) -> tuple[Bundle, str]:
        try:
            bundle = self._documents.bundle(bundle_id)
        except ToolError as problem:
            return stand_in(bundle_id), problem.message
        if bundle is None:
            return stand_in(bundle_id), f"{bundle_key(bundle_id)} is missing; write the bundle again"
        return bundle, ""

    def _sync(self, folders: Mapping[str, Mapping[str, str]]) -> bool:
        """Update the rows of bundles to the stamps of their documents; whether all documents could be read."""
        roster = self.roster
        stale: dict[str, str] = {}
        gone: list[str] = []
        for bundle_id, there in folders.items():
            self._index.put_bundle(bundle_id, enabled=bundle_id in roster.bundles and is_on(roster.bundles[bundle_id]))
            stale |= self._stale(bundle_id, there)
            known = self._index.stamps(bundle_id).items()
            # A document written since the stamps were read stays.
            gone += [id_ for key, (id_, _) in known if key not in there and self._store.stamp(key) is None]
        if gone:
            self._index.remove(gone)
        slots = iter(sorted(stale))
        batches = iter(lambda: [*islice(slots, BATCH)], [])
        with self._bypassing_index() if len(stale) > QUICK_DOCUMENTS else nullcontext():
            were_read = [self._put({slot: stale[slot] for slot in batch}, roster) for batch in batches]
        return all(were_read)

    def _stale(self, bundle_id: str, there: Mapping[str, str]) -> dict[str, str]:
        """The slots whose rows are outdated, with the current stamps."""
        known = self._index.stamps(bundle_id)
        changed = ((key, stamp) for key, stamp in there.items() if known.get(key, ("", ""))[1] != stamp)
        return {slot: stamp for key, stamp in changed if (slot := slot_at(key))}

    @contextmanager
    def _bypassing_index(self) -> Iterator[None]:
        """Make calls use the store instead of the index while many documents are indexed."""
        self._caught_up.clear()
        try:
            yield
        finally:
            self._caught_up.set()

    def _put(self, stamps: Mapping[str, str], roster: Roster) -> bool:
        """Index these slots; whether all of their documents could be read."""
        rows = [row for slot, stamp in stamps.items() if (row := self._row(slot, stamp, roster))]
        self._index.put(rows)
        # Another writer may have updated the index before us with a newer row.
        now = self._stamps_now([row for row in rows if row.stamp])
        gone = [id_ for id_, stamp in now.items() if stamp is None]
        if gone:
            self._index.remove(gone)
        changed = {row.id: stamp for row in rows if (stamp := now.get(row.id)) and stamp != row.stamp}
        return (not changed or self._put(changed, roster)) and all(row.stamp for row in rows)

    def _stamps_now(self, rows: list[Row]) -> dict[str, str | None]:
        """The current stamps of the documents of rows, by row id."""
        if len(rows) <= QUICK_DOCUMENTS:
            return {row.id: self._store.stamp(row.key) for row in rows}
        folders = (self._store.stamps(folder_of(id_)) for id_ in {row.bundle for row in rows})
        there = {key: stamp for stamps in folders for key, stamp in stamps.items()}
        return {row.id: there.get(row.key) for row in rows}

    def _row(self, slot: str, stamp: str, roster: Roster) -> Row | None:
        """The row of a slot whose document has the stamp; None if it is gone."""
        bundle = roster.bundles.get(slot.partition("/")[0])
        if bundle is None:
            return None
        self._refuse_closing()
        data = self._documents.data(slot)
        row = None if data is None else light_row(data, slot=slot, stamp=stamp)
        if row is not None:
            return row
        stored_tool = self._documents.quick_tool(slot, bundle, roster.names[bundle.id])
        return None if stored_tool is None else row_of(stored_tool)

    def _refuse_closing(self) -> None:
        if self._closing.is_set():
            raise ToolError(Kind.TRANSIENT, "the catalogue is being closed")

    def _start_walk(self) -> None:
        # Keeps other threads from starting one; the walk itself sets when the next is due.
        self._walk_at = monotonic() + LONGEST_WALK_SECONDS
        seconds = self._walk_seconds
        is_quick = self._index.count() < QUICK_WALK_DOCUMENTS if seconds is None else seconds < QUICK_WALK_SECONDS
        if is_quick:
            self._walk_alone()
        else:
            threading.Thread(target=self._walk_alone, name="toolcrib-walk", daemon=True).start()

    def _walk_alone(self) -> None:
        if not self._walking.acquire(blocking=False):
            return
        try:
            self._walk()
        except ToolError as problem:
            logger.warning("the documents of bundles could not be looked through: %s", problem.message)
        finally:
            self._walking.release()

    def _walk(self) -> None:
        """Check the stamp of every document, and update bundles where one has changed."""
        started = monotonic()
        if self.roster.bundles.keys() - self._store.folders(SPACE).keys():
            with self._following:
                self._follow(self._index.incarnation())
        for bundle_id, stamps in _by_bundle(self._store.stamps(f"{SPACE}/")).items():
            self._refuse_closing()
            fingerprint = hash(frozenset(stamps.items()))
            if self._walked.get(bundle_id) != fingerprint and self._catch_up(bundle_id, stamps):
                self._walked[bundle_id] = fingerprint
        self._walk_seconds = monotonic() - started
        self._walk_at = monotonic() + max(LOOK_SECONDS, WALK_SHARE * self._walk_seconds)

    def _catch_up(self, bundle_id: str, stamps: Mapping[str, str]) -> bool:
        with self._following:
            self._enrol({bundle_id: None})
            return self._sync({bundle_id: stamps})


def _fact(bundle_id: str) -> str:
    return f"folder/{bundle_id}"


def _known(facts: Mapping[str, str]) -> set[str]:
    """The bundles that are recorded in the index."""
    return {name.removeprefix("folder/") for name, stamp in facts.items() if name.startswith("folder/") and stamp}


def _by_bundle(stamps: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, stamp in stamps.items():
        bundle_id = key.split("/", 2)[1]
        if is_uuid7(bundle_id):
            found.setdefault(bundle_id, {})[key] = stamp
    return found
