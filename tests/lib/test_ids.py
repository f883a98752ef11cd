"""Identifiers of bundles and tools."""

import time
import uuid

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolcrib.lib.names import is_uuid7, new_id, stable_id

WORDS = st.lists(st.text(st.characters(exclude_categories=())), max_size=3)


def test_a_new_id_is_a_uuid_of_version_seven_and_of_now():
    before = time.time_ns() // 1_000_000
    made = [uuid.UUID(new_id()) for _ in range(1_000)]
    after = time.time_ns() // 1_000_000
    assert {(made.version, made.variant) for made in made} == {(7, uuid.RFC_4122)}
    assert all(before <= made.int >> 80 <= after for made in made)
    assert len(set(made)) == 1_000


def test_new_ids_sort_by_the_time_at_which_they_were_made():
    first = new_id()
    while time.time_ns() // 1_000_000 == uuid.UUID(first).int >> 80:
        pass
    assert first < new_id()
    assert stable_id("a") < first


@given(WORDS)
def test_a_stable_id_is_the_same_every_time_and_a_uuid_of_version_seven(words):
    assert stable_id(*words) == stable_id(*words)
    assert is_uuid7(stable_id(*words))


@given(WORDS, WORDS)
def test_other_words_and_the_same_letters_in_other_words_have_another_stable_id(first, second):
    assume(first != second)
    assert stable_id(*first) != stable_id(*second)


def test_a_stable_id_is_the_same_on_every_machine():
    assert stable_id("tool", "builtin/read_file") == "019b76da-a800-751d-8150-e10c9ad4947c"
    assert stable_id("a", "bc") != stable_id("ab", "c")


@pytest.mark.parametrize("text", ["0197A1B2-C3D4-7E5F-8ABC-0123456789AB", "0197a1b2-c3d4-7e5f-babc-0123456789ab"])
def test_the_usual_spelling_of_version_seven_is_known_in_either_case(text):
    assert is_uuid7(text)


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "0197a1b2-c3d4-4e5f-8abc-0123456789ab",
        "0197a1b2-c3d4-7e5f-cabc-0123456789ab",
        "0197a1b2c3d47e5f8abc0123456789ab",
        "{0197a1b2-c3d4-7e5f-8abc-0123456789ab}",
        "urn:uuid:0197a1b2-c3d4-7e5f-8abc-0123456789ab",
        "0197a1b2-c3d4-7e5f-8abc-0123456789ab\n",
        " 0197a1b2-c3d4-7e5f-8abc-0123456789ab",
        "0197a1b2-c3d4-7e5f-8abc-0123456789ag",
        "０197a1b2-c3d4-7e5f-8abc-0123456789ab",
    ],
)
def test_anything_else_is_not(text):
    assert not is_uuid7(text)
