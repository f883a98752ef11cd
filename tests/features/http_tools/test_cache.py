"""Answers that are used again: on request, for the same caller and the same request alone, and never for longer than allowed."""

import threading

import pytest

from sample_tools import http_call, http_run
from toolcrib.features.http_tools.request_check import check_http
from toolcrib.features.http_tools.response_cache import CacheRule, ResponseCache
from toolcrib.infra.egress import Response
from toolcrib.lib.http_syntax import parse_url

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


class Kept:
    """One runner for several calls, as a Crib has it."""

    def __init__(self, bench):
        self.runner = bench.runner()
        bench.runner = lambda: self.runner
        self.bench = bench

    async def facts(self, tool, **arguments):
        outcome = await self.bench.run(tool, **arguments)
        assert outcome.error is None, outcome.error
        return outcome.value, outcome.meta.get("cache")


@pytest.fixture
def kept(bench):
    return lambda: Kept(bench)


async def test_a_fresh_answer_is_not_asked_for_again(kept, bench, serve, answer):
    site = await serve(lambda _: answer(len(site.requests)))
    tool = bench.tool(http_call(url=site.url("/${city}"), cache={"seconds": 60}), parameters=CITY)
    runner = kept()
    assert await runner.facts(tool, city="Oslo") == (1, None)
    assert await runner.facts(tool, city="Oslo") == (1, "hit")
    assert await runner.facts(tool, city="Rome") == (2, None)
    assert site.targets == ["GET /Oslo", "GET /Rome"]


async def test_without_the_authors_word_nothing_is_kept(kept, bench, serve, answer):
    site = await serve(lambda _: answer(len(site.requests), Cache_Control="max-age=60", ETag='"1"'))
    runner = kept()
    for number in (1, 2):
        assert await runner.facts(bench.tool(site.url())) == (number, None)
    assert site.header("if-none-match") is None


async def test_another_secret_gets_another_answer(kept, bench, serve, answer, secrets_of):
    site = await serve(lambda _: answer(len(site.requests)))
    bench.secrets = secrets_of(KEY="s3cret-one")
    tool = bench.tool(http_call(url=site.url(), headers={"X-Key": "${KEY}"}, cache={"seconds": 60}))
    runner = kept()
    assert await runner.facts(tool) == (1, None)
    bench.secrets.values["KEY"] = "s3cret-two"
    assert await runner.facts(tool) == (2, None)
    assert await runner.facts(tool) == (2, "hit")


async def test_other_credentials_get_another_answer(kept, bench, serve, answer, secrets_of):
    site = await serve(lambda _: answer(len(site.requests)))
    bench.secrets = secrets_of(KEY="s3cret-one")
    auth = {"type": "bearer", "token": "${secret:KEY}"}
    tool = bench.tool(http_call(url=site.url(), auth=auth, cache={"seconds": 60}))
    runner = kept()
    assert [await runner.facts(tool) for _ in range(2)] == [(1, None), (1, "hit")]
    bench.secrets.values["KEY"] = "s3cret-two"
    assert await runner.facts(tool) == (2, None)


async def test_another_caller_and_another_definition_get_answers_of_their_own(kept, bench, serve, answer):
    site = await serve(lambda _: answer(len(site.requests)))
    call = http_call(url=site.url("/?by=x"), cache={"seconds": 60})
    runner = kept()
    assert await runner.facts(bench.tool(call)) == (1, None)
    assert await runner.facts(bench.tool(call)) == (1, "hit")
    assert await runner.facts(bench.tool(call, version="1.0.1")) == (2, None)
    bench.caller = "bob"
    assert await runner.facts(bench.tool(call)) == (3, None)


@pytest.mark.parametrize(
    ("sent", "condition", "value"),
    [
        ({"ETag": 'W/"a"'}, "If-None-Match", 'W/"a"'),
        ({"Last_Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}, "If-Modified-Since", "Wed, 21 Oct 2015 07:28:00 GMT"),
    ],
)
async def test_a_stale_answer_is_asked_about_and_used_if_it_has_not_changed(
    kept, bench, serve, answer, sent, condition, value
):
    replies = [answer("first", **sent), b"HTTP/1.1 304 Not Modified\r\n\r\n", answer("second", **sent)]
    site = await serve(replies)
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 0}))
    runner = kept()
    assert await runner.facts(tool) == ("first", None)
    assert await runner.facts(tool) == ("first", "revalidated")
    assert site.header(condition) == value
    assert await runner.facts(tool) == ("second", None)


@pytest.mark.parametrize(
    "headers",
    [
        {"Cache_Control": "no-store"},
        {"Cache_Control": "private, no-cache"},
        {"Cache_Control": "public, max-age=0"},
        {"Vary": "*"},
    ],
)
async def test_a_server_may_forbid_it(kept, bench, serve, answer, headers):
    site = await serve(lambda _: answer(len(site.requests), **headers))
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 60}))
    runner = kept()
    assert [await runner.facts(tool) for _ in range(2)] == [(1, None), (2, None)]


async def test_a_failure_and_a_redirected_answer_are_not_kept(kept, bench, serve, answer):
    site = await serve(
        [answer(1, "404 No"), answer(2), answer(b"", "302 Found", Location="/x"), answer(3), answer(4), answer(5)]
    )
    runner = kept()
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 60}))
    assert (await bench.run(tool)).error is not None
    assert await runner.facts(tool) == (2, None)
    moved = bench.tool(http_call(url=site.url("/moved"), cache={"seconds": 60}))
    assert await runner.facts(moved) == (3, None)
    assert await runner.facts(moved) == (4, None)


async def test_pages_are_kept_each_for_itself(kept, bench, serve, answer):
    site = await serve([answer(["a"], Link="</2>; rel=next"), answer(["b"])])
    tool = bench.tool(http_call(url=site.url(), pagination={"type": "link"}, cache={"seconds": 60}))
    runner = kept()
    assert await runner.facts(tool) == (["a", "b"], None)
    assert await runner.facts(tool) == (["a", "b"], "hit")
    assert len(site.requests) == 2


def test_all_answers_together_are_bounded():
    cache = ResponseCache(max_bytes=1_000, clock=lambda: 0.0)
    url = parse_url("https://x.example/")
    for number in range(20):
        cache.keep(bytes([number]), Response(url=url, status=200, headers={}, body=b"x" * 200), CacheRule(60))
    assert [number for number in range(20) if cache.get(bytes([number]))] == [15, 16, 17, 18, 19]
    cache.keep(b"large", Response(url=url, status=200, headers={}, body=b"x" * 251), CacheRule(60))
    assert cache.get(b"large") is None


def test_time_makes_an_answer_stale():
    now = [100.0]
    cache = ResponseCache(max_bytes=1_000, clock=lambda: now[0])
    headers = {"cache-control": "max-age=10"}
    cache.keep(
        b"k", Response(url=parse_url("https://x.example/"), status=200, headers=headers, body=b""), CacheRule(60)
    )
    assert cache.is_fresh(cache.get(b"k"))
    now[0] = 110.0
    assert not cache.is_fresh(cache.get(b"k"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"cache": {"seconds": -1}}, "cache: seconds: must be an integer from 0 to 86400, not -1"),
        ({"cache": {"second": 1}}, "cache: second: is unknown; did you mean seconds?; seconds is missing"),
        ({"method": "POST", "cache": {"seconds": 1}}, "cache: answers of POST are not used again"),
    ],
)
def test_what_cannot_be_kept_is_refused(call, words):
    (problem,) = check_http(http_run(http_call(url="https://x.example/", **call)), {})
    assert problem.startswith(words)


@pytest.mark.parametrize("tag", ['"\xff\xfe"', "\xe9"])
async def test_a_tag_that_cannot_be_sent_back_spoils_no_later_call(kept, bench, serve, tag):
    def site_says(_):
        body = str(len(site.requests))
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nETag: {tag}\r\n\r\n"
        )
        return head.encode("latin-1") + body.encode()

    site = await serve(site_says)
    runner = kept()
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 0}))
    assert [await runner.facts(tool) for _ in range(3)] == [(1, None), (2, None), (3, None)]


@pytest.mark.parametrize(("age", "how"), [("10", "hit"), ("60", None), ("99999", None), ("-5", "hit"), ("x", "hit")])
async def test_the_age_that_an_answer_has_when_it_comes_counts(kept, bench, serve, answer, age, how):
    site = await serve(lambda _: answer(1, Cache_Control="max-age=60", Age=age))
    runner = kept()
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 600}))
    assert [await runner.facts(tool) for _ in range(2)] == [(1, None), (1, how)]


async def test_of_several_lives_the_shortest_counts(kept, bench, serve, answer):
    site = await serve(lambda _: answer(1, Cache_Control="max-age=600, s-maxage=0"))
    runner = kept()
    tool = bench.tool(http_call(url=site.url(), cache={"seconds": 600}))
    assert [await runner.facts(tool) for _ in range(2)] == [(1, None), (1, None)]


def test_headers_count_too_against_the_bound_of_all_answers():
    cache, url = ResponseCache(1_000), parse_url("https://x.example/")
    for number in range(5):
        answer = Response(url=url, status=200, headers={"x-note": "h" * 194}, body=b"x" * 40)
        cache.keep(bytes([number]), answer, CacheRule(60))
    assert [number for number in range(5) if cache.get(bytes([number])) is not None] == [1, 2, 3, 4]
    cache.keep(b"large", Response(url=url, status=200, headers={"x-note": "h" * 300}, body=b""), CacheRule(60))
    assert cache.get(b"large") is None


def test_threads_share_the_answers_and_their_bound():
    cache = ResponseCache(1_000)
    answer = Response(url=parse_url("https://x.example/"), status=200, headers={}, body=b"x" * 100)
    problems = []

    def use(number):
        try:
            for turn in range(2_000):
                key = bytes([(number + turn) % 7])
                cache.keep(key, answer, CacheRule(60))
                cache.get(key)
                cache.drop(bytes([turn % 5]))
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    for key in range(7):
        cache.drop(bytes([key]))
    assert cache._bytes == 0
