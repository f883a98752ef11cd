"""Finds tools: by what is typed, by what is asked, and page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.infra.search.types import Index


def open_index(path: Path | None, *, sqlite: bool = True) -> Index:
    """An index in the file at the path, or in memory without one; without SQLite, or without its full-text search, slower."""
    from toolcrib.infra.search.memory_index import MemoryIndex

    if not sqlite or not _has_full_text_search():
        return MemoryIndex()
    from toolcrib.infra.search.sqlite_index import SqliteIndex

    return SqliteIndex(path)


def _has_full_text_search() -> bool:
    try:
        import sqlite3
    except ImportError:
        return False
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (words)")
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return True
