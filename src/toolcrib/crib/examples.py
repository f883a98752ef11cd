"""What is known of the examples that tools carry: which of them failed when they were last tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.cases import Case, CaseResult
    from toolcrib.model.tool import Tool


class Examples:
    """Remembers, in a file of the project; without one, nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def failing(self) -> dict[str, list[dict[str, object]]]:
        """The arguments of the examples that failed, by the content hashes of their tools."""
        from toolcrib.cases import read_failing

        return {} if self._file is None else read_failing(self._file)

    def remember(self, tool: Tool, tried: Iterable[tuple[Case, CaseResult]]) -> None:
        """Keep which examples of a tool failed, so that no model is shown them."""
        from toolcrib.cases import remember

        if self._file is not None:
            remember(self._file, tool, tried)
