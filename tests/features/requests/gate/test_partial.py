"""What a call had achieved when its network failed, as far as recorded answers show it."""

import pytest

from tool_requests import recorded_answer
from toolcrib import Kind, Result, ToolError
from toolcrib.features.requests.gate import Sample
from toolcrib.features.requests.gate.calls import Tried
from toolcrib.features.requests.gate.effects import Achievement

SAMPLE = Sample(about="a call", arguments={"repo": "owner/name"})


def achieved(value, *bodies):
    answers = [recorded_answer(f"https://api.example.com/{number}", body=body) for number, body in enumerate(bodies)]
    return Achievement(Tried(sample=SAMPLE, result=Result(value=value)), answers)


def left(value):
    return Tried(sample=SAMPLE, result=Result(value=value, error=ToolError(Kind.PERMANENT, "the network failed")))


def test_no_value_and_an_empty_object_count_as_lost_for_all_answers():
    achievement = achieved({"loud": "AHOY"}, "[]")
    assert achievement.is_lost(left(None))
    assert achievement.is_lost(left({}))
    assert not achievement.is_lost(left({"loud": ""}))
    assert not achieved([1, 2], "[]").is_lost(left([])), "a list may be empty yet"


def test_an_item_that_stands_in_an_answer_can_be_lost():
    achievement = achieved({"users": ["ada", "bob"], "total": 2}, '["ada"]', "<li>bob</li>")
    assert achievement.may_be_lost(left({"users": [], "total": 0}))
    assert achievement.may_be_lost(left({"users": ["nobody"], "total": 1}))
    assert not achievement.may_be_lost(left({"users": ["bob"], "total": 1}))


def test_an_item_that_is_not_finished_is_not_lost():
    achievement = achieved({"users": [{"name": "ada", "city": "London"}]}, '{"name": "ada", "city": "London"}')
    assert not achievement.may_be_lost(left({"users": [{"name": "ada", "city": None}]}))


def test_lists_in_an_inner_object_count():
    achievement = achieved({"found": {"users": ["ada"]}}, '["ada"]')
    assert achievement.may_be_lost(left({"found": {"users": []}}))
    assert not achievement.may_be_lost(left({"found": {"users": ["ada"]}}))


def test_what_the_question_says_is_no_achievement():
    achievement = achieved({"users": [{"repo": "owner/name", "name": "ada"}]}, '["owner/name", "ada"]')
    assert achievement.may_be_lost(left({"users": [{"repo": "owner/name", "name": None}]}))
    echo = achieved({"repos": ["owner/name"]}, '["owner/name"]')
    assert not echo.may_be_lost(left({"repos": []}))


def test_what_was_made_of_several_answers_and_what_stands_anywhere_by_chance_is_not_asked_for():
    nothing = left({"users": []})
    assert not achieved({"users": [{"name": "ada", "city": "London"}]}, '["ada"]', '["London"]').may_be_lost(nothing)
    assert not achieved({"users": [1, 2]}, "[1, 2]").may_be_lost(nothing)
    assert not achieved({"users": ["ADA"]}, '["ada"]').may_be_lost(nothing)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_only_answers_that_hold_something_become_landmarks(scheme):
    bodies = ['["ada"]', '{"token": "s3cr3t"}', "[" * 100_000]
    answers = [recorded_answer(f"{scheme}://api.example.com/", body=body) for body in bodies]
    before = Tried(sample=SAMPLE, result=Result(value={"users": ["ada"]}))
    landmark, *others = Achievement(before, answers).with_landmarks()
    assert (landmark.status, landmark.headers) == (302, {"Location": f"{scheme}://landmark.invalid/"})
    assert (landmark.url, landmark.method) == (answers[0].url, "GET")
    assert others == answers[1:]
