"""What a Crib keeps: on disk in the folder of its project, else in memory for as long as it lives."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from toolcrib.core.call_counts import Metrics
from toolcrib.core.journal import FileJournal, MemoryJournal, read_lines
from toolcrib.infra.files.disk import make_folder
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from toolcrib.infra.secrets.lookup import Secrets
    from toolcrib.infra.settings import Settings
    from toolcrib.model.protocols import Journal, Line, Store

DATA_FOLDER = ".toolcrib"
SECRETS_FILE = "secrets.json"


@runtime_checkable
class Gathering(Protocol):
    """A journal that gathers lines and hands them on later."""

    def flush(self) -> None:
        """Hand on what was gathered."""


class Data:
    """Documents, what happened, secrets and keys; each is opened when it is first needed. `get` makes a registered resource."""

    def __init__(self, settings: Settings, get: Callable[[str], Any]) -> None:
        self._settings = settings
        self._get = get
        # Every thread that makes calls counts in the same place.
        self._metrics: Metrics | None = None
        self._making = threading.Lock()

    @property
    def path(self) -> Path | None:
        """The folder, whether it is there or not; None without a project."""
        root = self._settings.root
        return None if root is None else root / DATA_FOLDER

    def folder(self) -> Path:
        """The folder, made if it is not there."""
        if self.path is None:
            raise ToolError(Kind.VALIDATION, "there is no project to keep anything in; make one with: crib init")
        make_folder(self.path)
        return self.path

    def file(self, name: str) -> Path | None:
        """Where a file of that name lies or would; None without a project."""
        return None if self.path is None else self.path / name

    @cached_property
    def store(self) -> Store:
        """Where documents are kept."""
        return self._get("store")  # type: ignore[no-any-return]  # what is registered as a store is one

    @cached_property
    def journal(self) -> Journal:
        """Where calls are written down."""
        if self.path is None:
            return MemoryJournal(on_lines=self._count)
        return FileJournal(self.path / "journal", on_lines=self._count)

    @property
    def metrics(self) -> Metrics:
        """How often each tool was called, and when last."""
        with self._making:
            if self._metrics is None:
                self._metrics = Metrics(self.file("counts.sqlite3"), gather=self._gather, history=self._read_history)
            return self._metrics

    @property
    def key(self) -> bytes:
        """The key that signs confirmations and the tokens of pages."""
        return self._get("key")  # type: ignore[no-any-return]  # see above

    @property
    def secrets(self) -> Secrets:
        """The secrets of HTTP tools."""
        return self._get("secrets")  # type: ignore[no-any-return]  # see above

    def problems(self) -> list[ToolError]:
        """What keeps secrets from being read, where there are any."""
        settings = self._settings
        kept = self.file(SECRETS_FILE)
        if not (settings.secrets_file or settings.secrets_keyring or (kept is not None and kept.exists())):
            return []
        try:
            self.secrets.check()
        except ToolError as problem:
            return [problem]
        return []

    def _count(self, lines: Sequence[Line]) -> None:
        # A method and not `metrics.note` itself: who makes no call needs no metrics.
        self.metrics.note(lines)

    def _read_history(self) -> Iterator[dict[str, object]]:
        return iter(()) if self.path is None else read_lines(self.path / "journal")

    def _gather(self) -> None:
        journal = self.journal
        if isinstance(journal, Gathering):
            journal.flush()

    def close(self) -> None:
        """Write down what is owed."""
        self.journal.close()
        if self._metrics is not None:
            self._metrics.close()
