"""Slugs and versions as names of files."""

import hashlib
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolcrib.lib.document_format import CUT, LONGEST, from_filename, to_filename

NAMES = st.text(min_size=1, max_size=70)
SLUGS = st.text("aAbBzZ09-é天ßſİ.", min_size=1, max_size=70)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("weather", "weather"),
        ("Weather", "_weather"),
        ("a-1", "a-1"),
        ("1.0.0", "1.0.0"),
        ("größe", "gr_0f6__0df_e"),
        ("天", "_05929_"),
        ("-a", "_02d_a"),
        (".5", "_02e_5"),
        ("_", "_05f_"),
        ("a/b", "a_02f_b"),
        ("..", "_02e_."),
        ("\0", "_00_"),
    ],
)
def test_every_letter_has_its_spelling(text, name):
    assert to_filename(text) == name
    assert from_filename(name) == text


@pytest.mark.spec("S1-45")
@given(NAMES | SLUGS, NAMES | SLUGS)
def test_two_texts_never_share_a_name_on_any_file_system(first, second):
    assume(first != second)
    assert to_filename(first).casefold() != to_filename(second).casefold()


@given(NAMES | SLUGS)
def test_a_name_is_short_plain_and_read_back_where_it_was_not_cut(text):
    name = to_filename(text)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", name)
    assert len(name) <= LONGEST
    assert from_filename(name) == (None if CUT in name else text)


@given(st.text("_0123456789abcdefg.-A@", max_size=20))
def test_what_nothing_is_spelled_as_is_read_as_nothing(name):
    text = from_filename(name)
    assert text is None or to_filename(text) == name


@pytest.mark.parametrize(
    "name", ["", "_", "__", "_0", "_00", "_0_", "_061_", "_0110000_", "A", "é", "a@b", "-", ".", "_1", "_0FF_"]
)
def test_a_name_that_is_no_spelling_means_nothing(name):
    assert from_filename(name) is None


def test_long_texts_with_one_beginning_have_names_of_their_own():
    first, second = "天" * 63 + "a", "天" * 63 + "b"
    assert len(to_filename(first)) == len(to_filename(second)) == LONGEST
    assert to_filename(first)[:60] == to_filename(second)[:60]
    assert to_filename(first) != to_filename(second)


def test_no_short_text_has_the_file_name_of_a_long_one():
    """A short text whose last letters are the hash of a long one, behind an escape that the cut goes through."""
    for tail in range(200):
        long = "天" * 8 + "é" * 30 + str(tail)
        name = to_filename(long)
        assert len(name) == LONGEST
        digest = hashlib.sha256(long.encode()).hexdigest()[:32]
        for cut in range(8, 12):
            for short in (long[:cut] + digest, long[:cut] + digest[0].upper() + digest[1:]):
                assert to_filename(short) != name
        assert from_filename(name) is None
