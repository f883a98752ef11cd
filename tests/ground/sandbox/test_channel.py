import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.ground.channel import MAX_FRAME_BYTES, Frames, frame


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(min_value=0, max_value=2500), max_size=12))
def test_payloads_come_out_as_they_went_in_however_the_stream_is_cut(payloads, cuts):
    stream = b"".join(frame(payload) for payload in payloads)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    frames = Frames()
    received = []
    for start, end in itertools.pairwise(places):
        received += frames.feed(stream[start:end])
    assert received == payloads


def test_an_unfinished_payload_is_not_handed_out():
    frames = Frames()
    assert frames.feed(frame(b"whole") + frame(b"half")[:-1]) == [b"whole"]
    assert frames.feed(b"f") == [b"half"]


def test_a_frame_that_announces_too_much_is_refused_before_it_is_read():
    with pytest.raises(ValueError, match="a message of 11 bytes is longer than the 10 bytes allowed"):
        Frames(max_bytes=10).feed((11).to_bytes(4, "big"))


def test_a_payload_that_no_reader_would_take_is_not_sent():
    with pytest.raises(ValueError, match="longer than"):
        frame(bytes(MAX_FRAME_BYTES + 1))
