"""Show the tools of other sources (host program, files, built-ins) as bundles beside the stored ones.

Their definitions belong to their sources; whether they are enabled is stored here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.bundles.index_rows import row_of_tool
from toolcrib.features.bundles.stored_documents import slot_of, write_time
from toolcrib.lib.document_format import write_tool
from toolcrib.lib.documents import read_jsonc
from toolcrib.lib.names import HOST, is_uuid7, stable_id
from toolcrib.model.bundle import Bundle, Kept, Owner
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.infra.search.index import Index
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Entry, Tool

SPACE = "switches"
LOOK_SECONDS = 0.1
MAX_BYTES = 1_000_000
# Listing all sources takes at most 1/10 of the time.
ASKING_SHARE = 10
OWNERS = {"": Owner.HOST, HOST: Owner.HOST, "builtin": Owner.BUILTIN, "system": Owner.BUILTIN}
DISPLAY_NAMES = {"": "Host program", HOST: "Host program", "builtin": "Built-in tools", "system": "System tools"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """Whether something is enabled, and when that was last changed."""

    enabled: bool = True
    toggled_at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """The stored state of one bundle and of its tools by `slug@version`; a broken document has a `problem`."""

    bundle: Switch = Switch()
    tools: Mapping[str, Switch] = field(default_factory=dict)
    problem: str = ""

    def why_off(self, tool: str = "") -> str:
        """Why the tool, or the bundle itself, is disabled; empty if it is enabled."""
        if self.problem:
            # It is unknown what was disabled, so everything is.
            return self.problem
        if not self.bundle.enabled:
            return "its bundle is disabled" if tool else "its isEnabled is false"
        return "its isEnabled is false" if not self.tools.get(tool, ON).enabled else ""


ON = Switch()
ALL_ON = Board()


class Overlay:
    """The stored states of all bundles, at most 100 ms behind their documents. Threads may share it.

    `on_switch` is called after each change that is made here.
    """

    def __init__(self, store: Store, clock: Callable[[], float], on_switch: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._clock = clock
        self._on_switch = on_switch
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._stamps: dict[str, str] = {}
        self.boards: Mapping[str, Board] = {}

    def look(self) -> Mapping[str, Board]:
        """The boards by bundle id; the same object until one changes."""
        if monotonic() < self._look_at:
            return self.boards
        with self._lock:
            if monotonic() < self._look_at:
                return self.boards
            stamps = {key: stamp for key, stamp in self._store.stamps(f"{SPACE}/").items() if _bundle_at(key)}
            if stamps != self._stamps:
                self.boards = {_bundle_at(key): self._read(key) for key in stamps}
                self._stamps = stamps
            self._look_at = monotonic() + LOOK_SECONDS
        return self.boards

    def board(self, bundle_id: str) -> Board:
        """Read the board of a bundle from its document."""
        return self._read(_key(bundle_id))

    def switch(self, bundle_id: str, tool: str, *, enabled: bool) -> Switch:
        """Enable or disable a tool, or without a tool the bundle; the caller holds the bundle's lock."""
        board = self.board(bundle_id)
        if board.problem:
            raise ToolError(Kind.CONFLICT, board.problem)
        before = board.tools.get(tool, ON) if tool else board.bundle
        if before.enabled == enabled:
            return before
        after = Switch(enabled=enabled, toggled_at=write_time(self._clock()))
        board = replace(board, tools={**board.tools, tool: after}) if tool else replace(board, bundle=after)
        self._store.replace(_key(bundle_id), _write(bundle_id, board))
        self._look_again()
        self._on_switch()
        return after

    def _look_again(self) -> None:
        """Invalidate the cache, after any read in progress, which may have begun before the write."""
        with self._lock:
            self._look_at = 0.0

    def _read(self, key: str) -> Board:
        data = self._store.get(key, MAX_BYTES)
        if data is None:
            return ALL_ON
        try:
            return _read_board(data, key)
        except ToolError as problem:
            return Board(problem=problem.message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The contents of other sources at a moment: bundles by id, tools by slot, and the names of bundles in addresses."""

    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)
    boards: Mapping[str, Board] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


class Sources:
    """Lists the other sources at most every 100 ms, and indexes their tools with their current state.

    Only the first listing holds a lock: the catalog that gives the entries has locks of its own.
    """

    def __init__(self, entries: Callable[[], Iterable[Entry]], overlay: Overlay, index: Index) -> None:
        self._entries = entries
        self._overlay = overlay
        self._index = index
        self._first = threading.Lock()
        self._putting = threading.Lock()
        self._ask_at = 0.0
        self._asks = count(1)
        self._turn = 0
        # The last listing, and its number.
        self._seen: tuple[Entry, ...] | None = None
        self._seen_at = 0
        self._made_of: tuple[object, object] = (None, None)
        self.snapshot = Snapshot()

    def look(self) -> Snapshot:
        """Their contents; the same object until something changes."""
        if self._seen is None:
            # Other threads wait for the first listing.
            with self._first:
                if self._seen is None:
                    self._ask()
        elif monotonic() >= self._ask_at:
            self._ask()
        if self._is_current(self._overlay.look()):
            return self.snapshot
        with self._putting:
            boards = self._overlay.look()
            if self._seen is not None and not self._is_current(boards):
                made_of = self._seen, boards
                self._put(make_snapshot(self._seen, boards))
                self._made_of = made_of
            return self.snapshot

    def _ask(self) -> None:
        number, turn, started = next(self._asks), self._turn, monotonic()
        # Keeps other threads from listing meanwhile.
        self._ask_at = started + LOOK_SECONDS
        entries = tuple(self._entries())
        with self._putting:
            # An earlier listing may finish after a later one.
            if number > self._seen_at:
                self._seen_at = number
                self._seen = entries if entries != self._seen else self._seen
            if turn == self._turn:
                self._ask_at = monotonic() + max(LOOK_SECONDS, ASKING_SHARE * (monotonic() - started))

    def _is_current(self, boards: Mapping[str, Board]) -> bool:
        seen, shown_boards = self._made_of
        return seen is self._seen and shown_boards is boards

    @property
    def were_asked(self) -> bool:
        """Whether they were listed yet."""
        return self._seen is not None

    def look_again(self) -> None:
        """List them again at the next look."""
        with self._putting:
            self._turn += 1
            self._ask_at = 0.0

    def _put(self, snapshot: Snapshot) -> None:
        rows = [row_of_tool(entry.tool, slot=slot, enabled=entry.enabled) for slot, entry in snapshot.entries.items()]
        self._index.set_own(rows)
        for bundle in snapshot.bundles.values():
            self._index.put_bundle(bundle.id, enabled=bundle.enabled)
        self.snapshot = snapshot


def make_snapshot(entries: Iterable[Entry], boards: Mapping[str, Board]) -> Snapshot:
    """The tools of other sources with their stored state."""
    bundles: dict[str, Bundle] = {}
    placed: dict[str, Entry] = {}
    names: set[str] = {HOST}
    for entry in entries:
        bundle_id = source_id(entry.tool.bundle)
        board = boards.get(bundle_id, ALL_ON)
        if bundle_id not in bundles:
            names.add(entry.tool.bundle)
            bundles[bundle_id] = bundle_of(entry.tool.bundle, board)
        reason = entry.enabled and board.why_off(tool_word(entry.tool))
        slot = slot_of(bundle_id, entry.tool.slug, entry.tool.version)
        placed[slot] = replace(entry, enabled=False, reason=reason, cure="enable it") if reason else entry
    return Snapshot(bundles=bundles, entries=placed, boards=boards, names=frozenset(names))


def bundle_of(name: str, board: Board) -> Bundle:
    """The bundle that a source of tools is shown as."""
    return Bundle(
        id=source_id(name),
        slug=name or HOST,
        display_name=DISPLAY_NAMES.get(name, name),
        enabled=not board.why_off(),
        owner=OWNERS.get(name, Owner.FILES),
        toggled_at=board.bundle.toggled_at,
    )


def kept_of(entry: Entry, bundle: Bundle, board: Board) -> Kept:
    """A tool of another source with its state."""
    tool = entry.tool
    switch = board.tools.get(tool_word(tool), ON)
    return Kept(
        id=tool.id or stable_id("tool", tool.address),
        bundle=bundle,
        slug=tool.slug,
        version=tool.version,
        tool=tool,
        enabled=switch.enabled,
        reason="" if entry.enabled else entry.reason or "its isEnabled is false",
        toggled_at=switch.toggled_at,
        stamp=f"{tool.content_hash} {switch.enabled} {switch.toggled_at}",
        warnings=tool.warnings,
    )


def tool_word(tool: Tool) -> str:
    """The key of a tool in a board."""
    return f"{tool.slug}@{tool.version}"


@lru_cache(maxsize=1_000)
def source_id(name: str) -> str:
    """The id of the bundle that a source of tools is shown as."""
    return stable_id("bundle", name)


def _key(bundle_id: str) -> str:
    return f"{SPACE}/{bundle_id}.json"


def _bundle_at(key: str) -> str:
    """The id of the bundle whose board is stored there; empty for a foreign key."""
    name = key.removeprefix(f"{SPACE}/").removesuffix(".json")
    return name if is_uuid7(name) and _key(name) == key else ""


def _write(bundle_id: str, board: Board) -> bytes:
    tools = {name: _to_json(switch) for name, switch in sorted(board.tools.items())}
    return write_tool({"bundleID": bundle_id, **_to_json(board.bundle), "tools": tools})


def _to_json(switch: Switch) -> dict[str, object]:
    return {"isEnabled": switch.enabled, "toggledAt": switch.toggled_at}


def _read_board(data: bytes, place: str) -> Board:
    document = read_jsonc(data, place, max_bytes=MAX_BYTES)
    tools = document.get("tools", {}) if isinstance(document, dict) else None
    if not isinstance(tools, dict):
        raise ToolError(Kind.VALIDATION, f"{place}: is not a valid document; repair or remove it")
    switches = {name: _read_switch(switch, f"{place}: tools: {name!r:.80}") for name, switch in tools.items()}
    return Board(bundle=_read_switch(document, place), tools=switches)


def _read_switch(value: object, place: str) -> Switch:
    enabled = value.get("isEnabled", True) if isinstance(value, dict) else None
    toggled_at = value.get("toggledAt", "") if isinstance(value, dict) else None
    if not isinstance(enabled, bool) or not isinstance(toggled_at, str):
        raise ToolError(Kind.VALIDATION, f'{place}: write "isEnabled": true or "isEnabled": false')
    return Switch(enabled=enabled, toggled_at=toggled_at)
