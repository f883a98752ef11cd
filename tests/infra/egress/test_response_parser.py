"""The parser of responses gives the same result however the bytes are cut, and hands on nothing but the body."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infra.egress.http1 import MAX_CHUNK_LINE, MAX_HEAD_BYTES, MalformedError
from toolcrib.infra.egress.response_parser import MAX_AROUND, ConnectionLostError, FloodError, ResponseParser


class Record:
    """A receiver that keeps what it gets."""

    def __init__(self):
        self.head = None
        self.body = b""

    def begin(self, head, framing):
        self.head = head
        return True

    def take(self, piece):
        assert piece
        self.body += piece

    def end(self, failure):
        raise AssertionError("the connection says when it has ended")


def parse(pieces, method="GET", *, ends=False):
    """What comes of a response in pieces: how it ended, its head and its body, and whether its connection may stay."""
    record = Record()
    parser = ResponseParser(method, record)
    how = "waits"
    rest = False
    try:
        for piece in pieces:
            if parser.is_complete:
                rest = rest or bool(piece)
            else:
                parser.feed(piece)
        if ends and not parser.is_complete:
            parser.feed_end()
    except MalformedError as error:
        # Whether the bytes behind a response come with it is chance; the connection is closed in both cases.
        how = "complete" if parser.is_complete and "longer than it says" in error.reason else "malformed"
    except FloodError:
        how = "flood"
    except ConnectionLostError as lost:
        how = f"lost {lost.in_body}"
    if parser.is_complete:
        how = "complete"
    return how, record.head, record.body, how == "complete" and parser.may_stay and not rest


def cut(data, places):
    places = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


FIELDS = st.lists(
    st.tuples(
        st.sampled_from(["X-A", "Set-Cookie", "content-type", "Date"]),
        st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=10),
    ),
    max_size=4,
)


@st.composite
def responses(draw):
    """A response as servers may send it, with what it means: status, body and whether the connection stays."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in draw(FIELDS))
    body = draw(st.binary(max_size=60))
    data = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * draw(st.integers(0, 2))
    data += f"HTTP/1.1 {draw(st.sampled_from([200, 404, 500]))} Reason\r\n{fields}".encode()
    if draw(st.booleans()):
        return data + b"Content-Length: %d\r\n\r\n" % len(body) + body, body
    data += b"Transfer-Encoding: chunked\r\n\r\n"
    for piece in cut(body, draw(st.lists(st.integers(0, 60), max_size=4))):
        if piece:
            data += b"%x%b\r\n%b\r\n" % (len(piece), draw(st.sampled_from([b"", b";a=1", b" ; b"])), piece)
    return data + b"0\r\n" + draw(st.sampled_from([b"", b"X-Sum: 1\r\n"])) + b"\r\n", body


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(response=responses(), cuts=CUTS)
def test_a_response_is_the_same_however_it_is_cut(response, cuts):
    data, body = response
    whole = parse([data])
    assert whole[0] == "complete"
    assert (whole[2], whole[3]) == (body, True)
    assert parse(cut(data, cuts)) == whole


@given(response=responses())
def test_a_response_is_the_same_at_every_border_of_bytes(response):
    data, _ = response
    whole = parse([data])
    assert parse([data[index : index + 1] for index in range(len(data))]) == whole
    for place in range(len(data) + 1):
        assert parse([data[:place], data[place:]]) == whole


@given(response=responses(), more=st.binary(min_size=1, max_size=20), cuts=CUTS)
def test_what_follows_a_response_is_never_part_of_it(response, more, cuts):
    data, body = response
    how, _, read, stays = parse(cut(data + more, cuts))
    assert (how, read, stays) == ("complete", body, False)


@given(response=responses(), place=st.integers(0, 10_000), cuts=CUTS)
def test_a_response_that_is_cut_off_is_never_complete(response, place, cuts):
    data, body = response
    data = data[: place % len(data)]
    how, _, read, _ = parse(cut(data, cuts), ends=True)
    assert how in {"lost True", "lost False"}
    assert body.startswith(read)


TOKENS = st.lists(
    st.sampled_from(
        (
            *(
                b"HTTP/1.1 200 OK\r\n",
                b"HTTP/1.1 100 Go\r\n",
                b"HTTP/1.1 204 X\r\n",
                b"HTTP/1.0 200 \r\n",
                b"\r\n",
                b"\n",
            ),
            *(
                b"Content-Length: 5\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"Connection: close\r\n",
                b"\r",
                b"0\r\n\r\n",
            ),
            *(
                b"\r\n\r\n",
                b"5\r\nhello\r\n",
                b"5;x\r\n",
                b"hello",
                b"X: 1\r\n",
                b" ",
                b":",
                b"\0",
                b"\xff",
                b"5",
                b"zz",
            ),
        )
    ),
    max_size=14,
).map(b"".join)


@given(data=TOKENS, method=st.sampled_from(["GET", "HEAD"]), ends=st.booleans(), cuts=CUTS)
def test_anything_else_is_judged_the_same_however_it_is_cut(data, method, ends, cuts):
    data = b"HTTP/1.1 200 OK\r\n" + data
    assert parse(cut(data, cuts), method, ends=ends) == parse([data], method, ends=ends)


@pytest.mark.parametrize("cuts", [[], [1], [10, 30_000], range(0, 40_000, 7)])
def test_a_head_may_be_as_long_as_the_limit_and_no_longer(cuts):
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
    fits = start + b"x" * (MAX_HEAD_BYTES - len(start) - 4) + b"\r\n\r\n"
    assert parse(cut(fits, cuts))[0] == "complete"
    assert parse(cut(fits.replace(b"X: ", b"X: x"), cuts))[0] == "malformed"


@pytest.mark.parametrize("cuts", [[], range(0, 9_000, 11)])
def test_a_line_before_a_chunk_may_be_as_long_as_the_limit_and_no_longer(cuts):
    start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for longer, how in ((0, "complete"), (1, "malformed")):
        line = b"1;" + b"x" * (MAX_CHUNK_LINE - 4 + longer) + b"\r\n"
        assert parse(cut(start + line + b"a\r\n0\r\n\r\n", cuts))[0] == how


def test_extensions_of_chunks_are_bounded_together():
    start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"1;" + b"x" * 998 + b"\r\na\r\n"
    few, many = MAX_AROUND // 1_002, MAX_AROUND // 1_002 + 1
    assert parse([start, *[chunk] * few, b"0\r\n\r\n"])[:1] == ("complete",)
    assert parse([start, *[chunk] * many, b"0\r\n\r\n"])[:1] == ("flood",)
    assert parse([start, *[b"1\r\na\r\n"] * MAX_AROUND, b"0\r\n\r\n"])[0] == "complete"
