"""Text taken apart into words, and words brought to their stems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infra.search import MAX_WORD, MAX_WORDS, Vocabulary, moment, read_query, words_in_order, words_of
from toolcrib.infra.search.relevance import stem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("readFile", "read file"),
        ("read_file-now", "read file now"),
        ("HTTPServer2Go", "http server2 go"),
        ("utf-8 base64", "utf 8 base64"),
        ("Was kostet Größe?", "was kostet grosse"),
        ("_private__name_", "private name"),
        ("don't", "don t"),
        ("ﬁle ½", "file 1 2"),
        ("天气 weather", "天 气 weather"),
    ],
)
def test_words_are_told_apart(text, words):
    assert words_in_order(text) == words.split()


def test_what_is_made_of_several_words_is_one_too():
    assert words_of("readFile of a-b") == {"read", "file", "readfile", "of", "a", "b", "ab"}


@given(st.text(max_size=300))
def test_a_word_is_a_word_however_often_it_is_taken_apart(text):
    for word in words_of(text):
        assert 0 < len(word) <= MAX_WORD
        assert not set(word) & set(" \0\"'*()-_+:^{}§")
        assert word.encode()


def test_what_is_typed_is_bounded():
    query = read_query("word " * 10_000)
    assert query.words == ("word",)
    assert len(query.squeezed) == MAX_WORD
    assert len(read_query(" ".join(f"w{number}" for number in range(99))).words) == MAX_WORDS
    assert len(read_query("x" * 10_000).words[0]) == MAX_WORD
    assert read_query(" " * 300 + "word") is None


@pytest.mark.parametrize(
    "forms",
    [
        "translate translates translated translating translation translations translator",
        "calculate calculated calculation calculator calculating",
        "normalize normalise normalized normalising normalization normalisation",
        "summarize summarise summarizing summarised",
        "delete deletes deleted deleting deletion",
        "copy copies copied copying",
        "parse parsed parsing parser parses",
        "stop stopped stopping stops",
        "match matches matched matching",
        "similar similarity similarly",
        "send sends sending sender",
        "create created creation creating creates",
        "recursion recursive recursively",
    ],
)
def test_forms_of_a_word_have_one_stem(forms):
    assert len({stem(word) for word in forms.split()}) == 1


@pytest.mark.parametrize(
    "words", ["status state", "process proceed", "user use", "file fill", "address add", "sum some"]
)
def test_other_words_have_other_stems(words):
    assert len({stem(word) for word in words.split()}) == 2


@given(st.text(max_size=30))
def test_every_word_has_a_stem(word):
    assert isinstance(stem(word), str)
    assert bool(stem(word)) == bool(word)


def test_the_nearest_words_come_first_and_are_bounded():
    vocabulary = Vocabulary()
    vocabulary.add(["calculation", "calculations", "calculating", "other", "calcul8tion"])
    assert list(vocabulary.near("calculatoin").items()) == [
        ("calculation", 1),
        ("calcul8tion", 2),
        ("calculating", 2),
        ("calculations", 2),
    ]
    assert list(vocabulary.near("calculation")) == ["calcul8tion", "calculations", "calculating"]
    vocabulary.add(f"planet{first}{second}" for first in "abcdefghijklmnopqrst" for second in "abcdefghijklmnopqrst")
    assert len(vocabulary.near("planetuv")) == 200


def test_names_are_kept_apart_from_words_and_corrected_like_them():
    vocabulary = Vocabulary()
    vocabulary.add(["mail", "mails", "mailing", "post", "§mailbox", "§post"])
    vocabulary.add(["malt", "§mailing"])
    assert vocabulary.beginning("mail", 9) == ["mail", "mailing", "mails"]
    assert vocabulary.beginning("mail", 2) == ["mail", "mailing"]
    assert [vocabulary.has_name(start) for start in ("mai", "mailbox", "mailboxes", "malt", "post")] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert [vocabulary.has(word) for word in ("mail", "mailbox", "mailb", "post")] == [True, True, False, True]
    assert vocabulary.near("mialbox") == {"mailbox": 1}
    assert vocabulary.near("psot") == {"post": 1}


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("gte", {"get": 1}),
        ("ge", {}),
        ("auht0", {"auth0": 1}),
        ("s3bucke", {"s3bucket": 1}),
        ("ipv5", {}),
        ("ip4", {"ipv4": 1}),
        ("4711", {}),
    ],
)
def test_words_of_three_letters_and_words_with_digits_are_corrected_and_numbers_are_not(typed, near):
    vocabulary = Vocabulary()
    vocabulary.add(["get", "auth0", "s3bucket", "ipv4", "ipv6", "4712", "of"])
    assert vocabulary.near(typed) == near


@pytest.mark.parametrize("time", ["", "yesterday", "2026-13-45", "\ud800", "-1", "0001-01-01T00:00:00Z"])
def test_what_is_no_time_counts_as_the_oldest(time):
    assert moment(time) == 0


def test_times_of_different_zones_are_compared():
    assert moment("2026-03-01T10:00:00.123Z") == moment("2026-03-01T12:00:00.123+02:00")
    assert moment("2026-03-01T10:00:00.124Z") == moment("2026-03-01T10:00:00.123Z") + 1
    assert moment("9999-12-31T23:59:59.999Z") > moment("2026-03-01T10:00:00.124Z")
