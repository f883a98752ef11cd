"""Requests that failed are sent again where that can do no harm, with growing pauses, and never too often."""

import time
from email.utils import formatdate

import pytest

from sample_tools import http_call
from toolcrib import Kind, RetryPolicy
from toolcrib.features.http_tools.response import MAX_WAIT_SECONDS, Retries
from toolcrib.lib.http_syntax import read_retry_after


async def cut(reader, writer):
    """Close the connection without an answer."""


@pytest.mark.spec("S1-78")
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
async def test_a_transient_failure_of_what_can_be_repeated_is_repeated(bench, serve, answer, method):
    body = b"" if method == "HEAD" else b"1"
    site = await serve([answer(body, "503 Later"), answer(body, "500 Oops"), answer(body)])
    outcome = await bench.run(bench.tool(http_call(url=site.url(), method=method)))
    assert outcome.error is None
    assert outcome.meta["attempts"] == 3
    assert len(site.requests) == 3


@pytest.mark.spec("S1-78")
async def test_the_budget_of_repeats_is_spent_and_then_it_failed(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    outcome = await bench.run(bench.tool(site.url()))
    assert (outcome.error.kind, outcome.error.retryable) == (Kind.TRANSIENT, True)
    assert outcome.meta == {
        "origin": f"http://{site.endpoint}",
        "attempts": 3,
        "status": 503,
        "contentType": "application/json",
    }
    assert len(site.requests) == 3


async def test_what_is_told_is_the_last_attempt(bench, serve, answer):
    site = await serve([answer(b"", "503 Later"), lambda _: cut])
    outcome = await bench.run(bench.tool(site.url()))
    assert "the connection was closed before the response was complete" in outcome.error.message
    assert outcome.meta == {"origin": f"http://{site.endpoint}", "attempts": 3}


@pytest.mark.spec("S1-78")
@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 No", "404 Not", "409 Clash", "422 No"])
async def test_what_is_not_transient_is_tried_once(bench, serve, answer, status):
    site = await serve(answer(b"", status))
    outcome = await bench.run(bench.tool(site.url()))
    assert outcome.meta["attempts"] == len(site.requests) == 1
    assert not outcome.error.retryable


@pytest.mark.spec("S1-78")
@pytest.mark.parametrize("status", ["408 Slow", "429 Often", "500 Oops", "502 Bad", "503 Later", "504 Late"])
async def test_these_statuses_are_transient(bench, serve, answer, status):
    site = await serve([answer(b"", status), answer(b"1")])
    assert await bench.value(site.url()) == 1


@pytest.mark.spec("S1-78")
@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("reply", ["status", "cut"])
async def test_what_may_have_changed_something_is_not_repeated(bench, serve, answer, method, reply):
    site = await serve(answer(b"", "503 Later") if reply == "status" else lambda _: cut)
    outcome = await bench.run(bench.tool(http_call(url=site.url(), method=method)))
    assert outcome.meta["attempts"] == len(site.requests) == 1
    assert outcome.error.partial_side_effects


@pytest.mark.spec("S1-78")
async def test_what_was_never_sent_is_repeated_for_any_method(bench):
    asked = []

    async def resolve(host, port):
        asked.append(host)
        raise OSError("no such name")

    bench.resolve, bench.hosts, bench.private = resolve, ["api.example.com"], []
    outcome = await bench.run(bench.tool(http_call(url="http://api.example.com/", method="POST")))
    assert len(asked) == outcome.meta["attempts"] == 3
    assert not outcome.error.partial_side_effects


@pytest.mark.spec("S1-78")
async def test_a_refused_connection_is_repeated_until_a_server_listens(bench, serve, answer):
    site = await serve(answer(b"1"))
    addresses = iter(["127.0.0.2", "127.0.0.2", "127.0.0.1"])

    async def resolve(host, port):
        return [next(addresses)]

    bench.resolve, bench.hosts = resolve, [f"api.example.com:{site.port}"]
    bench.private = [f"127.0.0.1:{site.port}", f"127.0.0.2:{site.port}"]
    outcome = await bench.run(bench.tool(http_call(url=f"http://api.example.com:{site.port}/", method="POST")))
    assert (outcome.value, outcome.meta["attempts"]) == (1, 3)
    assert len(site.requests) == 1


@pytest.mark.spec("S1-78")
async def test_a_post_behind_a_redirect_that_leads_nowhere_is_not_repeated(bench, serve, answer):
    closed = await serve(answer(b"1"))
    closed.server.close()
    await closed.server.wait_closed()
    site = await serve(answer(b"", "307 Moved", Location=closed.url()))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), method="POST")))
    assert outcome.error.kind is Kind.TRANSIENT
    assert outcome.meta["attempts"] == len(site.requests) == 1


@pytest.mark.spec("S1-78")
async def test_an_explicit_policy_lets_a_post_be_repeated_and_waits_as_written(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    policy = RetryPolicy(max_attempts=4, initial_delay=0.5, multiplier=3, max_delay=2)
    outcome = await bench.run(bench.tool(http_call(url=site.url(), method="POST", retry=policy)))
    assert outcome.meta["attempts"] == len(site.requests) == 4
    assert bench.pauses == [0.5, 1.5, 2]


@pytest.mark.spec("S1-90")
async def test_no_tool_repeats_more_often_than_the_operator_allows(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    bench.limits = {"max_retries": 2}
    outcome = await bench.run(
        bench.tool(http_call(url=site.url(), retry=RetryPolicy(max_attempts=50, initial_delay=0)))
    )
    assert outcome.meta["attempts"] == len(site.requests) == 3


async def test_a_policy_of_one_attempt_is_obeyed(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    await bench.run(bench.tool(http_call(url=site.url(), retry=RetryPolicy(max_attempts=1))))
    assert len(site.requests) == 1


async def test_nothing_is_repeated_in_voice_mode(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    outcome = await bench.run(bench.tool(site.url()), mode="voice")
    assert outcome.meta["attempts"] == len(site.requests) == 1


async def test_a_server_is_given_the_time_it_asks_for(bench, serve, answer):
    site = await serve([answer(b"", "429 Often", Retry_After="3"), answer(b"1")])
    assert await bench.value(site.url()) == 1
    assert bench.pauses == [3]


async def test_a_server_may_ask_for_a_date(bench, serve, answer):
    site = await serve([answer(b"", "503 Later", Retry_After=formatdate(time.time() + 5, usegmt=True)), answer(b"1")])
    assert await bench.value(site.url()) == 1
    assert 3 < bench.pauses[0] <= 5


@pytest.mark.parametrize(("after", "seconds"), [("9", 8), (str(int(MAX_WAIT_SECONDS) + 1), 600), ("999999999", 600)])
async def test_a_server_that_asks_for_more_than_there_is_is_not_asked_again(bench, serve, answer, after, seconds):
    site = await serve(answer(b"", "429 Often", Retry_After=after))
    outcome = await bench.run(bench.tool(http_call(url=site.url(), timeout_ms=600_000)), seconds=seconds)
    assert (outcome.error.kind, bench.pauses) == (Kind.RATE_LIMIT, [])
    assert outcome.error.details["retryAfter"] == float(after)
    assert len(site.requests) == 1


@pytest.mark.parametrize("after", ["9" * 400, "99999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_a_server_that_asks_for_ages_is_not_asked_again_and_the_wait_is_bounded(bench, serve, answer, after):
    site = await serve(answer(b"", "503 Later", Retry_After=after))
    outcome = await bench.run(bench.tool(site.url()))
    assert (bench.pauses, outcome.error.details["retryAfter"]) == ([], 10**9)
    assert outcome.error.message.endswith("; try again in 1000000000 s")


@pytest.mark.parametrize(
    "after", ["-1", "NaN", "1e3", "0x10", "soon", "١٢", "Thu, 32 Nov 2026 99:99:99 GMT", ", " * 100]
)
async def test_what_is_neither_a_number_nor_a_date_is_no_wait(bench, serve, answer, after):
    site = await serve([answer(b"", "503 Later", Retry_After=after), answer(b"1")])
    assert await bench.value(site.url()) == 1
    assert bench.pauses[0] < 3


def test_a_date_without_a_zone_is_one_of_http_and_not_of_this_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        assert read_retry_after("Thu, 01 Jan 1970 00:01:40", now=40.0) == 60.0
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_pause_that_would_not_end_in_time_is_not_begun(bench, serve, answer):
    site = await serve(answer(b"", "503 Later"))
    policy = RetryPolicy(max_attempts=3, initial_delay=2)
    outcome = await bench.run(bench.tool(http_call(url=site.url(), timeout_ms=1_000, retry=policy)))
    assert (outcome.error.kind, bench.pauses) == (Kind.TRANSIENT, [])


@pytest.mark.spec("S1-78")
def test_pauses_grow_and_are_spread_out():
    from toolcrib import ToolError

    error = ToolError(Kind.TRANSIENT, "x", retryable=True)
    repeating = Retries("GET", None, 4)
    first = [repeating.pause_after(1, error, mode="text", left=100) for _ in range(300)]
    second = [repeating.pause_after(2, error, mode="text", left=100) for _ in range(300)]
    assert 0 <= min(first) < 0.05
    assert 0.25 < max(first) <= 0.3
    assert 0.5 < max(second) <= 0.6
    assert repeating.pause_after(3, error, mode="text", left=100) is None
