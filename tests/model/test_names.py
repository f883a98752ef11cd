"""Slugs and versions: letters and digits of any script, dashes, and in versions dots."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.model.tool import check_slug, check_version, slug_problem, version_problem

LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")


def is_slug(text: str) -> bool:
    return slug_problem(text) == ""


def is_version(text: str) -> bool:
    return version_problem(text) == ""


@pytest.mark.spec("S1-42")
@pytest.mark.parametrize(
    "text", ["weather", "größe", "天気", "a-1", "Ωμέγα", "١٢٣", "עברית", "-", "0", "한국어", "ǅ", "ª"]
)
def test_letters_digits_and_dashes_of_any_script_are_taken(text):
    assert is_slug(text)
    assert is_version(text)


@pytest.mark.spec("S1-43")
@pytest.mark.parametrize(
    "text",
    [
        "a_b",
        "_",
        "a b",
        " a",
        "a\t",
        "a\n",
        "a\u00a0b",
        "a\u3000b",
        "a/b",
        "a\\b",
        "/",
        "..\\",
        "a\x00b",
        "\x1b[0m",
        "a\u200bb",
        "a\u202eb",
        "\ufeffa",
        "a+b",
        "+readfile",
        "$",
        "©",
        "a^b",
        "a`b",
        "€",
        "😀",
        "👩\u200d💻",
        "a@b",
        "a:b",
        "a%2Fb",
        "é".replace("é", "e\u0301"),
        "½",
        "²",
        "Ⅷ",
        "①",
        "–",
        "a—b",
        "\ud800",
        "\ue000",
    ],
)
def test_anything_else_is_refused(text):
    assert slug_problem(text) == "use 1 to 64 letters, digits or '-'"
    assert version_problem(text) == "use 1 to 64 letters, digits, '-' or '.'"


@pytest.mark.spec("S1-44")
@pytest.mark.parametrize("text", ["1.0.0", "v1.", ".v1", "größe.2"])
def test_dots_belong_into_versions_and_not_into_slugs(text):
    assert is_version(text)
    assert slug_problem(text) == "use 1 to 64 letters, digits or '-'"


@pytest.mark.parametrize("text", [".", "..", "." * 64])
def test_a_version_of_dots_alone_would_be_shortened_in_a_path_and_is_refused(text):
    assert not is_version(text)
    assert "dots alone" in version_problem(text)


@pytest.mark.spec("S1-46")
@pytest.mark.parametrize("letter", ["x", "ß", "天", "𝒳".upper(), "한"])
def test_length_is_counted_in_letters_and_not_in_bytes(letter):
    for is_right in (is_slug, is_version):
        assert is_right(letter)
        assert is_right(letter * 64)
        assert not is_right(letter * 65)
        assert not is_right("")


@pytest.mark.parametrize(
    ("text", "composed"),
    [
        ("\u1112\u1161\u11ab", "한"),
        ("\uac00\u11a8", "각"),
        ("\u212b", "Å"),
        ("\u2126", "Ω"),
        ("\u212a", "K"),
        ("\uf900", "\u8c48"),
        ("\U0002f800", "\u4e3d"),
    ],
)
def test_letters_that_have_a_composed_spelling_are_refused_with_it(text, composed):
    for problem in (slug_problem(text), version_problem(text)):
        assert problem == f"its letters have a shorter or more usual spelling; write {composed!r} (NFC)"
    assert is_slug(composed)


def test_the_checks_name_what_they_refuse():
    with pytest.raises(ToolError, match=r"^name 'a b': use 1 to 64 letters, digits, '-' or '_'$") as caught:
        check_slug("a b", "a b")
    assert caught.value.kind is Kind.VALIDATION
    with pytest.raises(ToolError, match=r"^version 'v 1': use 1 to 64 letters, digits, '-' or '\.'$"):
        check_version("v 1")
    with pytest.raises(ToolError, match=r"^name '\u212a': its letters have .* write 'K' \(NFC\)$"):
        check_slug("\u212a", "\u212a")


@given(st.text(max_size=70))
def test_the_rule_is_that_of_the_categories_of_unicode(text):
    def is_right(signs: str) -> bool:
        letters = all(letter in signs or unicodedata.category(letter) in LETTERS for letter in text)
        return 0 < len(text) <= 64 and letters and unicodedata.normalize("NFC", text) == text

    assert is_slug(text) == is_right("-")
    assert is_version(text) == (is_right("-.") and bool(text.strip(".")))
