"""Server-sent events are read alike however their bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.lib.server_sent_events import EventReader, ServerEvent

STREAM = (
    "\ufeff: comment\r\n\r\nevent: chunk\r\ndata: one\r\ndata:two\r\nid: 7\r\n\r\nevent: empty\n\ndata: ü\rretry: 5\r\r"
    "data\n\nfield: unknown\ndata: last\n\ndata: cut off"
).encode()
EVENTS = [
    ServerEvent("chunk", "one\ntwo"),
    ServerEvent("message", "ü"),
    ServerEvent("message", ""),
    ServerEvent("message", "last"),
]


@given(places=st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
def test_events_are_the_same_wherever_the_bytes_are_cut(places):
    reader = EventReader()
    ends = [0, *places, len(STREAM)]
    found = [event for number, last in enumerate(ends[1:]) for event in reader.feed(STREAM[ends[number] : last])]
    assert found == EVENTS


@pytest.mark.parametrize("piece", [b"data: xxxxxxxxx\n", b"x", b"event: x"])
def test_an_event_that_never_ends_meets_a_limit(piece):
    reader = EventReader(max_bytes=100)
    if piece == b"event: x":
        with pytest.raises(ValueError, match="an event of more than 100 bytes"):
            reader.feed(piece * 100)
        return
    with pytest.raises(ValueError, match="an event of more than 100 bytes"):
        for _ in range(200):
            reader.feed(piece)
