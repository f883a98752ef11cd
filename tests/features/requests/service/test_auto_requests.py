"""Requests that file themselves: what was called or searched for in vain."""

import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_requests import request_of
from toolcrib import Kind, ToolError
from toolcrib.features.requests import auto_request
from toolcrib.features.requests.document.writer import write_request

SECRET = "sk-very-private"


@pytest.mark.parametrize(
    ("called", "asked_for"),
    [
        ("github_stargazer_scraper", "github_stargazer_scraper"),
        ("github-stargazer-scraper", "github_stargazer_scraper"),
        ("GithubStargazerScraper", "github_stargazer_scraper"),
        ("Github Scraper", "github_scraper"),
        (" email_validator ", "email_validator"),
    ],
)
def test_a_name_is_asked_for_in_the_spelling_of_requests(called, asked_for):
    assert auto_request.fields_from_call(called, {})["name"] == asked_for


@pytest.mark.parametrize(
    "name",
    [
        "",
        "9x",
        "tools/word@1.0.0",
        "a.b",
        "../etc",
        "wörter",
        "class",
        "x" * 65,
        "x" * 100_000,
        "a\nb:c",
        "\ud800",
        "_",
    ],
)
def test_what_no_tool_can_be_called_is_not_asked_for(name):
    assert auto_request.fields_from_call(name, {}) is None


def test_inputs_are_guessed_from_the_types_of_arguments_and_hold_none_of_their_values():
    arguments = {
        "repo": SECRET,
        "limit": 417_263,
        "ratio": 0.417263,
        "deep": True,
        "names": [SECRET],
        "options": {SECRET: SECRET},
        "nothing": None,
    }
    text = write_request(auto_request.fields_from_call("github_scraper", arguments))
    request = request_of(text, numbered=False)
    assert [(given.name, given.schema["type"], given.required) for given in request.inputs] == [
        ("repo", "string", True),
        ("limit", "integer", True),
        ("ratio", "number", True),
        ("deep", "boolean", True),
        ("names", "array", True),
        ("options", "object", True),
        ("nothing", "string", True),
    ]
    assert SECRET not in text
    assert "417263" not in text.replace("_", "")
    assert (request.priority, request.requested_by) == ("low", "fullsend")
    assert request.description.startswith(auto_request.MARK)


@given(
    st.text(max_size=80) | st.from_regex(r"[A-Za-z][A-Za-z0-9 _-]{0,70}", fullmatch=True),
    st.none()
    | st.lists(st.integers())
    | st.dictionaries(st.text(max_size=70), st.none() | st.booleans() | st.integers() | st.text() | st.floats()),
)
def test_a_call_of_any_name_files_a_readable_request_or_none(name, arguments):
    fields = auto_request.fields_from_call(name, arguments)
    if fields is not None:
        assert request_of(fields, numbered=False).name == fields["name"]


@given(st.text(max_size=300) | st.from_regex(r"[A-Za-z0-9 _-]{1,120}[?!.]?", fullmatch=True))
def test_a_search_for_any_text_files_a_readable_request_or_none(text):
    fields = auto_request.fields_from_search(text)
    if fields is not None:
        assert request_of(fields, numbered=False).name == fields["name"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("scrape github stargazers", "scrape_github_stargazers"),
        ("How do I validate an email?", "how_do_i_validate_an_email"),
        ("write to bob@example.com", None),
        ("a b c d e f g h i j k l", None),
        ("?", None),
        ("", None),
        ("42", None),
        ("weather", None),
        ("ema", None),
        ("sha256 file hash", "sha256_file_hash"),
        ("person with ssn 123456789", None),
        ("call 555 0123 456", None),
    ],
)
def test_a_search_becomes_a_name_where_its_words_are_one(text, name):
    fields = auto_request.fields_from_search(text)
    assert (None if fields is None else fields["name"]) == name


@pytest.mark.spec("S0-01")
async def test_a_call_of_an_unknown_tool_files_a_request_and_names_it(yards):
    yard = yards(requests={"missing": True})
    result = await yard.crib.call("word_counter", text=SECRET)
    assert result.error.kind is Kind.NOT_FOUND
    [filed] = yard.queue.requests()
    assert result.error.details["requestId"] == filed.id
    assert (filed.name, filed.status, filed.priority) == ("word_counter", "pending", "low")
    assert SECRET not in filed.text
    again = await yard.crib.call("word_counter", other=1)
    assert again.error.details["requestId"] == filed.id
    assert len(yard.queue.requests()) == 1


async def test_a_slip_of_a_name_that_is_there_files_nothing(yards):
    yard = yards(requests={"missing": True})
    (yard.tools / "word_counter.py").write_text(yard.code())
    result = await yard.crib.call("word_counterr", text="x")
    assert "did you mean word_counter" in result.error.message
    assert "requestId" not in result.error.details
    assert yard.crib.request_from_search("word countr") == ""
    assert yard.queue.requests() == []
    result = await yard.crib.call("github_scraper", repo="x")
    assert result.error.details["requestId"] == yard.crib.request_from_search("github scraper")


async def test_nothing_is_filed_unless_the_operator_wants_it(yard):
    result = await yard.crib.call("word_counter", text="x")
    assert "requestId" not in result.error.details
    assert yard.queue.requests() == []


@pytest.mark.spec("S0-01")
async def test_a_call_of_a_tool_that_is_there_files_nothing(yards):
    yard = yards(requests={"missing": True})
    (yard.tools / "word_counter.py").write_text(yard.code())
    assert (await yard.crib.call("word_counter", text="one")).ok
    assert auto_request.AutoRequests(yard.requests).of_call("word-counter", {}) is None
    assert yard.queue.requests() == []


def test_a_name_that_was_requested_is_not_requested_again_in_any_state(yard):
    first = auto_request.AutoRequests(yard.requests).of_call("word_counter", {"text": "x"})
    yard.queue.fail(yard.claim(), "nobody can build that")
    assert auto_request.AutoRequests(yard.requests).of_call("word_counter", {}) == first
    assert auto_request.AutoRequests(yard.requests).of_search("word counter") == first
    assert len(yard.queue.requests()) == 1


def test_an_open_request_of_the_same_name_is_used_instead_of_an_automatic_one(yard):
    filed = yard.requests.new(yard.fields()).filed
    assert auto_request.AutoRequests(yard.requests).of_call("word_counter", {}) == filed.id


def test_only_so_many_are_open_at_once_and_others_do_not_count(yard, monkeypatch, caplog):
    monkeypatch.setattr(auto_request, "BACK_OFF_SECONDS", 0.0)
    yard.requests.new(yard.fields(name="asked_for_by_hand"))
    auto_requests = auto_request.AutoRequests(yard.requests, most=3)
    filed = [auto_requests.of_call(f"tool_{number}", {}) for number in range(5)]
    assert [one is not None for one in filed] == [True, True, True, False, False]
    assert "3 of this kind are open already" in caplog.text
    yard.queue.cancel(filed[0], "nobody wants it")
    assert auto_requests.of_call("tool_5", {}) is not None
    assert len(yard.queue.requests()) == 5


def test_many_callers_at_once_file_one_request_for_each_name(yard):
    auto_requests = auto_request.AutoRequests(yard.requests, patience=30.0)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(auto_requests.of_call("word_counter", {}))) for _ in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    [filed] = yard.queue.requests()
    assert filed.requesters == 1
    assert {one for one in found if one is not None} == {filed.id}


def test_a_queue_that_hangs_holds_up_no_one_else(yard, monkeypatch):
    queue = yard.crib._requests.queue
    go_on = threading.Event()
    monkeypatch.setattr(queue, "requests", lambda *_, **__: go_on.wait(30) and [])
    auto_requests = auto_request.AutoRequests(yard.requests, patience=0.01)
    assert [auto_requests.of_call(f"tool_{number}", {}) for number in range(50)] == [None] * 50
    hanging = [thread for thread in threading.enumerate() if thread.name == "toolcrib-request"]
    assert len(hanging) == auto_request.MAX_IN_PROGRESS
    go_on.set()
    for thread in hanging:
        thread.join(30)
    assert len(yard.queue.requests()) == auto_request.MAX_IN_PROGRESS


@pytest.mark.parametrize("problem", [ToolError(Kind.TRANSIENT, "the queue cannot be reached"), RuntimeError("odd")])
def test_a_queue_that_fails_costs_the_caller_nothing_and_is_left_alone_for_a_while(yard, monkeypatch, caplog, problem):
    queue = yard.crib._requests.queue
    asked = []

    def fail(*_, **__):
        asked.append(1)
        raise problem

    monkeypatch.setattr(queue, "requests", fail)
    auto_requests = auto_request.AutoRequests(yard.requests)
    with caplog.at_level(logging.WARNING, "toolcrib.requests"):
        assert [auto_requests.of_call(f"tool_{number}", {}) for number in range(10)] == [None] * 10
    assert len(asked) == 1
    assert "no request was filed for tool_0" in caplog.text


def test_an_empty_search_files_what_was_searched_for(yards):
    yard = yards(requests={"missing": True})
    assert yard.crib.find_tools("scrape github stargazers") == []
    [filed] = yard.queue.requests()
    assert filed.name == "scrape_github_stargazers"
