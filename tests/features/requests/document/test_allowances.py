"""What an operator adds to a request, read from plain values."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document.extensions import read_allowance
from toolcrib.model.toolrequest import Allowance, RecordedAnswer


def problems_of(document: dict) -> list[str]:
    with pytest.raises(ToolError) as raised:
        read_allowance(document, "body")
    assert raised.value.kind is Kind.VALIDATION
    problems = raised.value.details["problems"]
    assert isinstance(problems, list)
    return problems


def test_nothing_is_allowed_by_nothing():
    assert read_allowance({}) == Allowance()


def test_everything_is_read():
    document = {
        "capabilities": ["net.http", "fs.read"],
        "hosts": ["api.example.com:8443", "*.example.com"],
        "answers": [{"url": "https://api.example.com/a?b=c", "method": "post", "status": 404, "body": "no"}],
        "unproved": True,
    }
    assert read_allowance(document) == Allowance(
        capabilities=frozenset({"net.http", "fs.read"}),
        hosts=("api.example.com:8443", "*.example.com"),
        answers=(RecordedAnswer(url="https://api.example.com/a?b=c", method="POST", status=404, body="no"),),
        unproved=True,
    )


def test_every_problem_is_told_at_once_with_its_place():
    problems = problems_of(
        {
            "capabilities": ["not one"],
            "hosts": "api.example.com",
            "answers": [{"url": "https://a.example/", "status": 999, "boddy": ""}],
            "unproved": 1,
            "capabilites": [],
        }
    )
    starts = ("capabilites", "capabilities[0]", "hosts", "answers[0].status", "answers[0].boddy", "unproved")
    assert sorted(problem.split(": ")[1] for problem in problems) == sorted(starts)
    assert any("did you mean" in problem.lower() for problem in problems if "capabilites" in problem)
    assert all(problem.startswith("body:") for problem in problems)


@pytest.mark.parametrize("name", ["capabilities", "hosts", "answers"])
def test_a_list_without_bound_is_refused(name):
    assert any("the limit is 64" in problem for problem in problems_of({name: ["net.http"] * 65}))


@pytest.mark.parametrize("name", ["capabilities", "hosts", "answers", "unproved", "other"])
def test_a_key_without_a_value_is_refused(name):
    assert problems_of({name: None}) == [f"body:1: {name}: is empty; write a value, or leave it out"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["capabilities", "hosts", "answers", "unproved", "other"]), VALUES))
def test_any_text_is_read_or_refused_in_words(document):
    with suppress(ToolError):
        assert isinstance(read_allowance(document), Allowance)
        return
    assert problems_of(document)
