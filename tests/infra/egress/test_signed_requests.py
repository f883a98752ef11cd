"""A request is signed when it is sent: at each hop within its origin, never beyond it."""

from dataclasses import replace

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.egress import Request
from toolcrib.lib.http_syntax import parse_url

LEAD = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def sign(request):
    """Credentials that say what they were made for."""
    url = replace(request.url, target=f"{request.url.target}?key=k-7f3a")
    return replace(
        request, url=url, headers={**request.headers, "X-Signature": f"{request.method} {request.url.target}"}
    )


def signatures(site):
    lines = (request.decode().split("\r\n") for request in site.requests)
    return [next((line for line in head if line.lower().startswith("x-signature")), None) for head in lines]


async def test_what_is_signed_is_what_is_sent(serve, open_egress, fetch):
    site = await serve(OK)
    await fetch(open_egress(site.endpoint), site.url("/a"), sign=sign)
    assert site.requests[0].startswith(b"GET /a?key=k-7f3a HTTP/1.1\r\n")
    assert signatures(site) == ["X-Signature: GET /a"]


async def test_a_redirect_within_the_origin_is_signed_anew(serve, open_egress, fetch):
    replies = [LEAD % b"/b", OK]
    site = await serve(lambda _: replies.pop(0))
    await fetch(open_egress(site.endpoint), site.url("/a"), sign=sign)
    assert signatures(site) == ["X-Signature: GET /a", "X-Signature: GET /b"]


@pytest.mark.parametrize("status", [b"302 Found", b"307 Temporary Redirect", b"308 Permanent Redirect"])
async def test_a_redirect_to_another_host_carries_no_credentials(serve, open_egress, fetch, status):
    other = await serve(OK)
    site = await serve(LEAD.replace(b"302 Found", status) % other.url("/b").encode())
    egress = open_egress(site.endpoint, other.endpoint)
    await fetch(egress, site.url("/a"), method="POST", body=b"{}", sign=sign)
    assert signatures(other) == [None]
    assert b"7f3a" not in other.requests[0]


async def test_a_redirect_that_is_not_to_be_followed_is_the_response(serve, open_egress, fetch):
    site = await serve(LEAD % b"/b")
    response = await fetch(open_egress(site.endpoint), site.url("/a"), follows=False)
    assert (response.status, response.location, len(site.requests)) == (302, "/b", 1)


async def test_a_request_that_grows_too_large_by_its_credentials_is_not_sent(serve, open_egress, fetch):
    site = await serve(OK)
    large = lambda request: replace(request, headers={"Authorization": "x" * 200})  # noqa: E731
    with pytest.raises(ToolError) as refusal:
        await fetch(open_egress(site.endpoint), site.url("/a"), sign=large, max_sent_bytes=100)
    assert refusal.value.kind is Kind.LIMIT_EXCEEDED
    assert site.requests == []


async def test_a_request_whose_response_is_streamed_is_signed_too(serve, open_egress):
    site = await serve(OK)
    request = Request(url=parse_url(site.url("/a")), sign=sign)
    async with open_egress(site.endpoint).stream(request, hosts=None, max_piece=100) as (response, _):
        assert response.status == 200
    assert signatures(site) == ["X-Signature: GET /a"]


def test_a_request_is_signed_once():
    request = Request(url=parse_url("https://a.example/a"), sign=sign)
    signed = request.signed()
    assert signed.signed() is signed
    assert str(signed.url) == "https://a.example/a?key=k-7f3a"
    assert request.signed() == signed
