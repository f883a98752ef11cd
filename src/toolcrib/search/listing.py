"""What lists and look-ups ask the tables of an index."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.search.finding import is_on, listed, switched_off
from toolcrib.search.shelf import bound, read_body

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping

    from toolcrib.search.nouns import Row


ALL = f"SELECT body FROM rows WHERE id > :after AND {is_on('rows.place')} ORDER BY id LIMIT :limit"  # noqa: S608 - our own words
OF_BUNDLE = f"""
SELECT id, body FROM rows WHERE bundle = :bundle AND id > :after AND {is_on("rows.place")} ORDER BY id LIMIT :limit
"""  # noqa: S608 - our own words
TAGGED = f"""
SELECT rows.body FROM tags CROSS JOIN rows ON rows.id = tags.id
WHERE tags.tag = :tag AND tags.id > :after
    AND (:bundles IS NULL OR tags.bundle IN (SELECT value FROM json_each(:bundles)))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:others) AS other
        WHERE NOT EXISTS (SELECT 1 FROM tags AS too WHERE too.tag = other.value AND too.id = tags.id)
    )
    AND {is_on("rows.place")}
ORDER BY tags.id LIMIT :limit
"""  # noqa: S608 - our own words


def row_of(connection: sqlite3.Connection, id_: str) -> Row | None:
    """The row of that id."""
    found = connection.execute("SELECT body FROM rows WHERE id = ?", (bound(id_),)).fetchone()
    return read_body(found[0]) if found else None


def rows_named(connection: sqlite3.Connection, slug: str) -> list[Row]:
    """All rows of that slug."""
    return [read_body(body) for (body,) in connection.execute("SELECT body FROM rows WHERE slug = ?", (bound(slug),))]


def bundles_off(connection: sqlite3.Connection) -> list[str]:
    """The bundles that are switched off."""
    return [bundle for (bundle,) in connection.execute("SELECT bundle FROM bundles_off")]


def switch_bundle(connection: sqlite3.Connection, bundle: str, *, enabled: bool) -> None:
    """Note whether a bundle is switched on, which is what one counts as that is not noted."""
    statement = (
        "DELETE FROM bundles_off WHERE bundle = ?" if enabled else "INSERT OR IGNORE INTO bundles_off VALUES (?)"
    )
    connection.execute(statement, (bound(bundle),))


def ids_of(connection: sqlite3.Connection, bundle: str) -> list[str]:
    """The ids of the rows of a bundle."""
    return [id_ for (id_,) in connection.execute("SELECT id FROM rows WHERE bundle = ?", (bound(bundle),))]


def count_of(connection: sqlite3.Connection) -> int:
    """How many rows there are."""
    return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])


def facts_of(connection: sqlite3.Connection) -> dict[str, str]:
    """What was noted about the index."""
    return dict(connection.execute("SELECT name, value FROM facts").fetchall())


def note_facts(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Note something about the index."""
    noted = ((bound(name), bound(value)) for name, value in facts.items())
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", noted)


def stamps_of(connection: sqlite3.Connection, bundle: str) -> dict[str, tuple[str, str]]:
    """For each document of a bundle, by its key, the id of its row and its stamp."""
    found = connection.execute("SELECT key, id, stamp FROM rows WHERE bundle = ? AND key != ''", (bound(bundle),))
    return {key: (id_, stamp) for key, id_, stamp in found}


def page_of(
    connection: sqlite3.Connection,
    *,
    after: str,
    limit: int,
    bundles: Collection[str] | None,
    tags: Collection[str],
    off: Collection[str] | None,
) -> list[Row]:
    """Rows in the order of their ids; without those that are switched off, or in a bundle that is, unless `off` is None."""
    wanted = {"after": bound(after), "limit": limit, "off": switched_off(connection, off)}
    if tags:
        # Walk along the rarest tag, whose rows are few.
        rarest, *others = sorted({bound(tag) for tag in tags}, key=lambda tag: _count_tag(connection, tag))
        wanted |= {"tag": rarest, "others": listed(others), "bundles": listed(bundles)}
        return [read_body(body) for (body,) in connection.execute(TAGGED, wanted)]
    if bundles is None:
        return [read_body(body) for (body,) in connection.execute(ALL, wanted)]
    # One walk for each bundle: a small one among many others is found without a look at the others.
    walks = [connection.execute(OF_BUNDLE, wanted | {"bundle": bound(bundle)}) for bundle in set(bundles)]
    return [read_body(body) for _, body in islice(merge(*walks), limit)]


def _count_tag(connection: sqlite3.Connection, tag: str) -> int:
    """How many rows have a tag; beyond a bound it does not matter any more."""
    found = connection.execute("SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ? LIMIT 1000)", (tag,))
    return int(found.fetchone()[0])
