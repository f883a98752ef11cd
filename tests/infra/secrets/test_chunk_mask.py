"""A secret that is split over the chunks of a stream does not come out, and everything else does."""

from __future__ import annotations

import base64
import html
import itertools
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infra.secrets.chunk_mask import MAX_HELD
from toolcrib.infra.secrets.secret import MASK, Masking

SECRET = "sk/live&0123=456789"
OTHER = "9-another-secret"
SPELLINGS = {
    "as it is": SECRET,
    "in a URL": urllib.parse.quote(SECRET, safe=""),
    "in a URL, every letter": "".join(f"%{letter:02x}" for letter in SECRET.encode()),
    "in JSON": json.dumps(SECRET).replace("/", "\\/")[1:-1],
    "in JSON, every letter": "".join(f"\\u{ord(letter):04x}" for letter in SECRET),
    "in HTML, every letter": "".join(f"&#{ord(letter)};" for letter in SECRET),
    "in HTML": html.escape(SECRET),
    "in base64": base64.b64encode(SECRET.encode()).decode()[:-2],
    "in base64 over several lines": "\n".join(
        base64.b64encode(SECRET.encode()).decode()[place : place + 5] for place in range(0, 25, 5)
    ),
    "in hexadecimal": SECRET.encode().hex(),
}


def masking_of(*secrets: str) -> Masking:
    masking = Masking()
    masking.add(*secrets)
    return masking


def shown(masking: Masking, chunks: list, *, is_one_text: bool = True) -> list:
    """What comes out of a stream of these chunks."""
    mask = masking.chunks(is_one_text=is_one_text)
    return [*(one for chunk in chunks for one in mask.feed(chunk)), *mask.flush()]


def cut(text: str, places: list[int]) -> list[str]:
    ends = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[first:last] for first, last in itertools.pairwise(ends)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_cut_lets_a_secret_out_in_any_spelling(spelling):
    masking, text = masking_of(SECRET), f"before {SPELLINGS[spelling]} behind"
    assert masking.is_in(text)
    whole = cut(text, list(range(len(text))))
    for pieces in (whole, *(cut(text, [place]) for place in range(len(text)))):
        told = "".join(shown(masking, pieces))
        assert MASK in told
        assert not masking.is_in(told)
        # A reader of the stream cannot put the secret together from it.
        assert not any(SPELLINGS[spelling][place : place + 8] in told for place in range(len(SPELLINGS[spelling]) - 8))


def test_no_cut_within_a_character_of_several_escapes_lets_a_secret_out():
    secret = "pass\U0001f511w\xf6rd-\u20ac-0123"
    units = secret.encode("utf-16-be").hex()
    masking = masking_of(secret)
    for spelling in (
        "".join(f"%{letter:02x}" for letter in secret.encode()),
        "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)),
    ):
        text = f"before {spelling} behind"
        for pieces in (list(text), *(cut(text, [place]) for place in range(len(text)))):
            assert not masking.is_in("".join(shown(masking, pieces))), pieces
            chunks = [{"text": piece} for piece in pieces]
            told = shown(masking, chunks, is_one_text=False)
            assert not masking.is_in("".join(chunk["text"] for chunk in told)), pieces


@given(
    parts=st.lists(
        st.one_of(st.text(max_size=8), st.sampled_from([SECRET, OTHER, SECRET[:5], "sk", "%73k", "\\u0073", "&"])),
        max_size=6,
    ),
    places=st.lists(st.integers(0, 500), max_size=12),
)
def test_at_any_cut_nothing_but_the_secrets_is_missing(parts, places):
    masking, text = masking_of(SECRET, OTHER), "".join(parts)
    pieces = cut(text, places)
    told = "".join(shown(masking, pieces))
    assert not masking.is_in(told)
    if not masking.is_in(text):
        assert told == text


def test_text_that_cannot_be_a_secret_is_not_held_back():
    mask = masking_of(SECRET).chunks(is_one_text=True)
    assert mask.feed("a word, ") == ["a word, "]
    assert mask.feed("and s") == ["and "]
    assert mask.feed("ome more") == ["some more"]
    assert mask.flush() == []


def test_a_secret_that_is_the_beginning_of_a_longer_one_leaves_no_end_behind():
    masking = masking_of("abcd-1234", "abcd-1234-efgh-5678")
    assert shown(masking, ["abcd-1234", "-efgh-", "5678."]) == [f"{MASK}."]
    assert shown(masking, ["abcd-1234", "-other"]) == [f"{MASK}-other"]


def test_a_secret_whose_end_is_the_beginning_of_another_is_masked_whole():
    masking = masking_of(SECRET, OTHER)
    assert SECRET[-1] == OTHER[0]
    told = "".join(shown(masking, [SECRET[:4], SECRET[4:], OTHER[1:]]))
    assert not masking.is_in(told)
    assert "another" not in told or not told.startswith("sk")


def test_a_secret_split_over_the_texts_of_objects_is_masked_and_the_objects_keep_their_form():
    masking = masking_of(SECRET)
    pieces = [{"choices": [{"delta": part}], "number": number} for number, part in enumerate(cut(SECRET, [3, 9]))]
    told = shown(masking, pieces)
    assert [one["number"] for one in told] == [0, 1, 2]
    assert "".join(one["choices"][0]["delta"] for one in told) == MASK


def test_an_object_that_holds_no_beginning_of_a_secret_is_not_held_back():
    mask = masking_of(SECRET).chunks()
    assert mask.feed({"delta": "hello"}) == [{"delta": "hello"}]
    assert mask.feed({"delta": "sk"}) == []
    assert mask.feed({"delta": "y"}) == [{"delta": "sk"}, {"delta": "y"}]
    assert mask.feed(7) == [7]


def test_chunks_of_different_kinds_keep_their_order():
    masking = masking_of(SECRET)
    assert shown(masking, ["s", {"a": "s"}, "k", 1, None]) == ["s", {"a": "s"}, "k", 1, None]


def test_a_stream_that_repeats_the_beginning_of_a_secret_for_ever_is_held_back_no_longer_than_that():
    mask = masking_of("s" * 40).chunks()
    told = [one for number in range(2 * MAX_HELD) for one in mask.feed({"delta": "s", "number": number})]
    assert len(told) >= MAX_HELD
    assert "s" * 40 not in "".join(str(one["delta"]) for one in told)


def test_a_secret_that_becomes_known_during_a_stream_is_masked_from_then_on():
    masking = masking_of("unrelated-value")
    mask = masking.chunks(is_one_text=True)
    assert mask.feed(SECRET) == [SECRET]
    masking.add(SECRET)
    assert [*mask.feed(SECRET[:6]), *mask.feed(SECRET[6:]), *mask.flush()] == [MASK]


def test_texts_that_are_items_of_a_list_keep_their_borders():
    masking = masking_of(SECRET)
    assert shown(masking, ["class", "es", "s"], is_one_text=False) == ["class", "es", "s"]
    assert shown(masking, ["a", SECRET[:4], SECRET[4:], "b"], is_one_text=False) == ["a", MASK, "", "b"]


def test_a_secret_split_over_the_items_of_a_result_is_masked_there_too():
    masking = masking_of(SECRET)
    assert masking.hide_in(["a", SECRET[:4], SECRET[4:], "b"]) == [f"a{MASK}b", "", "", ""]
    assert masking.hide_in([{"t": SECRET[:4], "n": 1}, {"t": SECRET[4:], "n": 2}]) == [
        {"t": MASK, "n": 1},
        {"t": "", "n": 2},
    ]
    assert masking.hide_in(["plain", ["list"], {"of": ["texts"]}]) == ["plain", ["list"], {"of": ["texts"]}]


class Counted(list):
    """A list that counts how often it is read."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def passes(inner, *, depth=1):
    value = [inner]
    for _ in range(depth):
        value = [value]
    masking_of(SECRET).hide_in(value)
    return inner.passes


def test_a_list_is_read_as_often_however_many_secrets_are_in_it_and_however_deep_it_is():
    assert passes(Counted([SECRET] * 50)) == passes(Counted([SECRET]))
    assert passes(Counted([SECRET]), depth=50) == passes(Counted([SECRET]))
