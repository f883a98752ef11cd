"""Redirects: every hop is judged like the first, and what belongs to one origin stays there."""

import pytest

from sample_tools import http_call
from toolcrib import Kind

KEY = "s3cret-key-for-one-origin"


@pytest.mark.spec("S1-40")
async def test_a_redirect_to_an_allowed_host_is_followed(bench, serve, answer):
    other = await serve(answer({"a": 1}))
    site = await serve(answer(b"", "302 Found", Location=other.url("/there")))
    outcome = await bench.run(bench.tool(site.url("/here")))
    assert outcome.value == {"a": 1}
    assert other.targets == ["GET /there"]


@pytest.mark.spec("S1-40")
async def test_a_redirect_to_another_host_is_refused_without_a_connection(bench, serve, answer):
    other = await serve(answer({"a": 1}))
    site = await serve(answer(b"", "302 Found", Location=other.url("/there")))
    bench.hosts = [site.endpoint]
    outcome = await bench.run(bench.tool(site.url("/here")))
    assert outcome.error.kind is Kind.HOST_NOT_ALLOWED
    assert outcome.error.message.startswith(f"redirected by http://{site.endpoint}: {other.endpoint} is not among")
    assert outcome.error.details["redirectedBy"] == f"http://{site.endpoint}"
    assert other.connections == 0
    assert len(site.requests) == 1


async def test_a_redirect_into_a_private_network_is_refused(bench, serve, answer):
    site = await serve(answer(b"", "302 Found", Location="http://169.254.169.254/latest"))
    bench.hosts = [site.endpoint, "169.254.169.254"]
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.error.kind is Kind.HOST_NOT_ALLOWED
    assert "169.254.0.0/16 (link-local and cloud metadata)" in outcome.error.message


@pytest.mark.spec("S1-39")
@pytest.mark.parametrize("same_origin", [True, False])
async def test_a_secret_header_stays_with_its_origin(bench, serve, answer, secrets_of, same_origin):
    other = await serve(answer(b"1"))
    replies = [b"", answer(b"1")]
    site = await serve(replies)
    replies[0] = answer(b"", "307 Moved", Location="/next" if same_origin else other.url("/next"))
    bench.secrets = secrets_of(KEY=KEY)
    call = http_call(
        url=site.url(),
        headers={"X-Api-Key": "k=${KEY}", "X-City": "${city}", "X-Version": "${version}", "X-Fixed": "1"},
    )
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    outcome = await bench.run(bench.tool(call, parameters=parameters), city="Oslo")
    assert outcome.value == 1
    reached = site if same_origin else other
    assert reached.header("X-Api-Key") == (f"k={KEY}" if same_origin else None)
    assert [reached.header(name) for name in ("X-City", "X-Version", "X-Fixed")] == ["Oslo", "7.8.9", "1"]


async def test_a_token_from_an_earlier_answer_stays_with_its_origin(bench, serve, answer):
    other = await serve(answer(b"1"))
    site = await serve([answer({"token": "t-123"}), answer(b"", "307 Moved", Location=other.url())])
    calls = (
        http_call(name="login", url=site.url("/login")),
        http_call(url=site.url("/data"), headers={"X-Token": "${login.token}"}),
    )
    assert (await bench.run(bench.tool(*calls))).value == 1
    assert site.header("X-Token") == "t-123"
    assert other.header("X-Token") is None


async def test_a_body_does_not_cross_origins(bench, serve, answer, secrets_of):
    other = await serve(answer(b"1"))
    site = await serve(answer(b"", "308 Moved", Location=other.url()))
    bench.secrets = secrets_of(KEY=KEY)
    outcome = await bench.run(bench.tool(http_call(url=site.url(), method="PUT", body='{"key": "${KEY}"}')))
    assert outcome.value == 1
    assert KEY.encode() in site.body()
    assert other.body() == b""


async def test_redirects_end(bench, serve, answer):
    site = await serve(answer(b"", "302 Found", Location="/again"))
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.error.kind is Kind.PERMANENT
    assert "more than 5 redirects" in outcome.error.message
    assert len(site.requests) == 6


@pytest.mark.spec("S1-40")
async def test_a_name_that_begins_to_mean_another_address_leads_nowhere(bench, serve, answer):
    """First the address that is allowed, then one that is not: the second connection is never made."""
    site = await serve(lambda _: answer_and_close)
    hidden = await serve(answer(b"2"))
    answers = [["127.0.0.1"], ["127.0.0.3"]]

    async def resolve(host, port):
        return answers.pop(0)

    async def answer_and_close(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1")
        await writer.drain()

    bench.resolve, bench.hosts, bench.private = resolve, [f"api.example.com:{site.port}"], [site.endpoint]
    tool = bench.tool(f"http://api.example.com:{site.port}/")
    assert (await bench.run(tool)).value == 1
    refused = await bench.run(tool)
    assert refused.error.kind is Kind.HOST_NOT_ALLOWED
    assert "127.0.0.3 lies in 127.0.0.0/8 (loopback)" in refused.error.message
    assert hidden.connections == 0
    assert len(site.requests) == 1
