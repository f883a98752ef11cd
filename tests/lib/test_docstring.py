from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.lib.python_declarations import NOTHING, Docstring, read_docstring

GOOGLE = """Look up the
    weather.

    It asks a station
    nearby.

    Args:
        city (str): The city: its
            common name.
        days: How many days.
        **more (Any): The rest.
        undescribed:

    Returns:
        sun: whether it shines.

    Raises:
        LookupError: if there is none.
    """
NUMPY = """Look up the
    weather.

    It asks a station
    nearby.

    Parameters
    ----------
    city : str
        The city: its
        common name.
    days : int, optional
        How many days.
    **more
        The rest.

    Returns
    -------
    sun : bool
        Whether it shines.
    """
SPHINX = """Look up the
    weather.

    It asks a station
    nearby.

    :param str city: The city: its
        common name.
    :param days: How many days.
    :type days: int
    :keyword more: The rest.
    :returns: whether it shines.
    :raises LookupError: if there is none.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_three_styles_say_the_same(text):
    found = read_docstring(text)
    assert found.types["city"] == "str"
    assert replace(found, types={}) == Docstring(
        summary="Look up the weather.",
        description="It asks a station\nnearby.",
        arguments={"city": "The city: its common name.", "days": "How many days.", "more": "The rest."},
    )


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_an_empty_docstring_says_nothing(text):
    assert read_docstring(text) is NOTHING


def test_names_that_share_a_text_get_it_each():
    text = "Add.\n\nParameters\n----------\nx, y : float\n    A summand.\n"
    assert read_docstring(text).arguments == {"x": "A summand.", "y": "A summand."}


def test_two_sections_are_both_read_and_the_first_text_wins():
    text = "Do.\n\nArgs:\n    a: First.\n\nKeyword Args:\n    a: Second.\n    b: Third.\n"
    assert read_docstring(text).arguments == {"a": "First.", "b": "Third."}


def test_prose_after_a_section_is_kept():
    text = "Do.\n\nArgs:\n    a: First.\n\nIt is quick."
    assert read_docstring(text) == Docstring(summary="Do.", description="It is quick.", arguments={"a": "First."})


def test_a_word_that_only_looks_like_a_header_is_prose():
    assert read_docstring("Parameters").summary == "Parameters"
    assert read_docstring("Example: none").summary == "Example: none"


@pytest.mark.parametrize(
    "text",
    [
        "@a " + " " * 200_000 + "x",
        ":param " + "a " * 100_000,
        "x\nArgs:\n    a" + " " * 200_000 + "x",
        "x\nArgs:\n    a(" + "(" * 200_000,
        "x\nParameters\n---\na" + " " * 200_000 + "!",
        "x\nParameters\n---\n" + "a , " * 60_000 + "!",
        "Args:\n" * 40_000,
        "Parameters\n---\n" * 15_000,
        "x\n\nArgs:\n" + "    a\n" * 40_000,
    ],
)
def test_a_hostile_docstring_is_read_in_linear_time(text):
    read_docstring(text)


@given(st.text(st.sampled_from("Args:\n -Parmets@param x*"), max_size=80))
def test_any_text_can_be_read(text):
    found = read_docstring(text)
    assert "\n" not in found.summary
    assert all(name and words for name, words in found.arguments.items())
