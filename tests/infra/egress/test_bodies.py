import gzip
import tracemalloc
import zlib

import pytest

from toolcrib import Kind, ToolError

LIMIT = 10_000


def ok(body, *headers):
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 200 OK\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def raw_deflate(data):
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


ENCODED = {
    "identity": lambda data: data,
    "gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "deflate ": raw_deflate,
}


@pytest.mark.parametrize("encoding", ENCODED)
async def test_an_encoding_that_was_asked_for_is_undone(serve, open_egress, fetch, encoding):
    data = bytes(range(256)) * 4
    site = await serve(ok(ENCODED[encoding](data), f"Content-Encoding: {encoding}"))
    response = await fetch(open_egress(site.endpoint), site.url())
    assert response.body == data
    assert b"Accept-Encoding: gzip, deflate\r\n" in site.requests[0]


@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
async def test_the_limit_counts_what_comes_out_and_is_itself_allowed(serve, open_egress, fetch, encoding):
    for size in (LIMIT, LIMIT + 1):
        site = await serve(ok(ENCODED[encoding](b"x" * size), f"Content-Encoding: {encoding}"))
        egress = open_egress(site.endpoint)
        if size == LIMIT:
            assert len((await fetch(egress, site.url(), max_bytes=LIMIT)).body) == LIMIT
            continue
        with pytest.raises(ToolError, match="the response has more than 10000 bytes, and the limit is 10000") as caught:
            await fetch(egress, site.url(), max_bytes=LIMIT)
        assert caught.value.kind is Kind.LIMIT_EXCEEDED
        assert caught.value.details["limit"] == LIMIT


async def test_incompressible_content_at_the_limit_passes_in_gzip(serve, open_egress, fetch):
    import random

    data = random.Random(1).randbytes(LIMIT)
    site = await serve(ok(gzip.compress(data), "Content-Encoding: gzip"))
    assert (await fetch(open_egress(site.endpoint), site.url(), max_bytes=LIMIT)).body == data


async def test_a_declared_length_beyond_the_limit_is_refused_before_reading(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\n")
    with pytest.raises(ToolError, match="the response has 10001 bytes, and the limit is 10000") as caught:
        await fetch(open_egress(site.endpoint), site.url(), max_bytes=LIMIT)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


async def test_a_bomb_is_stopped_without_holding_what_it_expands_to(serve, open_egress, fetch):
    bomb = gzip.compress(b"\0" * 100_000_000)
    site = await serve(ok(bomb, "Content-Encoding: gzip"))
    egress = open_egress(site.endpoint)
    with pytest.raises(ToolError, match="the limit is 10000"):  # the first fetch imports what it needs
        await fetch(egress, site.url(), max_bytes=LIMIT)
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="the limit is 1000000") as caught:
            await fetch(egress, site.url(), max_bytes=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert peak < 8_000_000


async def test_an_endless_chunked_body_is_stopped(serve, open_egress, fetch):
    async def pour(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    site = await serve(lambda _: pour)
    with pytest.raises(ToolError, match="more than 10000 bytes") as caught:
        await fetch(open_egress(site.endpoint), site.url(), max_bytes=LIMIT)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


async def test_an_endless_stream_that_expands_to_nothing_is_stopped(serve, open_egress, fetch):
    async def pour(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n")
        writer.write(zlib.compressobj().flush(zlib.Z_FULL_FLUSH))
        empty_block = b"\x00\x00\x00\xff\xff"
        while True:
            writer.write(empty_block * 500)
            await writer.drain()

    site = await serve(lambda _: pour)
    with pytest.raises(ToolError, match="more than 11100 compressed bytes, and the limit is 10000") as caught:
        await fetch(open_egress(site.endpoint), site.url(), max_bytes=LIMIT)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "gzip\r\nContent-Encoding: gzip", "br", "zstd", "deflate, gzip", "x"]
)
async def test_an_encoding_that_was_not_asked_for_is_refused(serve, open_egress, fetch, encoding):
    body = gzip.compress(gzip.compress(b"\0" * 1_000_000))
    site = await serve(ok(body, f"Content-Encoding: {encoding}"))
    with pytest.raises(ToolError, match="which was not asked for") as caught:
        await fetch(open_egress(site.endpoint), site.url())
    assert caught.value.kind is Kind.PERMANENT


async def test_only_one_layer_is_undone(serve, open_egress, fetch):
    inner = gzip.compress(b"\0" * 1_000_000)
    site = await serve(ok(gzip.compress(inner), "Content-Encoding: gzip"))
    assert (await fetch(open_egress(site.endpoint), site.url())).body == inner


@pytest.mark.parametrize(
    ("body", "reason", "kind"),
    [
        pytest.param(b"no gzip at all", "not a valid gzip", Kind.PERMANENT, id="nonsense"),
        pytest.param(gzip.compress(b"x" * 100)[:-9], "ends before its gzip does", Kind.TRANSIENT, id="cut"),
        pytest.param(gzip.compress(b"x") + b"more", "goes on after the end of its gzip", Kind.PERMANENT, id="longer"),
        pytest.param(gzip.compress(b"x")[:-8] + b"12345678", "not a valid gzip", Kind.PERMANENT, id="wrong sum"),
    ],
)
async def test_a_broken_stream_is_an_error_and_no_shorter_text(serve, open_egress, fetch, body, reason, kind):
    site = await serve(ok(body, "Content-Encoding: gzip"))
    with pytest.raises(ToolError, match=reason) as caught:
        await fetch(open_egress(site.endpoint), site.url())
    assert caught.value.kind is kind


async def test_an_empty_body_needs_no_stream(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n")
    response = await fetch(open_egress(site.endpoint), site.url())
    assert (response.status, response.body) == (204, b"")


async def test_a_head_request_is_judged_by_no_length(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\nContent-Encoding: br\r\n\r\n")
    response = await fetch(open_egress(site.endpoint), site.url(), method="HEAD", max_bytes=10)
    assert response.headers["content-length"] == "99999999"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "is incomplete or shorter than declared"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
            "is incomplete or shorter than declared",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nshort\r\n0\r\n\r\n", "is not valid HTTP"),
    ],
)
async def test_a_body_that_breaks_off_is_an_error(serve, open_egress, fetch, answer, reason):
    async def break_off(reader, writer):
        writer.write(answer)
        await writer.drain()

    site = await serve(lambda _: break_off)
    with pytest.raises(ToolError, match=reason) as caught:
        await fetch(open_egress(site.endpoint), site.url(), method="POST")
    assert caught.value.partial_side_effects


async def test_bytes_beyond_the_declared_length_are_not_taken_for_content(serve, open_egress, fetch):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    site = await serve(answer)
    egress = open_egress(site.endpoint)
    assert [(await fetch(egress, site.url())).body for _ in range(2)] == [b"hello", b"hello"]


async def test_two_lengths_are_no_valid_answer(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")
    with pytest.raises(ToolError) as caught:
        await fetch(open_egress(site.endpoint), site.url())
    assert caught.value.kind is Kind.PERMANENT


async def test_a_redirect_is_followed_without_reading_its_body(serve, open_egress, fetch):
    async def redirect_and_pour(reader, writer):
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /end\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    site = await serve(lambda head: ok(b"end") if b"/end" in head else redirect_and_pour)
    assert (await fetch(open_egress(site.endpoint), site.url(), max_bytes=10)).body == b"end"
