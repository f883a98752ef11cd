"""Numbers for rows in the order in which searches give them: the newest first, then by id.

A full-text index of SQLite goes through rows in the order of their numbers, and stops as soon as a page is full. So the number
of a row is its place: the time that is left until the end of time, and a slot among the rows of the same millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

END_OF_TIME = 2**42 - 1
SLOTS = 2**20
# How far apart rows stand that come one behind the other, so that others find room between them.
STRIDE = 16


def first_place(moment: int) -> int:
    """The place before that of every row of this millisecond."""
    return (END_OF_TIME - min(moment, END_OF_TIME)) * SLOTS


def place_behind(connection: sqlite3.Connection, moment: int, id_: str) -> int:
    """From which place on the rows lie that come behind the one of this time and id, whether it exists or not."""
    behind = _behind(connection, moment, id_)
    return behind[1] if behind else first_place(moment) + SLOTS


def free_places(connection: sqlite3.Connection, moment: int, ids: list[str]) -> dict[str, int] | None:
    """Places for new rows of one millisecond between those that stand there; None if some lie too close for that.

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
    """Places for all the rows of one millisecond, as far apart as half of its slots allow."""
    step = max(1, SLOTS // 2 // (len(ids) + 1))
    return {id_: first_place(moment) + step * number for number, id_ in enumerate(ids, 1)}


def _gaps(connection: sqlite3.Connection, moment: int, ids: list[str]) -> Iterator[tuple[list[str], int, int]]:
    """The new ids that lie between the same two neighbours, and the places of these."""
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
