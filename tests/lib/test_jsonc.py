"""JSON with comments: comments go, everything else is as strict as JSON, and stays where it stood."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.documents import read_jsonc, without_comments

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["//", "/* */", '"', "\\", "*/", "/"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=12,
)
COMMENTS = st.sampled_from(
    ['// a "word"\n', "/* a */", "/**/", "/***/", "/* \n */", "//\n", "/* // */", '/*"*/', "//*\r\n"]
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ("// first\n[1, /* two */ 2]", [1, 2]),
        ('{"url": "https://x.example/*"}', {"url": "https://x.example/*"}),
        (r'["\" // no comment", "\\"] // one', ['" // no comment', "\\"]),
        ('/* " */ "a" /* " */', "a"),
        ("/* // */ 1", 1),
        ("/***/ 1 /* * / **/", 1),
        ("[1, // one\r\n2]", [1, 2]),
        ("[1, // one\r2]", [1, 2]),
        ("\ufeff// mark\n{}", {}),
    ],
)
def test_comments_are_left_out_and_text_in_quotes_is_not(text, value):
    assert read_jsonc(text) == value
    assert read_jsonc(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "// only",
        "[1,]",
        '{"a": 1,}',
        "{a: 1}",
        "{'a': 1}",
        "[1 /* a */ 2]",
        "1/**/2",
        "/ 1",
        "# no\n1",
        "/* a */ */ 1",
        '"a // b',
        '["/*',
        "+1",
        "0x1",
        ".5",
        "tru/**/e",
        '"a\nb"',
    ],
)
def test_nothing_else_than_comments_goes_beyond_json(text):
    with pytest.raises(ToolError) as caught:
        read_jsonc(text, "tool.json")
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.message.startswith("tool.json:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("[NaN]", "NaN is not a JSON value"),
        ("[-Infinity]", "-Infinity is not a JSON value"),
        ("1e999", "is too large"),
        ('"\\ud800"', "half of a surrogate pair"),
        ("[" * 65 + "]" * 65, "nested deeper than 64 levels"),
        ("[" * 100_000, "nested deeper than 64 levels"),
        ("9" * 5_000, "an integer of 5000 digits is too long"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(text, words):
    with pytest.raises(ToolError, match=re.escape(words)):
        read_jsonc(text)


def test_a_comment_without_an_end_is_told_where_it_begins():
    with pytest.raises(
        ToolError, match=re.escape("tool.json:3:5: the comment has no end; write */ after it")
    ) as caught:
        read_jsonc('{\n  "a": "/*",\n    /* b\n}', "tool.json")
    assert caught.value.details == {"line": 3, "column": 5}


def test_a_fault_behind_comments_is_told_where_it_stands():
    with pytest.raises(ToolError, match="tool.json:4:8"):
        read_jsonc('/* 1\n 2 */\n{ // 3\n  "a": ?}', "tool.json")


def test_a_document_that_is_too_large_is_not_looked_at():
    with pytest.raises(ToolError, match="the limit is 256000") as caught:
        read_jsonc(b"/*" * 128_001)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED


@pytest.mark.parametrize("piece", ["/*", "//", '"', "\\", "*/", "/", "/* */", '"\\'])
def test_the_time_that_hostile_text_takes_grows_with_its_length_alone(piece):
    with pytest.raises(ToolError):
        read_jsonc(piece * (250_000 // len(piece)))


@given(value=JSON, comments=st.lists(COMMENTS, min_size=1, max_size=4), data=st.data())
def test_comments_between_the_parts_of_any_json_change_nothing(value, comments, data):
    text = json.dumps(value, indent=1, ensure_ascii=data.draw(st.booleans()))
    gaps = st.sampled_from([0, *(gap.start() for gap in re.finditer("\n", text)), len(text)])
    # From behind, so that no comment comes to stand inside another one.
    for at in sorted((data.draw(gaps) for _ in comments), reverse=True):
        text = f"{text[:at]}\n{comments[at % len(comments)]}\n{text[at:]}"
    assert read_jsonc(text) == value
    stripped = without_comments(text)
    assert len(stripped) == len(text)
    assert [at for at, letter in enumerate(stripped) if letter == "\n"] == [
        at for at, letter in enumerate(text) if letter == "\n"
    ]
