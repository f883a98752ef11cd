"""Frames and lines."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.infra.channel import MAX_FRAME_BYTES, MAX_LINE_BYTES, Frames, LineCutter, frame, to_line


def pieces(stream, cuts):
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(places)]


def take_all(cutter):
    return list(iter(cutter.next, None))


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(min_value=0, max_value=2500), max_size=12))
def test_payloads_come_out_as_they_went_in_however_the_stream_is_cut(payloads, cuts):
    frames = Frames()
    received = []
    for piece in pieces(b"".join(frame(payload) for payload in payloads), cuts):
        received += frames.feed(piece)
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=6), st.lists(st.integers(0, 500), max_size=12))
def test_messages_come_out_as_they_went_in_however_their_lines_are_cut(messages, cuts):
    cutter = LineCutter()
    received = []
    for piece in pieces(b"".join(map(to_line, messages)), cuts):
        cutter.feed(piece)
        received += [json.loads(line) for line in take_all(cutter)]
    assert received == messages


def test_an_unfinished_line_is_not_handed_out():
    cutter = LineCutter()
    cutter.feed(b"one\ntw")
    assert take_all(cutter) == [b"one"]
    cutter.feed(b"o\n\n")
    assert take_all(cutter) == [b"two", b""]


@pytest.mark.parametrize("stream", [b"x" * 11, b"x" * 10 + b"\n", b"ok\n" + b"x" * 11])
def test_a_line_that_is_too_long_is_refused_before_it_ends(stream):
    cutter = LineCutter(max_bytes=10)
    cutter.feed(stream)
    with pytest.raises(ValueError, match="a line is longer than the 10 bytes allowed"):
        take_all(cutter)


def test_a_line_of_exactly_the_limit_is_taken():
    cutter = LineCutter(max_bytes=10)
    cutter.feed(b"x" * 9 + b"\n")
    assert take_all(cutter) == [b"x" * 9]


def test_a_message_that_no_reader_would_take_is_not_sent():
    with pytest.raises(ValueError, match="longer than"):
        to_line({"text": "x" * MAX_LINE_BYTES})
    with pytest.raises(ValueError, match="JSON compliant"):
        to_line({"number": float("nan")})
