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
    ServerEvent("chunk", "one\ntwo", "7"),
    ServerEvent("message", "ü", "7"),
    ServerEvent("message", "", "7"),
    ServerEvent("message", "last", "7"),
]


@given(places=st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
def test_events_are_the_same_wherever_the_bytes_are_cut(places):
    reader = EventReader()
    ends = [0, *places, len(STREAM)]
    found = [event for number, last in enumerate(ends[1:]) for event in reader.feed(STREAM[ends[number] : last])]
    assert found == EVENTS
    assert (reader.last_id, reader.retry_seconds) == ("7", 0.005)


def test_an_event_without_data_still_moves_the_id_from_which_to_resume():
    reader = EventReader()
    assert reader.feed(b"id: 3\n\nid: 4\n") == []
    assert (reader.last_id, reader.retry_seconds) == ("3", None)


@pytest.mark.parametrize("digits", [b"123456", b"-1", b"soon"])
def test_a_time_to_reconnect_that_is_no_short_number_is_ignored(digits):
    reader = EventReader()
    reader.feed(b"retry: 20\n\nretry: " + digits + b"\n\n")
    assert reader.retry_seconds == 0.02


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
