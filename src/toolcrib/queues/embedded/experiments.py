"""Experiments wait for requests: an edge for each, which is released once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Experiment
from toolcrib.queues.documents import Step
from toolcrib.queues.embedded.rows import Change, write_event

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


def add_edge(connection: sqlite3.Connection, experiment: str, number: int) -> None:
    """Have an experiment, if there is one, wait for a request."""
    if experiment:
        connection.execute("INSERT OR IGNORE INTO edges (experiment, request) VALUES (?, ?)", (experiment, number))


def release(change: Change, wish: str) -> None:
    """Let go of every experiment that waits for the wish, through whichever request."""
    connection = change.connection
    edges = connection.execute(
        "SELECT edges.experiment, request FROM edges JOIN requests ON edges.request = requests.number"
        " WHERE wish = ? AND released_at = '' ORDER BY request, edges.experiment",
        (wish,),
    ).fetchall()
    for experiment, number in edges:
        connection.execute(
            "UPDATE edges SET released_at = ? WHERE experiment = ? AND request = ?", (change.at, experiment, number)
        )
        write_event(change, number, Step.RELEASED, experiment)


def read_experiments(connection: sqlite3.Connection) -> list[Experiment]:
    """Everything that waits or waited, in the order in which it was first named."""
    rows = connection.execute(
        "SELECT edges.experiment, released_at, id, name FROM edges JOIN requests ON edges.request = requests.number"
        " ORDER BY requests.number"
    ).fetchall()
    edges: dict[str, list[sqlite3.Row]] = {}
    for row in rows:
        edges.setdefault(row["experiment"], []).append(row)
    return [_to_experiment(name, found) for name, found in edges.items()]


def _to_experiment(name: str, edges: Sequence[sqlite3.Row]) -> Experiment:
    missing = tuple(dict.fromkeys(edge["name"] for edge in edges if not edge["released_at"]))
    return Experiment(
        id=name,
        ready=not missing,
        waits_for=missing,
        requests=tuple(edge["id"] for edge in edges),
        released_at="" if missing else max(edge["released_at"] for edge in edges),
    )
