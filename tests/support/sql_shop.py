"""A shop in SQLite, and documents of tools over it."""

import sqlite3
from pathlib import Path
from typing import Any

from toolcrib import Call, Crib

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
CUSTOMERS = [
    (1, "Ada", "Oslo", 12.5, b"\x00\xff"),
    (2, "Bo", "Ulm", None, None),
    (3, "Cleo", "Oslo", 0.0, b""),
    (4, "Dan", None, 3.25, None),
]


def make_shop(path: Path, *, wal: bool = False) -> None:
    """A database with a few customers and a full-text index over their names."""
    database = sqlite3.connect(path)
    if wal:
        database.execute("PRAGMA journal_mode = WAL")
    database.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, credit REAL, photo BLOB);
        CREATE TABLE orders (number INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers (id), total TEXT);
        CREATE VIRTUAL TABLE names USING fts5 (name);
        """
    )
    database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?)", CUSTOMERS)
    database.executemany("INSERT INTO names VALUES (?)", [(row[1],) for row in CUSTOMERS])
    database.commit()
    database.close()


def document(statement: str, arguments: dict[str, Any] | None = None, **impl: Any) -> dict[str, Any]:
    """The document of an SQL tool; every argument may be left out."""
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": "A statement",
        "description": "Runs a statement",
        "type": "sql",
        "isEnabled": True,
        "argSchema": {"type": "object", "properties": arguments or {}, "additionalProperties": False},
        "outputSchema": impl.pop("outputSchema", {}),
        "impl": {"database": "shop.sqlite", "statement": statement, **impl},
    }


class Shop:
    """A crib over a project with a shop; `run` stores a tool and calls it."""

    def __init__(self, root: Path, crib: Crib) -> None:
        self.root = root
        self.crib = crib
        self.database = "shop.sqlite"
        self._count = 0

    def store(self, statement: str, arguments: dict[str, Any] | None = None, **impl: Any) -> str:
        """Store a tool; its name."""
        self._count += 1
        name = f"statement{self._count}"
        self.crib.bundles.put_tool(
            BUNDLE, name, "v1", document(statement, arguments, **{"database": self.database, **impl})
        )
        return name

    async def run(
        self, statement: str, values: dict[str, Any] | None = None, arguments: dict[str, Any] | None = None, **impl: Any
    ) -> Any:
        """Store a tool and call it; arguments that are not declared take any value."""
        values = values or {}
        declared = arguments if arguments is not None else {name: {} for name in values}
        return await self.call(self.store(statement, declared, **impl), values)

    async def call(self, name: str | Call, arguments: dict[str, Any] | None = None, /, **more: Any) -> Any:
        """The result of a call, whose value may be anything."""
        return await self.crib.call(name, arguments, **more)

    def rows(self, text: str) -> list[Any]:
        """What another program reads from the database."""
        database = sqlite3.connect(self.root / "shop.sqlite")
        try:
            return database.execute(text).fetchall()
        finally:
            database.close()
