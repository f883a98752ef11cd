"""Switches of bundles and tools that are written down elsewhere: what they are stays theirs, whether they are on is kept here."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.features.bundles.stored_documents import write_time
from toolcrib.lib.ids import is_uuid7
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.model.protocols import Store

SPACE = "switches"
LOOK_SECONDS = 0.1
MAX_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """Whether something is on, and when that was last changed."""

    enabled: bool = True
    toggled_at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """The switches of one bundle: its own, and those of its tools by `slug@version`; a broken one has a `problem`."""

    bundle: Switch = Switch()
    tools: Mapping[str, Switch] = field(default_factory=dict)
    problem: str = ""

    def why_off(self, tool: str = "") -> str:
        """Why the tool, or the bundle itself, is off; empty if it is on."""
        if self.problem:
            # Nobody knows what was switched off, so all of it is.
            return self.problem
        if not self.bundle.enabled:
            return "its bundle is switched off" if tool else "its own switch is off"
        return "its own switch is off" if not self.tools.get(tool, ON).enabled else ""


ON = Switch()
ALL_ON = Board()


class Overlay:
    """The boards of all bundles, at most 100 ms behind their documents. Threads may share it."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._stamps: dict[str, str] = {}
        self.boards: Mapping[str, Board] = {}

    def look(self) -> Mapping[str, Board]:
        """The boards by the ids of their bundles; the same object until one changes."""
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
        """The board of a bundle as its document is now."""
        return self._read(_key(bundle_id))

    def switch(self, bundle_id: str, tool: str, *, enabled: bool) -> Switch:
        """Switch a tool, or the bundle itself where no tool is named; the caller holds the bundle's lock."""
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
        return after

    def _look_again(self) -> None:
        """Look anew the next time; whoever is looking now may have begun before something was written, and is waited for."""
        with self._lock:
            self._look_at = 0.0

    def _read(self, key: str) -> Board:
        data = self._store.get(key)
        if data is None:
            return ALL_ON
        try:
            return _read_board(data, key)
        except ToolError as problem:
            return Board(problem=problem.message)


def _key(bundle_id: str) -> str:
    return f"{SPACE}/{bundle_id}.json"


def _bundle_at(key: str) -> str:
    """The id of the bundle whose switches lie there; empty for what is nothing of ours."""
    name = key.removeprefix(f"{SPACE}/").removesuffix(".json")
    return name if is_uuid7(name) and _key(name) == key else ""


def _write(bundle_id: str, board: Board) -> bytes:
    from toolcrib.lib.document_format import write_tool

    tools = {name: _to_json(switch) for name, switch in sorted(board.tools.items())}
    return write_tool({"bundleID": bundle_id, **_to_json(board.bundle), "tools": tools})


def _to_json(switch: Switch) -> dict[str, object]:
    return {"isEnabled": switch.enabled, "toggledAt": switch.toggled_at}


def _read_board(data: bytes, place: str) -> Board:
    from toolcrib.lib.documents import read_jsonc

    document = read_jsonc(data, place, max_bytes=MAX_BYTES)
    tools = document.get("tools", {}) if isinstance(document, dict) else None
    if not isinstance(tools, dict):
        raise ToolError(Kind.VALIDATION, f"{place}: is not a document of switches; repair or remove it")
    switches = {name: _read_switch(switch, f"{place}: tools: {name!r:.80}") for name, switch in tools.items()}
    return Board(bundle=_read_switch(document, place), tools=switches)


def _read_switch(value: object, place: str) -> Switch:
    enabled = value.get("isEnabled", True) if isinstance(value, dict) else None
    toggled_at = value.get("toggledAt", "") if isinstance(value, dict) else None
    if not isinstance(enabled, bool) or not isinstance(toggled_at, str):
        raise ToolError(Kind.VALIDATION, f'{place}: write "isEnabled": true or "isEnabled": false')
    return Switch(enabled=enabled, toggled_at=toggled_at)
