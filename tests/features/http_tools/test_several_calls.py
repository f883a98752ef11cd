"""Tools of several requests: in order, each with the answers before it, and each with its own idea of failure."""

import pytest

from sample_tools import http_call
from toolcrib import Kind, ToolError


@pytest.mark.spec("S1-11", "S1-102")
async def test_answers_feed_later_requests_and_the_last_is_the_value(bench, serve, answer):
    site = await serve(
        [answer({"id": 7, "tags": ["a", "b"]}), answer(b"two words", content_type="text/plain"), answer({"done": True})]
    )
    calls = (
        http_call(name="user", url=site.url("/users?name=${name}")),
        http_call(name="note", url=site.url("/notes/${user.id}?tag=${user.tags[1]}"), encoding="text"),
        http_call(
            url=site.url("/x"), method="POST", body='{"user": "${user}", "note": "on ${note}", "name": "${name}"}'
        ),
    )
    outcome = await bench.run(bench.tool(*calls), name="Ann B")
    assert outcome.value == {"done": True}
    assert site.targets == ["GET /users?name=Ann%20B", "GET /notes/7?tag=b", "POST /x"]
    assert site.body() == b'{"user": {"id":7,"tags":["a","b"]}, "note": "on two words", "name": "Ann B"}'
    assert [(call["name"], call["status"], call["attempts"]) for call in outcome.meta["calls"]] == [
        ("user", 200, 1),
        ("note", 200, 1),
        ("", 200, 1),
    ]


@pytest.mark.spec("S1-102")
async def test_the_answer_of_a_call_is_what_was_taken_out_of_it(bench, serve, answer):
    site = await serve([answer({"data": {"token": "t1"}}), answer(b"1")])
    calls = (
        http_call(name="login", url=site.url("/login"), extract="$.data.token"),
        http_call(url=site.url("/x"), headers={"Authorization": "Bearer ${login}"}),
    )
    assert (await bench.run(bench.tool(*calls))).value == 1
    assert site.header("Authorization") == "Bearer t1"


@pytest.mark.spec("S1-11")
async def test_a_call_that_fails_ends_the_tool(bench, serve, answer):
    site = await serve([answer(b"", "404 Not"), answer(b"1")])
    outcome = await bench.run(bench.tool(http_call(name="a", url=site.url("/a")), http_call(url=site.url("/b"))))
    assert outcome.error.kind is Kind.PERMANENT
    assert site.targets == ["GET /a"]
    assert [call["name"] for call in outcome.meta["calls"]] == ["a"]


@pytest.mark.spec("S1-11")
@pytest.mark.parametrize(("encoding", "written"), [("json", "null"), ("text", "")])
async def test_a_call_that_may_be_empty_lets_the_next_go_on(bench, serve, answer, encoding, written):
    site = await serve([answer(b"", "404 Not"), answer(b"1")])
    calls = (
        http_call(name="a", url=site.url("/a"), error_mode="empty", encoding=encoding),
        http_call(url=site.url("/b?a=${a}")),
    )
    outcome = await bench.run(bench.tool(*calls))
    assert (outcome.value, outcome.stands_in) == (1, False)
    assert site.targets == ["GET /a", f"GET /b?a={written}"]
    assert outcome.meta["calls"][0]["failure"]["type"] == Kind.PERMANENT


@pytest.mark.spec("S1-102")
async def test_what_an_answer_does_not_hold_is_refused_when_it_is_known(bench, serve, answer):
    site = await serve([answer({"id": 7}), answer(b"1")])
    calls = (
        http_call(name="a", url=site.url("/a"), method="POST"),
        http_call(url=site.url("/${a.name}"), error_mode="empty"),
    )
    outcome = await bench.run(bench.tool(*calls))
    assert outcome.error.kind is Kind.VALIDATION
    assert outcome.error.message == "url: ${a.name} has no value; give a with what is asked for in it"
    assert outcome.error.partial_side_effects
    assert site.targets == ["POST /a"]


@pytest.mark.spec("S1-38", "S1-102")
async def test_later_requests_are_checked_before_the_first_is_sent(bench, serve, answer):
    site = await serve(answer(b"1"))
    first = http_call(name="a", url=site.url("/a"))
    for later, problem in [
        (http_call(url=site.url("/${nope}?x=${a.b}")), "is neither a parameter"),
        (http_call(url="http://api.example.com/${a}"), "is not among the allowed hosts"),
        (http_call(url=site.url("/"), headers={"X-A": "${x} ${a}"}), "control character"),
        (
            http_call(url=site.url("/"), method="POST", body="${x}${a.b[0].c}", headers={"Content-Type": "text/plain"}),
            None,
        ),
    ]:
        if problem is None:
            bench.check(bench.tool(first, later), x="\n")
        else:
            with pytest.raises(ToolError, match=problem):
                bench.check(bench.tool(first, later), x="\n")
    assert site.connections == 0


async def test_an_answer_that_would_end_a_header_is_refused_at_its_request(bench, serve, answer):
    site = await serve([answer({"t": "a\r\nEvil: 1"}), answer(b"1")])
    calls = (http_call(name="a", url=site.url("/a")), http_call(url=site.url("/b"), headers={"X-A": "${a.t}"}))
    outcome = await bench.run(bench.tool(*calls))
    assert outcome.error.kind is Kind.VALIDATION
    assert site.targets == ["GET /a"]


async def test_an_answer_that_is_a_dash_is_looked_into_like_any_other(bench, serve, answer):
    site = await serve([answer(b"-"), answer(b"1")])
    calls = (http_call(name="a", url=site.url("/a"), encoding="text"), http_call(url=site.url("/${a.b}")))
    outcome = await bench.run(bench.tool(*calls))
    assert outcome.error.kind is Kind.VALIDATION


async def test_what_earlier_requests_changed_is_said_of_a_later_failure(bench, serve, answer):
    site = await serve([answer(b"1"), answer(b"", "404 Not")])
    calls = (http_call(name="a", url=site.url("/a"), method="DELETE"), http_call(url=site.url("/b")))
    outcome = await bench.run(bench.tool(*calls))
    assert outcome.error.partial_side_effects


async def test_the_time_of_the_call_is_shared(bench, serve, answer):
    async def never(reader, writer):
        await reader.read()

    slow = await serve(lambda _: never)
    site = await serve(answer(b"1"))
    calls = (
        http_call(name="a", url=slow.url(), error_mode="empty"),
        http_call(name="b", url=site.url(), error_mode="empty", encoding="text"),
    )
    outcome = await bench.run(bench.tool(*calls), seconds=0.1)
    assert (outcome.value, outcome.stands_in) == ("", True)
    assert [call["failure"]["type"] for call in outcome.meta["calls"]] == [Kind.TIMEOUT, Kind.TIMEOUT]
