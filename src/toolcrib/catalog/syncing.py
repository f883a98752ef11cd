"""Keeping an index like the documents that it is derived from, whoever changes them."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.catalog.roster import Roster, is_on, make_roster, stand_in
from toolcrib.catalog.rows import row_of
from toolcrib.catalog.slots import SPACE, bundle_key, folder_of, slot_at
from toolcrib.model.errors import ToolError
from toolcrib.pure.ids import is_uuid7

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from toolcrib.catalog.documents import Documents, Shelved
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.protocols import Store
    from toolcrib.search.nouns import Index, Row

LOOK_SECONDS = 0.1
# A walk past every document takes at most one part in so many of the time, and a long one keeps nobody waiting.
WALK_SHARE = 20
QUICK_WALK_SECONDS = 0.005
QUICK_WALK_DOCUMENTS = 1_000
LONGEST_WALK_SECONDS = 600.0
BATCH = 500
LAYOUT = "1"

logger = logging.getLogger("toolcrib.catalog")


class Syncing:
    """Looks at the store at most every 100 ms, and has the index and the roster of bundles follow. Threads may share it.

    A change that was made through a store is seen by the stamp of its folder; the index notes for which stamp of each folder
    it is complete, so that of many processes one does the work. What a person changed within a file, and what a process left
    undone that was killed, is found by a walk past all documents. `epoch` changes whenever anything may have changed.
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
        self._folders: dict[str, str] = {}
        self._walked: dict[str, int] = {}
        self._behind: set[str] = set()
        self._taken: frozenset[str] = frozenset()
        self._epochs = count(1)
        self.roster = Roster()
        self.epoch = 0

    def look(self) -> None:
        """Follow the store, unless that was done a moment ago."""
        if monotonic() < self._look_at:
            return
        with self._following:
            if monotonic() < self._look_at:
                return
            generation = self._store.generation(SPACE)
            if generation != self._generation or not self._is_complete():
                self._follow()
                self._generation = generation
            self._look_at = monotonic() + LOOK_SECONDS
        if monotonic() >= self._walk_at:
            self._start_walk()

    def look_at_everything(self) -> None:
        """Follow the store in all that it holds, however long that takes."""
        self._look_at = 0.0
        self.look()
        with self._walking:
            self._walk()

    def close(self) -> None:
        """Wait for a walk that is under way."""
        with self._walking:
            pass

    def take_names(self, names: Collection[str]) -> None:
        """Know which names are those of other sources, so that no bundle of the store is called by them."""
        if self._taken != names:
            self._taken = frozenset(names)
            self._enrol({})

    @contextmanager
    def noting(self, bundle_id: str) -> Iterator[None]:
        """Write or remove one tool, and have the index know that nothing else changed; the bundle's lock is held."""
        before = self._store.folders(SPACE).get(bundle_id)
        was_complete = False
        with self._forgiving(bundle_id):
            was_complete = before is not None and self._index.facts().get(_fact(bundle_id)) == before
        yield
        with self._forgiving(bundle_id):
            if was_complete and bundle_id not in self._behind:
                after = self._store.folders(SPACE).get(bundle_id, "")
                self._index.note({_fact(bundle_id): after})
                if self._folders.get(bundle_id) == before:
                    self._folders[bundle_id] = after
        self._behind.discard(bundle_id)

    def put_tool(self, shelved: Shelved) -> None:
        """Have a tool in the index that this process wrote."""
        self._turn_page()
        with self._forgiving(shelved.slot.partition("/")[0]):
            self._index.put([row_of(shelved)])

    def remove_tool(self, slot: str) -> None:
        """Have a tool no more that this process removed."""
        self._turn_page()
        self._documents.forget(slot)
        with self._forgiving(slot.partition("/")[0]):
            self._index.remove([slot])

    def put_bundle(self, bundle: Bundle) -> None:
        """Know a bundle that this process wrote."""
        self._enrol({bundle.id: bundle})
        with self._forgiving(bundle.id):
            self._index.put_bundle(bundle.id, enabled=is_on(bundle))

    def remove_bundle(self, bundle_id: str) -> None:
        """Know a bundle no more that this process removed."""
        self._enrol({}, gone=(bundle_id,))
        with self._forgiving(bundle_id):
            self._index.remove_bundle(bundle_id)
            self._index.note({_fact(bundle_id): ""})

    @contextmanager
    def _forgiving(self, bundle_id: str) -> Iterator[None]:
        """Tell the index of what is written; if it cannot be told, it finds out at the next look, and the write counts."""
        try:
            yield
        except ToolError as problem:
            logger.warning("the index is behind: %s", problem.message)
            self._behind.add(bundle_id)

    def _turn_page(self) -> None:
        self.epoch = next(self._epochs)

    def _is_complete(self) -> bool:
        """Whether the index knows all that this process knows; one that was lost does not."""
        facts = self._index.facts()
        return facts.get("layout") == LAYOUT and all(
            facts.get(_fact(id_)) == stamp for id_, stamp in self._folders.items()
        )

    def _follow(self) -> None:
        """Bring up to date what lies in folders that have changed: the roster of this process, the index of all."""
        folders = {id_: stamp for id_, stamp in self._store.folders(SPACE).items() if is_uuid7(id_)}
        changed = [id_ for id_, stamp in folders.items() if self._folders.get(id_) != stamp]
        self._enrol(dict.fromkeys(changed), gone=self.roster.bundles.keys() - folders.keys())
        facts = self._facts()
        for id_, stamp in folders.items():
            if facts.get(_fact(id_)) != stamp:
                self._sync(id_, self._store.stamps(folder_of(id_)))
                self._index.note({_fact(id_): stamp})
        for id_ in _known(facts) - folders.keys():
            self._index.remove_bundle(id_)
            self._index.note({_fact(id_): ""})
        self._folders = folders

    def _facts(self) -> Mapping[str, str]:
        """What was noted about the index; one of another layout is emptied first."""
        facts = self._index.facts()
        if facts.get("layout") == LAYOUT:
            return facts
        known = _known(facts)
        for id_ in known:
            self._index.remove_bundle(id_)
        self._index.note({**{_fact(id_): "" for id_ in known}, "layout": LAYOUT})
        return {}

    def _enrol(self, fresh: Mapping[str, Bundle | None], gone: Collection[str] = ()) -> None:
        """Have bundles in the roster, those that are None as their documents are, and others no more."""
        read = {id_: self._read_bundle(id_) if bundle is None else (bundle, "") for id_, bundle in fresh.items()}
        with self._enrolling:
            before = self.roster
            bundles = {id_: bundle for id_, bundle in before.bundles.items() if id_ not in gone}
            problems = {id_: text for id_, text in before.problems.items() if id_ not in gone and id_ not in read}
            bundles |= {id_: bundle for id_, (bundle, _) in read.items()}
            problems |= {id_: problem for id_, (_, problem) in read.items() if problem}
            self.roster = make_roster(bundles, problems, self._taken)
        self._turn_page()

    def _read_bundle(self, bundle_id: str) -> tuple[Bundle, str]:
        try:
            bundle = self._documents.bundle(bundle_id)
        except ToolError as problem:
            return stand_in(bundle_id), problem.message
        if bundle is None:
            return stand_in(bundle_id), f"{bundle_key(bundle_id)} is missing; write the bundle again"
        return bundle, ""

    def _sync(self, bundle_id: str, there: Mapping[str, str]) -> bool:
        """Have the rows of a bundle as its documents are, given their stamps; whether all of them could be read."""
        bundle = self.roster.bundles[bundle_id]
        self._index.put_bundle(bundle_id, enabled=is_on(bundle))
        known = self._index.stamps(bundle_id)
        stale = [key for key, stamp in there.items() if slot_at(key) and known.get(key, ("", ""))[1] != stamp]
        gone = [key for key in known if key not in there]
        all_read = True
        for start in range(0, len(stale), BATCH):
            all_read = self._put(stale[start : start + BATCH], bundle) and all_read
        if gone:
            # What came since the others were counted stays.
            self._index.remove(known[key][0] for key in gone if self._store.stamp(key) is None)
        return all_read

    def _put(self, keys: list[str], bundle: Bundle) -> bool:
        """Have the rows of these documents; whether all of those could be read."""
        rows = self._rows(keys, bundle)
        self._index.put(rows)
        # Who wrote meanwhile may have told the index before this did, so that the older word would be the last.
        now = {row.key: self._store.stamp(row.key) for row in rows if row.stamp}
        self._index.remove(row.id for row in rows if row.stamp and now[row.key] is None)
        changed = [row.key for row in rows if row.stamp and now[row.key] not in (None, row.stamp)]
        return (not changed or self._put(changed, bundle)) and all(row.stamp for row in rows)

    def _rows(self, keys: Iterable[str], bundle: Bundle) -> list[Row]:
        name = self.roster.names[bundle.id]
        slots = (slot for key in keys if (slot := slot_at(key)))
        return [row_of(shelved) for slot in slots if (shelved := self._documents.quick_tool(slot, bundle, name))]

    def _start_walk(self) -> None:
        # Nobody else starts one meanwhile; it says itself when the next is due.
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
        """Look at the stamp of every document, and follow where any is another than it was."""
        started = monotonic()
        if self.roster.bundles.keys() - self._store.folders(SPACE).keys():
            with self._following:
                self._follow()
        for bundle_id, stamps in _by_bundle(self._store.stamps(f"{SPACE}/")).items():
            fingerprint = hash(frozenset(stamps.items()))
            if self._walked.get(bundle_id) != fingerprint and self._catch_up(bundle_id, stamps):
                self._walked[bundle_id] = fingerprint
        self._walk_seconds = monotonic() - started
        self._walk_at = monotonic() + max(LOOK_SECONDS, WALK_SHARE * self._walk_seconds)

    def _catch_up(self, bundle_id: str, stamps: Mapping[str, str]) -> bool:
        with self._following:
            self._enrol({bundle_id: None})
            return self._sync(bundle_id, stamps)


def _fact(bundle_id: str) -> str:
    return f"folder/{bundle_id}"


def _known(facts: Mapping[str, str]) -> set[str]:
    """The bundles that an index was told of."""
    return {name.removeprefix("folder/") for name, stamp in facts.items() if name.startswith("folder/") and stamp}


def _by_bundle(stamps: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, stamp in stamps.items():
        bundle_id = key.split("/", 2)[1]
        if is_uuid7(bundle_id):
            found.setdefault(bundle_id, {})[key] = stamp
    return found
