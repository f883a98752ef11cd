"""Store the runs of each caller, with secrets masked and up to a limit; each caller sees only its own."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from toolcrib.lib.redaction import hide_secrets
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.model.protocols import Store

SPACE = "runs"
MAX_RUN_BYTES = 64_000
MAX_OUTCOME = 300
CALLER_LETTERS = 24
STAMP_LETTERS = 12
RANDOM_BYTES = 4


class RunHistory:
    """The runs of every caller; each sees only its own. With `kept` 0 nothing is stored.

    `hide` masks the values of stored secrets.
    """

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        hide: Callable[[object], object],
        kept: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # A function, because the store of a project is created on first use.
        self._store = store
        self._hide = hide
        self._kept = kept
        self._clock = clock

    @property
    def enabled(self) -> bool:
        """Whether runs are stored."""
        return self._kept > 0

    def note(self, caller: str, tool: str, arguments: Mapping[str, object], *, ok: bool, outcome: str) -> str:
        """Store a run; returns its id. Raises LIMIT_EXCEEDED for arguments that are too large."""
        if not self.enabled:
            raise ToolError(Kind.DISABLED, "runs are not stored; set run_history.enabled to true")
        now = self._clock()
        stored = self._hide(hide_secrets(dict(arguments)))
        run: dict[str, object] = {
            "tool": tool,
            "arguments": stored,
            "masked": list(_differences(arguments, stored)),
            "ok": ok,
            "outcome": str(self._hide(outcome))[:MAX_OUTCOME],
            "at": now,
        }
        document = orjson.dumps(run)
        if len(document) > MAX_RUN_BYTES:
            message = f"the arguments are larger than {MAX_RUN_BYTES} bytes; the run is not in the history"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        run_id = f"{int(now * 1000):0{STAMP_LETTERS}x}{os.urandom(RANDOM_BYTES).hex()}"
        folder = _folder(caller)
        self._store().create(f"{folder}{run_id}.json", document)
        for old in sorted(self._store().keys(folder))[: -self._kept]:
            self._store().remove(old)
        return run_id

    def list(self, caller: str, tool: str = "") -> list[dict[str, object]]:
        """The runs of a caller, of one tool if it is named; the newest first.

        `masked` lists the paths of masked arguments; None for an older run, which does not have it.
        """
        folder, found = _folder(caller), []
        for key in sorted(self._store().keys(folder), reverse=True):
            document = self._store().get(key)
            run = None if document is None else _read(document)
            if run is not None and tool in ("", run["tool"]):
                found.append({"id": key.removeprefix(folder).removesuffix(".json"), "masked": None, **run})
        return found

    def clear(self, caller: str) -> None:
        """Remove the runs of a caller."""
        for key in self._store().keys(_folder(caller)):
            self._store().remove(key)


def _folder(caller: str) -> str:
    """The folder of a caller, by a digest, because the name of a caller may contain any characters."""
    digest = hashlib.sha256(caller.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{SPACE}/{digest[:CALLER_LETTERS]}/"


def _differences(before: object, after: object, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The paths at which two JSON values differ, each as deep as possible."""
    if isinstance(before, Mapping) and isinstance(after, Mapping) and before.keys() == after.keys():
        for key, value in before.items():
            yield from _differences(value, after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, (*path, str(place)))
    elif before != after:
        yield list(path)


def _read(document: bytes) -> dict[str, object] | None:
    """A stored run; None for a damaged document."""
    try:
        run = orjson.loads(document)
    except orjson.JSONDecodeError:
        return None
    return run if isinstance(run, dict) and {"tool", "arguments", "ok", "outcome", "at"} <= run.keys() else None
