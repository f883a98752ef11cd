"""Servers that send on and on without a response, and connections that die between two requests."""

import asyncio

import pytest

from toolcrib import Kind, ToolError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def endless(first, more):
    async def reply(_, writer):
        writer.write(first)
        while True:
            writer.write(more)
            await writer.drain()
            await asyncio.sleep(0)

    return lambda _: reply


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
        (CHUNKED + b"1\r\na\r\n0\r\n", b"X-More: of this\r\n"),
        (CHUNKED + b"0\r\n", b"X-More: of this\r\n" * 100),
        (CHUNKED + b"1;", b"extension" * 100),
    ],
)
async def test_a_server_that_never_comes_to_its_point_is_given_up(serve, open_egress, fetch, first, more):
    site = await serve(endless(first, more))
    with pytest.raises(ToolError) as failure:
        await fetch(open_egress(site.endpoint), site.url())
    assert failure.value.kind is not Kind.TIMEOUT
    async with asyncio.timeout(25):
        await site.gone.wait()
    assert len(site.requests) == 1


async def test_interim_responses_tell_how_much_there_may_be(serve, open_egress, fetch):
    site = await serve(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"))
    with pytest.raises(ToolError, match="more than 65536 bytes before its response") as failure:
        await fetch(open_egress(site.endpoint), site.url())
    assert failure.value.kind is Kind.LIMIT_EXCEEDED
    assert failure.value.details["limit"] == 65_536


async def test_a_few_interim_responses_and_trailers_pass_on_a_kept_connection(serve, open_egress, fetch):
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * 500
    site = await serve(interim + CHUNKED + b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")
    egress = open_egress(site.endpoint)
    for _ in range(8):
        assert (await fetch(egress, site.url())).body == b"ok"
    assert site.connections == 1


async def test_a_large_body_is_no_flood(serve, open_egress, fetch):
    body = b"x" * 3_000_000
    site = await serve(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    assert (await fetch(open_egress(site.endpoint), site.url(), max_bytes=4_000_000)).body == body


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_a_request_is_sent_once_although_its_connection_dies(serve, open_egress, fetch, method):
    """The server takes the second request of a connection, and closes without an answer."""
    replies = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]

    async def hang_up(_, __):
        return None

    site = await serve(lambda _: replies.pop() if replies else hang_up)
    egress = open_egress(site.endpoint)
    await fetch(egress, site.url(), method=method)
    with pytest.raises(ToolError, match="closed before the response was complete") as failure:
        await fetch(egress, site.url(), method=method)
    assert failure.value.kind is Kind.TRANSIENT
    assert len(site.requests) == 2
    assert site.connections == 1
