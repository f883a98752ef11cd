"""A new request, written in the order of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import Priority
from toolcrib.pure.documents import check_plain
from toolcrib.pure.requests.layout import ROOT
from toolcrib.pure.requests.parameters import INPUT_KEYS, OUTPUT_KEYS
from toolcrib.pure.requests.reading import KEYS, REQUESTER, read_request
from toolcrib.pure.requests.spelling import spell_block

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 24


def write_request(fields: Mapping[str, object]) -> str:
    """A document that asks for what the fields say, named as in the format; what it could not say is refused with VALIDATION.

    Who asks is `fullsend` and the priority follows from whether an experiment is blocked, unless the fields say otherwise.
    """
    priority = Priority.HIGH if fields.get("experiment_blocked") else Priority.MEDIUM
    text = spell_request({"priority": str(priority), "requested_by": REQUESTER, **fields})
    read_request(text, numbered=fields.get("id") is not None)
    return text


def spell_request(fields: Mapping[str, object]) -> str:
    """The document of these fields, right or wrong; a field that is None is left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    check_plain(given, place="request", max_depth=MAX_DEPTH)
    ordered = _in_order(given, KEYS)
    for name, keys in (("inputs", INPUT_KEYS), ("outputs", OUTPUT_KEYS)):
        entries = ordered.get(name)
        if isinstance(entries, list):
            ordered[name] = [_in_order(entry, keys) if isinstance(entry, dict) else entry for entry in entries]
    return f"{ROOT}:{spell_block(ordered, 1)}"


def _in_order(values: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {name: values[name] for name in keys if name in values} | dict(values)
