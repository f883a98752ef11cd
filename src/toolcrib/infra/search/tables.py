"""Write rows to the tables of an index, and remove them.

SQLite reads rows by number, and a search stops when its page is full. So the number of a row is its place in the order
of searches, newest first and then by id: the time left until END_OF_TIME, and a slot among the rows of the same
millisecond.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

from toolcrib.infra.search import BEGINNING, END_OF_TIME, Row, moment, names_of, plain_words_of, texts_of
from toolcrib.infra.search.relevance import document_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

LAYOUT = 3
# How many rows are written at a time: full-text indexes grow fastest when rows come in order.
CHUNK = 10_000
# Not a stem: counts all rows.
ANY = ""
SLOTS = 2**20
# The gap between successive rows, so that others fit between them.
STRIDE = 16

SCHEMA = """
CREATE TABLE rows (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, bundle TEXT NOT NULL, enabled INTEGER NOT NULL,
    moment INTEGER NOT NULL, modified_at TEXT NOT NULL, slug TEXT NOT NULL, key TEXT NOT NULL, stamp TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX rows_by_bundle ON rows (bundle, id);
CREATE INDEX rows_by_slug ON rows (slug);
CREATE INDEX rows_by_moment ON rows (moment, id);
CREATE INDEX rows_off ON rows (place) WHERE enabled = 0;
CREATE TABLE tags (tag TEXT NOT NULL, id TEXT NOT NULL, bundle TEXT NOT NULL, PRIMARY KEY (tag, id)) WITHOUT ROWID;
CREATE TABLE spellings (folded TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (folded, tag)) WITHOUT ROWID;
CREATE TABLE bundles_off (bundle TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vocabulary (number INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);
CREATE TABLE stems (stem TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID
"""
FULL_TEXT = """
CREATE VIRTUAL TABLE words USING fts5 (listed, tokenize = 'ascii', prefix = '1 2 3 4', detail = none, columnsize = 0);
CREATE VIRTUAL TABLE texts USING fts5 (name, description, tags, parameters, tokenize = 'ascii')
"""
# Without full-text search the same tables are scanned.
PLAIN_TEXT = """
CREATE TABLE words (listed TEXT NOT NULL);
CREATE TABLE texts (name TEXT NOT NULL, description TEXT NOT NULL, tags TEXT NOT NULL, parameters TEXT NOT NULL)
"""


def make_tables(connection: sqlite3.Connection, *, full_text: bool) -> None:
    """Create the tables in an empty database."""
    for statement in (*SCHEMA.split(";\n"), *(FULL_TEXT if full_text else PLAIN_TEXT).split(";\n")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LAYOUT}")


def has_full_text_search() -> bool:
    """Whether this SQLite was built with full-text search."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (words)")
        except sqlite3.Error:
            return False
    return True


def put_rows(
    connection: sqlite3.Connection, rows: Iterable[Row], known_words: Container[str] = (), *, full_text: bool = True
) -> None:
    """Add or replace rows; words in `known_words` are not written again."""
    remaining = iter(rows)
    many = False
    while chunk := {row.id: row for row in islice(remaining, CHUNK)}:
        many = many or len(chunk) == CHUNK
        standing = _standing(connection, chunk)
        changed = {id_: row for id_, row in chunk.items() if id_ not in standing or not _update(connection, row)}
        remove_rows(connection, changed.keys() & standing)
        _put_in(connection, changed.values(), known_words)
    if many and full_text:
        _tidy(connection)


def remove_rows(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Remove rows."""
    found = (connection.execute("SELECT place, body FROM rows WHERE id = ?", (bound(id_),)).fetchone() for id_ in ids)
    stems: Counter[str] = Counter()
    for place, body in sorted(filter(None, found)):
        row = read_body(body)
        stems.subtract(_read_stems(connection, place))
        for table in ("words", "texts", "rows"):
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (place,))  # noqa: S608 - names of our own
        connection.executemany(
            "DELETE FROM tags WHERE tag = ? AND id = ?", ((bound(tag), bound(row.id)) for tag in row.tags)
        )
    _count_stems(connection, stems)


def read_body(body: str) -> Row:
    """A stored row."""
    id_, bundle, slug, version, name, display_name, description, tags, parameters, *rest = json.loads(body)
    enabled, created_at, modified_at, key, stamp, problem = rest
    return Row(
        id=id_,
        bundle=bundle,
        slug=slug,
        version=version,
        name=name,
        display_name=display_name,
        description=description,
        tags=tuple(tags),
        parameters=tuple((parameter, text) for parameter, text in parameters),
        enabled=enabled,
        created_at=created_at,
        modified_at=modified_at,
        key=key,
        stamp=stamp,
        problem=problem,
    )


def bound(text: str) -> str:
    """The text as SQLite accepts it: lone surrogates are replaced."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _write_body(row: Row) -> str:
    # The json module can write lone surrogates.
    return json.dumps([getattr(row, field) for field in Row.__slots__])


def _standing(connection: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """The ids that have a row."""
    by_bound = {bound(id_): id_ for id_ in ids}
    there = "SELECT id FROM rows WHERE id IN (SELECT value FROM json_each(?))"
    return {by_bound[id_] for (id_,) in connection.execute(there, (json.dumps([*by_bound]),))}


def _update(connection: sqlite3.Connection, row: Row) -> bool:
    """Update a row whose words and place stay the same; False if they do not."""
    found = connection.execute("SELECT place, body FROM rows WHERE id = ?", (bound(row.id),)).fetchone()
    if found is None:
        return False
    place, body = found
    if body == _write_body(row):
        return True
    before = read_body(body)
    if _sought(before) != _sought(row):
        return False
    connection.execute(
        "UPDATE rows SET enabled = ?, modified_at = ?, key = ?, stamp = ?, body = ? WHERE place = ?",
        (row.enabled, *map(bound, (row.modified_at, row.key, row.stamp, _write_body(row))), place),
    )
    return True


def _tidy(connection: sqlite3.Connection) -> None:
    """Merge the segments of the full-text indexes, so that searches read one."""
    for table in ("words", "texts"):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - names of our own


def _sought(row: Row) -> tuple[object, ...]:
    """What determines the place of a row and the words that find it."""
    return (row.bundle, moment(row.modified_at), *texts_of(row))


def _put_in(connection: sqlite3.Connection, rows: Iterable[Row], known_words: Container[str]) -> None:
    """Insert new rows, in the order of their places."""
    stems: Counter[str] = Counter()
    words: set[str] = set()
    tags: set[tuple[str, str, str]] = set()
    in_order = sorted(rows, key=lambda row: (-moment(row.modified_at), row.id))
    for when, group in groupby(in_order, key=lambda row: moment(row.modified_at)):
        fresh = {row.id: row for row in group}
        for id_, place in _find_places(connection, when, fresh).items():
            row = fresh[id_]
            plain, names = plain_words_of(row), names_of(row)
            words |= plain - names
            words.update(BEGINNING + name for name in names)
            tags.update((bound(tag), bound(row.id), bound(row.bundle)) for tag in row.tags)
            stems.update(_put_at(connection, place, when, row, plain, names))
    _count_stems(connection, stems)
    unknown = ((word,) for word in words if word not in known_words)
    connection.executemany("INSERT OR IGNORE INTO vocabulary (word) VALUES (?)", unknown)
    # The table grows fastest when its entries come in order.
    connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", sorted(tags))
    # A spelling stays when its last row goes: it then finds nothing, and there are few of them.
    spellings = {(tag.casefold(), tag) for tag, _, _ in tags}
    connection.executemany("INSERT OR IGNORE INTO spellings VALUES (?, ?)", spellings)


def _find_places(connection: sqlite3.Connection, when: int, fresh: dict[str, Row]) -> dict[str, int]:
    """Places for new rows of one time; if there is no space, the existing rows get new places too."""
    places = free_places(connection, when, list(fresh))
    if places is not None:
        return places
    standing = connection.execute("SELECT body FROM rows WHERE moment = ?", (when,)).fetchall()
    fresh.update((row.id, row) for row in (read_body(body) for (body,) in standing))
    remove_rows(connection, fresh)
    return spread_places(sorted(fresh), when)


def _put_at(
    connection: sqlite3.Connection, place: int, when: int, row: Row, plain: set[str], names: set[str]
) -> set[str]:
    """Insert a row; returns its stems."""
    id_, bundle = bound(row.id), bound(row.bundle)
    beginnings = {BEGINNING + name[:end] for name in names for end in range(1, len(name) + 1)}
    document = document_of(row)
    texts = (row.modified_at, row.slug, row.key, row.stamp, _write_body(row))
    connection.execute(
        "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (place, id_, bundle, row.enabled, when, *map(bound, texts)),
    )
    connection.execute("INSERT INTO words (rowid, listed) VALUES (?, ?)", (place, " ".join(plain | names | beginnings)))
    connection.execute(
        "INSERT INTO texts (rowid, name, description, tags, parameters) VALUES (?, ?, ?, ?, ?)",
        (place, *map(" ".join, document)),
    )
    return {ANY, *chain.from_iterable(document)}


def _read_stems(connection: sqlite3.Connection, place: int) -> set[str]:
    fields = connection.execute("SELECT * FROM texts WHERE rowid = ?", (place,)).fetchone()
    return {ANY, *chain.from_iterable(field.split() for field in fields)}


def _count_stems(connection: sqlite3.Connection, stems: Counter[str]) -> None:
    """Add to the number of rows with each stem."""
    connection.executemany(
        "INSERT INTO stems VALUES (?, ?) ON CONFLICT (stem) DO UPDATE SET rows = rows + excluded.rows", stems.items()
    )


def first_place(moment: int) -> int:
    """The place before every row of this millisecond."""
    return (END_OF_TIME - min(moment, END_OF_TIME)) * SLOTS


def place_behind(connection: sqlite3.Connection, moment: int, id_: str) -> int:
    """The first place after the row of this time and id, whether it exists or not."""
    behind = _behind(connection, moment, id_)
    return behind[1] if behind else first_place(moment) + SLOTS


def free_places(connection: sqlite3.Connection, moment: int, ids: list[str]) -> dict[str, int] | None:
    """Places for new rows of one millisecond between the existing ones; None if there is no space.

    `ids` are sorted.
    """
    places: dict[str, int] = {}
    for between, low, high in _gaps(connection, moment, ids):
        step = (high - low) // (len(between) + 1)
        if step == 0:
            return None
        if high == first_place(moment) + SLOTS:
            step = min(step, STRIDE)
        places.update((id_, low + step * number) for number, id_ in enumerate(between, 1))
    return places


def spread_places(ids: list[str], moment: int) -> dict[str, int]:
    """Places for all rows of one millisecond, spread over half of its slots."""
    step = max(1, SLOTS // 2 // (len(ids) + 1))
    return {id_: first_place(moment) + step * number for number, id_ in enumerate(ids, 1)}


def _gaps(connection: sqlite3.Connection, moment: int, ids: list[str]) -> Iterator[tuple[list[str], int, int]]:
    """The new ids between the same two neighbours, and the places of these."""
    start = 0
    while start < len(ids):
        behind = _behind(connection, moment, ids[start])
        end = start + 1
        while end < len(ids) and (behind is None or ids[end] < behind[0]):
            end += 1
        high = behind[1] if behind else first_place(moment) + SLOTS
        yield ids[start:end], _before(connection, moment, ids[start]), high
        start = end


def _behind(connection: sqlite3.Connection, moment: int, id_: str) -> tuple[str, int] | None:
    found: tuple[str, int] | None = connection.execute(
        "SELECT id, place FROM rows WHERE moment = ? AND id > ? ORDER BY id LIMIT 1", (moment, id_)
    ).fetchone()
    return found


def _before(connection: sqlite3.Connection, moment: int, id_: str) -> int:
    found = connection.execute(
        "SELECT place FROM rows WHERE moment = ? AND id < ? ORDER BY id DESC LIMIT 1", (moment, id_)
    ).fetchone()
    return int(found[0]) if found else first_place(moment)
