"""Characters that a reader cannot see are found and written out; what scripts and emoji need stays as it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.lib.hidden_text import drop_hidden, find_hidden, show_hidden, show_hidden_in

HIDDEN = [
    *(
        "\x00",
        "\x07",
        "\x1b",
        "\x7f",
        "\x9b",
        "\xad",
        "\u034f",
        "\u061c",
        "\u115f",
        "\u1160",
        "\u180e",
        "\u200b",
        "\u200e",
        "\u200f",
    ),
    *(
        "\u2028",
        "\u2029",
        "\u202a",
        "\u202e",
        "\u2060",
        "\u2061",
        "\u2064",
        "\u2066",
        "\u2069",
        "\u206f",
        "\u2800",
        "\u3164",
        "\ufeff",
    ),
    *(
        "\uffa0",
        "\ufff9",
        "\ue000",
        "\U00013430",
        "\U00016fe4",
        "\U000e0001",
        "\U000e0041",
        "\U000e007f",
        "\U000e0100",
        "\U000f0000",
        "\U0010fffd",
        "\ud800",
    ),
]


@pytest.mark.parametrize("character", HIDDEN, ids=lambda letter: f"U+{ord(letter):04X}")
def test_a_hidden_character_is_found_and_written_out(character):
    text = f"read{character}file"
    assert [found.offset for found in find_hidden(text)] == [4]
    shown = show_hidden(text)
    assert character not in shown
    assert shown.startswith("read\\")
    assert shown.endswith("file")
    assert drop_hidden(text) == "readfile"


@pytest.mark.parametrize(
    "text",
    [
        "plain text\nin two lines\twith a tab\r\n",
        "Grüße aus Łódź, 東京, Ελλάδα",
        "می‌خواهم",
        "क्‍ष",
        "👩‍💻 writes",
        "❤️ and 1️⃣",
        "ℹ️ 〰️ ❤️‍🔥",
        "ශ්‍රී নন্‌দন",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿 England",
        "",
    ],
)
def test_what_scripts_and_emoji_need_is_not_hidden(text):
    assert find_hidden(text) == []
    assert show_hidden(text) is text


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "a\u200cb",
        "é\u200dé",
        "п\u200cр",
        "α\u200dβ",
        "漢\u200d字",
        "가\u200c나",
        "\u200d",
        "x\ufe0f",
        "🏴\U000e0067\U000e0062\U000e0068\U000e0069\U000e007f",
    ],
)
def test_a_joiner_a_selector_or_a_tag_elsewhere_is_hidden(text):
    assert find_hidden(text)


def test_a_value_is_shown_to_its_depths():
    assert show_hidden_in({"a\u200b": ["b\u202e", 1, None, {"c": "d"}]}) == {
        "a\\u200b": ["b\\u202e", 1, None, {"c": "d"}]
    }


@given(st.text())
def test_what_is_shown_hides_nothing_and_keeps_every_other_character(text):
    shown = show_hidden(text)
    assert find_hidden(shown) == []
    assert drop_hidden(drop_hidden(text)) == drop_hidden(text) or find_hidden(drop_hidden(text))
    letters = [
        letter
        for letter in text
        if unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Mn", "Lo", "So", "Cn", "Zl", "Zp"}
    ]
    assert all(letter in shown for letter in letters)


def test_a_text_of_nothing_but_flags_takes_no_longer_than_any_other():
    # With a search through all flags for each of their letters it takes minutes, and the limit of every test ends it.
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    text = england * 30_000
    assert show_hidden(text) is text


@pytest.mark.parametrize("text", ["\u0d28\u0d4d\u200d", "\u0995\u09cd\u200d a", "\U0001f642\u200d\u2194\ufe0f"])
def test_a_joiner_that_ends_a_letter_or_precedes_an_arrow_of_an_emoji_is_not_hidden(text):
    assert find_hidden(text) == []
