"""What the server answers, as nouns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from toolcrib.model.toolrequest import Claim, Event, Experiment, Filed, Priority, Status
from toolcrib.queues.documents import read_allowance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_filed(row: Sequence[object]) -> Filed:
    """A request, from the fields in the order in which `common.lua` names them, and its allowance."""
    texts = [_text(value) for value in row]
    request_id, name, status, priority, text, created_at, updated_at, experiment, error, tool = texts[:10]
    leader, owner, held, attempts, wishes, allowance = texts[10:]
    return Filed(
        id=request_id,
        name=name,
        status=Status(status),
        priority=Priority(priority),
        text=text,
        created_at=created_at,
        updated_at=updated_at,
        experiment=experiment,
        error=error,
        tool=tool,
        merged_into=leader,
        owner=owner,
        held=held == "1",
        attempts=int(attempts),
        wishes=int(wishes),
        allowance=read_allowance(allowance),
    )


def read_claim(outcome: Mapping[str, object], filed: Filed, owner: str, seconds: float) -> Claim:
    """The right that was given."""
    return Claim(
        id=filed.id,
        fence=int(str(outcome["fence"])),
        owner=owner,
        seconds=seconds,
        attempts=int(str(outcome["attempts"])),
        text=filed.text,
        allowance=filed.allowance,
    )


def read_event(row: object) -> Event:
    """A line of a history."""
    number, at, step, text = orjson.loads(_text(row))
    return Event(number=number, at=at, step=step, text=text)


def read_experiment(row: Sequence[object]) -> Experiment:
    """Something that waits, or waited."""
    name, ids, missing, released_at = row
    return Experiment(
        id=_text(name),
        ready=not missing,
        waits_for=tuple(dict.fromkeys(_texts(missing))),
        requests=tuple(_texts(ids)),
        released_at=_text(released_at),
    )


def read_stranger(row: Sequence[object]) -> tuple[str, bytes, int]:
    """The id of a foreign hash, its text as it was written, and how long that is; too long a text is left out."""
    name, text, length = row
    return _text(name), text if isinstance(text, bytes) else b"", int(str(length))


def _texts(values: object) -> list[str]:
    return [_text(value) for value in values] if isinstance(values, list) else []


def _text(value: object) -> str:
    """What foreign clients write need not be Unicode."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
