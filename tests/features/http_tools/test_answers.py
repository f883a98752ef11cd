"""What becomes of an answer: by status, by encoding, by expression, and by what its author wants of failures."""

import asyncio
import gzip
import random
import time

import pytest

from sample_tools import http_call
from toolcrib import Kind, ToolError
from toolcrib.features.http_tools.response import REASONS

TEXT = {"encoding": "text"}
EMPTY = {"error_mode": "empty"}


@pytest.mark.spec("S1-33")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": [1, 2.5, null, true, "x"]}', {"a": [1, 2.5, None, True, "x"]}),
        (b" 1 ", 1),
        (b"\xef\xbb\xbf[1]", [1]),
        (
            b'{"id": 12345678901234567890, "n": 99999999999999999999999}',
            {"id": 12345678901234567890, "n": 99999999999999999999999},
        ),
        (b"", None),
    ],
)
async def test_json_is_parsed(bench, serve, answer, body, expected):
    site = await serve(answer(body, content_type="text/html"))
    assert await bench.value(site.url()) == expected


@pytest.mark.spec("S1-33")
@pytest.mark.parametrize(
    "body", [b"<html>", b"{'a': 1}", b"[1,]", b"NaN", b'"\xff"', b"[" * 500 + b"]" * 500, b'{"a": "\\ud800"}']
)
async def test_what_is_no_json_is_a_failure(bench, serve, answer, body):
    site = await serve(answer(body))
    with pytest.raises(ToolError, match=f"http://{site.endpoint}: the answer cannot be used: ") as failure:
        await bench.value(site.url())
    assert failure.value.kind is Kind.OUTPUT_INVALID
    assert failure.value.details == {"origin": f"http://{site.endpoint}", "status": 200}
    assert len(site.requests) == 1


@pytest.mark.spec("S1-33")
@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"plain", "text/plain", "plain"),
        ("größe".encode("iso-8859-1"), "text/plain; charset=ISO-8859-1", "größe"),
        ("größe".encode("utf-16"), "text/html; charset=utf-16", "größe"),
        ("天気".encode(), "application/octet-stream", "天気"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"", "text/plain", ""),
    ],
)
async def test_text_is_kept_in_its_character_set(bench, serve, answer, body, content_type, expected):
    site = await serve(answer(body, content_type=content_type))
    assert await bench.value(http_call(url=site.url(), **TEXT)) == expected


async def test_json_in_another_character_set_is_read_in_it(bench, serve, answer):
    site = await serve(answer('{"a": "größe"}'.encode("iso-8859-1"), content_type="application/json; charset=latin1"))
    assert await bench.value(site.url()) == {"a": "größe"}


async def test_bytes_that_are_no_text_are_a_failure(bench, serve, answer):
    site = await serve(answer(b"\xff\xfe\xfd", content_type="text/plain"))
    with pytest.raises(ToolError, match="it is not text in the character set that it declares"):
        await bench.value(http_call(url=site.url(), **TEXT))


@pytest.mark.spec("S1-31")
@pytest.mark.parametrize(
    ("status", "success", "ok"),
    [
        ("200 OK", (), True),
        ("299 Odd", (), True),
        ("300 Choices", (), False),
        ("404 Not Found", (), False),
        ("204 No Content", (200,), False),
        ("404 Not Found", (200, 404), True),
        ("201 Created", (200,), False),
    ],
)
async def test_only_the_named_statuses_succeed(bench, serve, answer, status, success, ok):
    site = await serve(answer(b"" if status.startswith("204") else b"1", status))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), success=frozenset(success))))
    assert (outcome.error is None) is ok
    assert outcome.meta["status"] == int(status[:3])
    if not ok:
        told = f"http://{site.endpoint}: the server answered GET with status {status[:3]}"
        assert outcome.error.message.startswith(told)
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad", Kind.PERMANENT),
        ("401 Who", Kind.AUTH),
        ("403 No", Kind.AUTH),
        ("404 Not", Kind.PERMANENT),
        ("429 Slow", Kind.RATE_LIMIT),
        ("500 Oops", Kind.TRANSIENT),
    ],
)
async def test_a_status_says_what_kind_of_failure_it_is(bench, serve, answer, status, kind):
    site = await serve(answer(b"because", status, content_type="text/plain"))
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.error.kind is kind
    assert outcome.error.details["body"] == "because"


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        ({"error": {"code": 7, "message": "no city s3cret-value"}}, "application/json", None),
        (b"line one\r\n\tline \x1b[31mtwo\x00", "text/plain", "line one line [31mtwo"),
        (b"<html><h1>Bad</h1></html>", "text/html", ""),
        (b"\x89PNG", "image/png", ""),
        (b"", "text/plain", ""),
        (b"x" * 9_000, "text/plain", "x" * 500 + "…"),
    ],
)
async def test_what_the_server_says_of_an_error_is_in_its_message(
    bench, serve, answer, secrets_of, body, content_type, said
):
    bench.secrets = secrets_of(KEY="s3cret-value")
    site = await serve(answer(body, "422 Odd", content_type=content_type))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), headers={"X-Key": "${KEY}"})))
    said = '{"error": {"code": 7, "message": "no city ***"}}' if said is None else said
    reason = REASONS[422]
    assert outcome.error.message == f"http://{site.endpoint}: the server answered GET with status 422 {reason}" + (
        f": {said}" if said else ""
    )
    assert len(outcome.error.details.get("body", "")) <= 2_000


@pytest.mark.spec("S1-31", "S1-36")
@pytest.mark.parametrize(
    ("encoding", "extract", "expected"),
    [
        ("json", "", None),
        ("json", "$.a", None),
        ("json", "a(b)", None),
        ("text", "", ""),
        ("text", "a(b)", ""),
    ],
)
async def test_no_content_is_no_output_for_every_extraction(bench, serve, encoding, extract, expected):
    await serve(b"HTTP/1.1 204 No Content\r\n\r\n")
    outcome = await bench.run(bench.tool(http_call(url=bench.sites[0].url(), encoding=encoding, extract=extract)))
    assert (outcome.value, outcome.error, outcome.stands_in) == (expected, None, False)


@pytest.mark.spec("S1-34", "S1-35")
@pytest.mark.parametrize(
    ("extract", "encoding", "expected"),
    [
        ("$.current.condition.text", "json", "Sunny"),
        ("$.days[*].t", "json", [1, 2]),
        ("$..t", "json", [1, 2]),
        (r'"text": "(\w+)"', "json", "Sunny"),
        (r"Sun\w+", "text", "Sunny"),
        (r'"t": (\d)', "text", ["1", "2"]),
    ],
)
async def test_an_expression_takes_the_value_out(bench, serve, answer, extract, encoding, expected):
    site = await serve(answer({"current": {"condition": {"text": "Sunny"}}, "days": [{"t": 1}, {"t": 2}]}))
    assert await bench.value(http_call(url=site.url(), extract=extract, encoding=encoding)) == expected


@pytest.mark.spec("S1-34")
async def test_no_match_is_a_failure(bench, serve, answer):
    site = await serve(answer({"a": 1}))
    with pytest.raises(ToolError, match=r"the answer has nothing at '\$.b'") as failure:
        await bench.value(http_call(url=site.url(), extract="$.b"))
    assert failure.value.kind is Kind.OUTPUT_INVALID


@pytest.mark.spec("S1-33")
async def test_a_pattern_over_json_still_asks_for_json(bench, serve, answer):
    site = await serve(answer(b"<b>21</b>"))
    with pytest.raises(ToolError, match="the answer cannot be used"):
        await bench.value(http_call(url=site.url(), extract=r"\d+"))


@pytest.mark.spec("S1-36")
@pytest.mark.parametrize(
    ("reply", "parts", "kind"),
    [
        (("{}", "500 Oops"), {}, Kind.TRANSIENT),
        (("{}", "404 Not"), {}, Kind.PERMANENT),
        ((b"<html>",), {}, Kind.OUTPUT_INVALID),
        (({"a": 1},), {"extract": "$.b"}, Kind.OUTPUT_INVALID),
        ((b"x" * 200_000,), {}, Kind.LIMIT_EXCEEDED),
        ((b"abc",), {"extract": "z", **TEXT}, Kind.OUTPUT_INVALID),
        ((b"abc", "503 Later"), TEXT, Kind.TRANSIENT),
    ],
)
async def test_a_failure_is_empty_where_its_author_wants_that(bench, serve, answer, reply, parts, kind):
    site = await serve(answer(*reply))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), **EMPTY, **parts)))
    assert (outcome.error, outcome.stands_in) == (None, True)
    assert outcome.value == ("" if "encoding" in parts else None)
    assert outcome.meta["failure"]["type"] == kind


@pytest.mark.spec("S1-13", "S1-36")
async def test_no_connection_is_transient_or_empty(bench, serve, answer):
    site = await serve(answer(b"1"))
    site.server.close()
    await site.server.wait_closed()
    failed = await bench.run(bench.tool(site.url()))
    assert (failed.error.kind, failed.error.retryable) == (Kind.TRANSIENT, True)
    assert failed.error.message == f"http://{site.endpoint}: connection refused"
    assert failed.meta == {"origin": f"http://{site.endpoint}", "attempts": 3}
    emptied = await bench.run(bench.tool(http_call(url=site.url(), **EMPTY)))
    assert (emptied.value, emptied.stands_in) == (None, True)


@pytest.mark.spec("S1-13")
async def test_a_machine_without_a_network_answers_transient(bench):
    async def no_network(host, port):
        raise OSError("Temporary failure in name resolution")

    bench.resolve, bench.hosts, bench.private = no_network, ["api.example.com"], []
    outcome = await bench.run(bench.tool("https://api.example.com/x"))
    assert outcome.error.kind is Kind.TRANSIENT
    assert outcome.error.message == "api.example.com: looking up the name failed"


@pytest.mark.spec("S1-36")
async def test_a_refusal_is_never_empty(bench, serve, answer):
    """Neither one before sending, nor that of a redirect."""
    site = await serve(answer(b"", "302 Found", Location="http://127.0.0.1:9/"))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), **EMPTY)))
    assert outcome.error.kind is Kind.HOST_NOT_ALLOWED
    with pytest.raises(ToolError, match="is neither a parameter"):
        bench.check(bench.tool(http_call(url=site.url("/${x}"), **EMPTY)))


@pytest.mark.spec("S1-36")
async def test_a_call_that_is_given_up_is_not_empty_either(bench, serve):
    async def never(reader, writer):
        await reader.read()

    site = await serve(lambda _: never)
    running = asyncio.create_task(bench.run(bench.tool(http_call(url=site.url(), **EMPTY))))
    async with asyncio.timeout(25):
        await site.arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await site.gone.wait()


@pytest.mark.spec("S1-32")
async def test_an_answer_that_does_not_come_in_time_is_a_timeout(bench, serve):
    async def never(reader, writer):
        await reader.read()

    site = await serve(lambda _: never)
    # The call has much more time than its request, which ends by itself.
    async with asyncio.timeout(25):
        outcome = await bench.run(bench.tool(http_call(url=site.url(), timeout_ms=50)), seconds=3_600)
    assert outcome.error.kind is Kind.TIMEOUT
    assert outcome.error.message == f"http://{site.endpoint}: no complete response within 50 ms"
    assert outcome.error.details["timeoutMs"] == 50
    assert outcome.meta["attempts"] == 1
    async with asyncio.timeout(25):
        await site.gone.wait()


@pytest.mark.spec("S1-32")
async def test_the_time_of_the_call_ends_a_request_too(bench, serve):
    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    site = await serve(lambda _: drip)
    outcome = await bench.run(bench.tool(site.url()), seconds=0.1)
    assert outcome.error.kind is Kind.TIMEOUT
    assert "no complete response within 100 ms" in outcome.error.message


@pytest.mark.spec("S1-89")
@pytest.mark.parametrize("kind", ["declared", "chunked", "until closed", "gzip"])
async def test_reading_stops_at_the_limit(bench, serve, answer, kind):
    sent = []

    async def endless(reader, writer):
        head = {"chunked": b"Transfer-Encoding: chunked\r\n", "until closed": b""}[kind]
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        piece = b"2000\r\n" + b"x" * 0x2000 + b"\r\n" if kind == "chunked" else b"x" * 0x2000
        while not writer.is_closing():
            writer.write(piece)
            sent.append(len(piece))
            await writer.drain()

    replies = {
        "declared": answer(b"", content_type="text/plain").replace(b"Content-Length: 0", b"Content-Length: 999999999"),
        "gzip": answer(gzip.compress(b" " * 20_000_000, mtime=0), Content_Encoding="gzip"),
    }
    site = await serve(replies.get(kind) or (lambda _: endless))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), **TEXT)))
    assert outcome.error.kind is Kind.LIMIT_EXCEEDED
    assert "and the limit is 100000" in outcome.error.message
    assert outcome.meta["attempts"] == 1
    assert sum(sent) < 20_000_000


@pytest.mark.spec("S1-89")
async def test_an_answer_with_two_ideas_of_its_length_is_not_read_without_end(bench, serve):
    sent = []

    async def endless(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            sent.append(0x2000)
            await writer.drain()

    site = await serve(lambda _: endless)
    outcome = await bench.run(bench.tool(http_call(url=site.url(), **TEXT)))
    assert outcome.error.kind in {Kind.PERMANENT, Kind.LIMIT_EXCEEDED}
    assert sum(sent) < 20_000_000


@pytest.mark.parametrize(
    "body", [b'{"a": 1, "a": 2}', b'[{"b": {"a": "x", "b": 1, "a": "y"}}]', b'{"a": "\\"", "a": 1}']
)
async def test_an_answer_that_says_one_thing_twice_is_a_failure(bench, serve, answer, body):
    site = await serve(answer(body))
    with pytest.raises(ToolError, match="the answer cannot be used: ") as failure:
        await bench.value(site.url())
    assert failure.value.kind is Kind.OUTPUT_INVALID


@pytest.mark.parametrize(
    "value", [{"a": 'x"y', "b": ["\\", '\\"', {"": ""}]}, 'a "b"', ["a\\"], [], {"a": [[1.5, None]]}]
)
async def test_quotation_marks_and_backslashes_are_read_as_they_are(bench, serve, answer, value):
    site = await serve(answer(value))
    assert await bench.value(site.url()) == value


async def test_a_large_answer_is_looked_through_beside_everything_else_and_not_for_ever(bench, serve, answer):
    """The pattern takes about a second and a half, and the time of the call is over long before."""
    body = random.Random(1).randbytes(1_500_000).translate(b"ab" * 128)
    site = await serve(answer(body, content_type="text/plain"))
    bench.limits = {"max_response_bytes": 5_000_000}
    call = http_call(url=site.url(), timeout_ms=500, extract="(a|b)*a[ab]{200}x", **TEXT)
    before = time.thread_time()
    outcome = await bench.run(bench.tool(call))
    # Another thread looked: this one worked for less than the pattern takes.
    assert time.thread_time() - before < 0.75
    assert outcome.error.kind is Kind.TIMEOUT
    assert outcome.meta["attempts"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1]",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n"
        + gzip.compress(b"[1]", mtime=0)[:10],
    ],
)
async def test_an_answer_that_breaks_off_is_transient(bench, serve, reply):
    async def cut(reader, writer):
        writer.write(reply)
        await writer.drain()

    site = await serve(lambda _: cut)
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.error.kind is Kind.TRANSIENT
    assert outcome.meta["attempts"] == 3
    assert len(site.requests) == 3


async def test_an_answer_that_sends_more_than_it_says_is_no_http(bench, serve):
    site = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1][2]")
    with pytest.raises(ToolError, match="the response is not valid HTTP") as failure:
        await bench.value(site.url())
    assert failure.value.kind is Kind.PERMANENT
