"""Pages of an answer: asked for one after the other, merged into one value, and a server that leads astray is refused."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from sample_tools import http_call, http_run
from toolcrib import Kind, RetryPolicy, ToolError
from toolcrib.features.http_tools.request_check import check_http

NAMES = ["a", "b", "c", "d", "e"]


def asked(request):
    """The fields of the query of a request."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(request.split(b" ")[1].decode()).query).items()}


def body_of(request):
    return json.loads(request.partition(b"\r\n\r\n")[2])


async def paged(bench, site, *, calls=None, **pagination):
    call = {"url": site.url("/list?limit=2"), **(calls or {})}
    return await bench.run(bench.tool(http_call(pagination=pagination, **call)))


class TestKinds:
    async def test_a_cursor_leads_from_page_to_page(self, bench, serve, answer):
        def reply(request):
            start = int(asked(request).get("after", 0))
            return answer(
                {"data": NAMES[start : start + 2], "meta": {"next": start + 2 if start + 2 < len(NAMES) else None}}
            )

        site = await serve(reply)
        outcome = await paged(bench, site, type="cursor", parameter="after", next="$.meta.next", items="$.data")
        assert (outcome.error, outcome.value) == (None, NAMES)
        assert site.targets == ["GET /list?limit=2", "GET /list?limit=2&after=2", "GET /list?limit=2&after=4"]
        assert (outcome.meta["pages"], outcome.meta["attempts"]) == (3, 3)

    async def test_a_cursor_may_travel_in_a_json_body(self, bench, serve, answer):
        def reply(request):
            start = body_of(request).get("start", 0)
            return answer({"items": NAMES[start : start + 3], "next": "" if start else 3})

        site = await serve(reply)
        calls = {"method": "POST", "body": '{"query": "x"}'}
        outcome = await paged(
            bench, site, calls=calls, type="cursor", parameter="start", next="$.next", items="$.items", **{"in": "body"}
        )
        assert outcome.value == NAMES
        assert [body_of(request) for request in site.requests] == [{"query": "x"}, {"query": "x", "start": 3}]

    async def test_numbered_pages_end_with_an_empty_one(self, bench, serve, answer):
        site = await serve(lambda request: answer(NAMES[(int(asked(request)["page"]) - 1) * 2 :][:2]))
        outcome = await paged(bench, site, type="page", parameter="page")
        assert outcome.value == NAMES
        assert [asked(request)["page"] for request in site.requests] == ["1", "2", "3", "4"]

    async def test_a_page_that_is_not_full_is_the_last_where_the_size_is_known(self, bench, serve, answer):
        site = await serve(lambda request: answer({"n": NAMES[int(asked(request)["offset"]) :][:2]}))
        outcome = await paged(bench, site, type="offset", parameter="offset", items="$.n", size=2)
        assert outcome.value == NAMES
        assert [asked(request)["offset"] for request in site.requests] == ["0", "2", "4"]

    async def test_a_parameter_replaces_the_one_in_the_url(self, bench, serve, answer):
        site = await serve([answer(["a"]), answer([])])
        outcome = await paged(bench, site, calls={"url": site.url("/?page=9&q=%C3%A4")}, type="page", parameter="page")
        assert outcome.value == ["a"]
        assert site.targets == ["GET /?q=%C3%A4&page=1", "GET /?q=%C3%A4&page=2"]

    @pytest.mark.parametrize(
        "link",
        [
            '</p2>; rel="next"',
            '</first>; rel="first", </p2>; rel="prefetch next"',
            "</p2>; rel=next",
            '<{}/p2>; REL="next"',
        ],
    )
    async def test_the_link_header_names_the_next_page(self, bench, serve, answer, link):
        site = await serve(lambda request: replies.pop(0))
        replies = [answer(["a"], Link=link.format(site.url(""))), answer(["b"], Link='</>; rel="nextish"')]
        outcome = await paged(bench, site, type="link")
        assert outcome.value == ["a", "b"]
        assert site.targets[1] == "GET /p2"

    async def test_a_url_in_the_body_names_the_next_page(self, bench, serve, answer):
        site = await serve([answer({"results": [1], "next": "?page=2&x=%2F"}), answer({"results": [2], "next": None})])
        outcome = await paged(bench, site, type="url", next="$.next", items="$.results")
        assert outcome.value == [1, 2]
        assert site.targets[1] == "GET /list?page=2&x=%2F"

    async def test_the_expression_sees_all_items_as_one_list(self, bench, serve, answer):
        site = await serve([answer({"n": [{"id": 1}], "c": "x"}), answer({"n": [{"id": 2}]})])
        outcome = await paged(
            bench, site, calls={"extract": "$[*].id"}, type="cursor", parameter="c", next="$.c", items="$.n"
        )
        assert outcome.value == [1, 2]

    async def test_a_page_is_retried_by_itself(self, bench, serve, answer):
        site = await serve([answer(["a"], Link='</2>; rel="next"'), answer(b"", "503 No"), answer(["b"])])
        outcome = await paged(bench, site, type="link")
        assert outcome.value == ["a", "b"]
        assert (site.targets[1:], outcome.meta["attempts"], outcome.meta["pages"]) == (["GET /2", "GET /2"], 3, 2)


class TestAstray:
    @pytest.mark.parametrize("cursor", ["same", 7])
    async def test_a_cursor_that_never_moves_is_refused_with_what_was_read(self, bench, serve, answer, cursor):
        site = await serve(answer({"items": ["a"], "next": cursor}))
        outcome = await paged(bench, site, type="cursor", parameter="c", next="$.next", items="$.items", pages=1000)
        assert outcome.error.kind is Kind.OUTPUT_INVALID
        assert outcome.error.message.endswith("the server names a page as the next one that was read before")
        assert (outcome.value, len(site.requests)) == (["a", "a"], 2)

    async def test_links_that_lead_in_a_circle_are_refused(self, bench, serve, answer):
        site = await serve(
            lambda request: answer(
                ["x"], Link='</list?limit=2>; rel="next"' if b" /2 " in request else '</2>; rel="next"'
            )
        )
        outcome = await paged(bench, site, type="link", pages=1000)
        assert "that was read before" in outcome.error.message
        assert len(site.requests) == 2

    async def test_a_server_that_ignores_the_number_is_found_out(self, bench, serve, answer):
        site = await serve(answer(["a", "b"]))
        outcome = await paged(bench, site, type="page", parameter="pgae", pages=1000)
        assert outcome.error.message.endswith("the same page came twice, so the server may not know 'pgae'")
        assert (outcome.value, len(site.requests)) == (["a", "b", "a", "b"], 2)

    async def test_new_cursors_without_end_stop_at_the_limit_on_pages(self, bench, serve, answer):
        counter = iter(range(1000))
        site = await serve(lambda request: answer({"items": [next(counter)], "next": f"n{len(site.requests)}"}))
        outcome = await paged(bench, site, type="cursor", parameter="c", next="$.next", items="$.items", pages=3)
        assert outcome.error.kind is Kind.LIMIT_EXCEEDED
        assert "there are more than 3 pages, which is the limit" in outcome.error.message
        assert (outcome.value, outcome.error.details["pages"], len(site.requests)) == ([0, 1, 2], 3, 3)

    async def test_an_author_may_say_that_so_many_pages_are_enough(self, bench, serve, answer):
        site = await serve(lambda request: answer([len(site.requests)], Link=f"</{len(site.requests)}>; rel=next"))
        outcome = await paged(bench, site, type="link", pages=2, truncate=True)
        assert (outcome.error, outcome.value, len(site.requests)) == (None, [1, 2], 2)

    async def test_the_operators_limit_on_pages_is_never_left(self, bench, serve, answer):
        bench.limits["max_pages"] = 2
        site = await serve(lambda request: answer([len(site.requests)], Link=f"</{len(site.requests)}>; rel=next"))
        outcome = await paged(bench, site, type="link", pages=50, truncate=True)
        assert (outcome.error.kind, outcome.value, len(site.requests)) == (Kind.LIMIT_EXCEEDED, [1, 2], 2)

    async def test_pages_that_grow_stop_at_the_limit_on_bytes_of_all(self, bench, serve, answer):
        bench.limits["max_response_bytes"] = 10_000
        site = await serve(
            lambda request: answer(["x" * 10 ** len(site.requests)], Link=f"</{len(site.requests)}>; rel=next")
        )
        outcome = await paged(bench, site, type="link", pages=1000)
        assert outcome.error.kind is Kind.LIMIT_EXCEEDED
        assert ([len(item) for item in outcome.value], len(site.requests)) == ([10, 100, 1000], 4)

    async def test_the_time_of_the_request_is_for_all_pages(self, bench, serve, answer):
        async def stall(reader, writer):
            await reader.read()

        site = await serve(lambda request: stall if b"/2 " in request else answer(["a"], Link="</2>; rel=next"))
        outcome = await paged(bench, site, calls={"timeout_ms": 300, "retry": RetryPolicy()}, type="link")
        assert (outcome.error.kind, outcome.value) == (Kind.TIMEOUT, ["a"])
        assert outcome.error.details["timeoutMs"] == 300

    @pytest.mark.parametrize("kind", [{"type": "link"}, {"type": "url", "next": "$.next", "items": "$.items"}])
    async def test_a_page_on_another_host_is_not_asked_for(self, bench, serve, answer, kind, secrets_of):
        other = await serve(answer([]))
        bench.secrets = secrets_of(KEY="s3cret-value")
        page = ["a"] if kind["type"] == "link" else {"items": ["a"], "next": other.url("/x")}
        site = await serve(answer(page, Link=f"<{other.url('/x')}>; rel=next"))
        outcome = await paged(bench, site, calls={"headers": {"X-Key": "${KEY}"}}, **kind)
        assert outcome.error.kind is Kind.HOST_NOT_ALLOWED
        assert f"the next page is said to be at {other.url('')}, which is another host" in outcome.error.message
        assert (outcome.value, other.requests) == (["a"], [])

    @pytest.mark.parametrize(
        ("page", "words"),
        [
            ({"items": [1], "next": {"a": 1}}, "what names the next page is dict and no text"),
            ({"items": [1], "next": [1]}, "what names the next page is list and no text"),
            ({"items": [1], "next": "ftp://x/"}, "what names the next page is not a URL"),
            ({"items": {"a": 1}}, "what is at '$.items' is not a list; say in items where the list of items is"),
            ({"data": [1]}, "the answer has nothing at '$.items'"),
            (b"<html>", "the answer cannot be used"),
        ],
    )
    async def test_an_answer_that_is_no_page_is_refused(self, bench, serve, answer, page, words):
        site = await serve(answer(page))
        outcome = await paged(bench, site, type="url", next="$.next", items="$.items")
        assert outcome.error.kind is Kind.OUTPUT_INVALID
        assert words in outcome.error.message

    async def test_an_error_in_the_middle_keeps_what_was_read(self, bench, serve, answer, secrets_of):
        bench.secrets = secrets_of(KEY="s3cret-value")
        replies = [
            answer([{"k": "s3cret-value", "n": 1}], Link="</2>; rel=next"),
            answer({"why": "no s3cret-value"}, "403 No"),
        ]
        site = await serve(replies)
        outcome = await paged(bench, site, calls={"headers": {"X-Key": "${KEY}"}}, type="link")
        assert (outcome.error.kind, outcome.value) == (Kind.AUTH, [{"k": "***", "n": 1}])
        assert "s3cret" not in json.dumps(outcome.error.to_json())

    async def test_an_error_may_stand_for_nothing_with_pages_too(self, bench, serve, answer):
        site = await serve([answer(["a"], Link="</2>; rel=next"), answer(b"", "404 No")])
        outcome = await paged(bench, site, calls={"error_mode": "empty"}, type="link")
        assert (outcome.error, outcome.value, outcome.stands_in) == (None, None, True)


@pytest.mark.parametrize(
    ("pagination", "words"),
    [
        ({"type": "scroll"}, 'type: "scroll" is unknown; write "cursor" or "page" or "offset" or "link" or "url"'),
        ({"parameter": "x"}, "type is missing"),
        ({"type": "cursor", "next": "$.n"}, 'parameter is missing; write "parameter": "cursor"'),
        ({"type": "cursor", "parameter": "c"}, 'next is missing; write "next": "$.next"'),
        ({"type": "url", "next": "n"}, 'next: is not a JSONPath; write it like "$.items"'),
        ({"type": "link", "items": "$.["}, "items: is not a JSONPath"),
        ({"type": "link", "pages": 0}, "pages: must be an integer from 1 to 1000"),
        ({"type": "link", "itmes": "$.x"}, "itmes: is unknown; did you mean items?"),
        ({"type": "link", "truncate": "yes"}, "truncate: must be true or false"),
        ({"type": "page", "parameter": "p", "in": "header"}, 'in: "header" is unknown; write "query" or "body"'),
    ],
)
def test_a_wrong_description_of_pages_is_found_before_anything_is_sent(pagination, words):
    (problem,) = check_http(http_run(http_call(url="https://x.example/", pagination=pagination)), {})
    assert problem.startswith(f"pagination: {words}")


def test_pages_are_json():
    call = http_call(url="https://x.example/", pagination={"type": "link"}, encoding="text")
    assert check_http(http_run(call), {}) == [
        "pagination: pages are read as JSON, and the answer is read as text; read it as json"
    ]


async def test_a_body_that_is_no_object_cannot_carry_a_cursor(bench, serve, answer):
    site = await serve(answer({"items": ["a"], "next": "x"}))
    calls = {"method": "POST", "body": "[1]"}
    outcome = await paged(
        bench, site, calls=calls, type="cursor", parameter="c", next="$.next", items="$.items", **{"in": "body"}
    )
    assert isinstance(outcome.error, ToolError)
    assert outcome.error.message == "pagination: the body is not a JSON object that could take 'c'"
    assert outcome.value == ["a"]


@pytest.mark.parametrize("cursor", ["x" * 10_000, "\u00e9" * 3_000, True])
async def test_a_cursor_that_cannot_be_sent_is_the_servers_mistake(bench, serve, answer, cursor):
    site = await serve(answer({"items": [1], "next": cursor}))
    pagination = {"type": "cursor", "parameter": "c", "next": "$.next", "items": "$.items"}
    outcome = await bench.run(bench.tool(http_call(url=site.url(), pagination=pagination)))
    assert (outcome.error.kind, outcome.value, len(site.requests)) == (Kind.OUTPUT_INVALID, [1], 1)
    assert "what names the next page" in outcome.error.message
