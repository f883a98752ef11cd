"""Plain `.py` files whose public function is the tool; see `reading` for how one is understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib.python_source import read_plain_file

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.model.tool import Tool

OTHER_FILES = frozenset({"conftest", "setup"})


class PlainFile:
    """Reads plain Python files."""

    name = "plain"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files, tests and set-up files do not."""
        stem = path.stem
        return (
            path.suffix == ".py" and stem[:1] not in "_." and not stem.startswith("test_") and stem not in OTHER_FILES
        )

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The one tool of the file."""
        return [read_plain_file(path, code)]
