"""Documents are read within bounds, and what JSON cannot say is refused with its place."""

import datetime as dt
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.lib.documents import check_plain, read_json, read_toml, write_json

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


def refuse(action, *arguments, **options):
    with pytest.raises(ToolError) as caught:
        action(*arguments, **options)
    return caught.value


class TestDefinitions:
    def test_text_and_bytes_are_read_alike(self):
        for document in ('{"a": [1, 2.5, "ü", null, true]}', '{"a": [1, 2.5, "ü", null, true]}'.encode()):
            assert read_json(document) == {"a": [1, 2.5, "ü", None, True]}

    def test_a_mark_of_byte_order_is_skipped(self):
        assert read_json(b"\xef\xbb\xbf[]") == []

    def test_a_fault_of_syntax_is_told_with_line_and_column(self):
        error = refuse(read_json, '{"a": 1,\n "b": }', place="tools/x/schema.json")
        assert error.kind is Kind.VALIDATION
        assert error.message == "tools/x/schema.json:2:7: expecting value; correct the JSON there"
        assert error.details == {"line": 2, "column": 7}

    def test_bytes_that_are_not_utf8_are_told_with_line_and_column(self):
        error = refuse(read_json, b'{\n "a": "\xff"}', place="tool.json")
        assert error.message == "tool.json:2:8: is not UTF-8; save the document as UTF-8"

    @pytest.mark.parametrize("document", ["[1]".encode("utf-16"), "[1]".encode("utf-32")])
    def test_no_other_encoding_is_guessed(self, document):
        assert refuse(read_json, document).kind is Kind.VALIDATION

    @pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
    def test_what_is_no_number_is_refused(self, word):
        message = refuse(read_json, f'{{"a": {word}}}').message
        assert message == f"document: {word} is not a JSON value; write a finite number or null"

    @pytest.mark.parametrize("number", ["1e999", "-1e999"])
    def test_a_number_that_would_be_read_as_infinite_is_refused(self, number):
        assert f"the number {number} is too large" in refuse(read_json, number).message

    def test_an_endless_integer_is_refused(self):
        assert "an integer of 10000 digits is too long" in refuse(read_json, "1" * 10_000).message

    def test_an_integer_beyond_64_bit_is_kept_exactly(self):
        assert read_json(str(2**70)) == 2**70

    def test_a_key_that_stands_twice_is_refused(self):
        message = refuse(read_json, '{"x": {"type": 1, "type": 2}}', place="tool.json").message
        assert message == "tool.json: the key 'type' stands twice in one object; remove one"

    def test_keys_that_are_equal_only_when_read_stand_twice_too(self):
        assert "stands twice" in refuse(read_json, '{"a": 1, "\\u0061": 2}').message

    @pytest.mark.parametrize("document", ['{"a": {"b": [0, "\\ud800"]}}', '{"a": {"b": [0, "\\udc00\\ud800"]}}'])
    def test_half_a_surrogate_pair_is_refused_with_its_place(self, document):
        message = refuse(read_json, document).message
        assert message.startswith("document: a.b[1]: text with half of a surrogate pair cannot be written to disk; ")

    def test_half_a_surrogate_pair_in_a_key_is_refused(self):
        assert "surrogate" in refuse(read_json, '{"\\ud800": 1}').message

    def test_a_whole_surrogate_pair_is_a_character(self):
        assert read_json('"\\ud83d\\ude00"') == "😀"

    def test_64_levels_are_read_and_65_are_not(self):
        assert read_json("[" * 64 + "]" * 64) is not None
        message = refuse(read_json, "[" * 65 + "]" * 65).message
        assert message == "document: [0][0][0][0][0][0][0][0]…: nested deeper than 64 levels; make it flatter"

    @pytest.mark.parametrize("document", ["[" * 100_000, '{"a":' * 50_000, "[" * 100_000 + "]" * 100_000])
    def test_an_abyss_is_refused_and_nothing_breaks(self, document):
        assert "nested deeper than 64 levels" in refuse(read_json, document, max_bytes=1_000_000).message

    @pytest.mark.parametrize("document", ['"äöü"', '"äöü"'.encode()])
    def test_the_size_counts_bytes_and_the_limit_itself_is_allowed(self, document):
        assert read_json(document, max_bytes=8) == "äöü"
        error = refuse(read_json, document, place="tool.json", max_bytes=7)
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert error.message == "tool.json: has 8 bytes, the limit is 7; make it smaller"

    @given(PLAIN)
    def test_what_json_wrote_is_read_back(self, value):
        assert read_json(json.dumps(value)) == value

    @given(st.text(alphabet='{}[]",:\\u0d8 truefalsn1eE.-\n', max_size=40) | st.binary(max_size=40))
    def test_anything_else_is_a_refusal_and_nothing_worse(self, document):
        try:
            value = read_json(document)
        except ToolError:
            return
        json.dumps(value, allow_nan=False).encode()


class TestPlainValues:
    @given(PLAIN)
    def test_what_json_can_say_is_plain(self, value):
        check_plain(value)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({"a": (1,)}, "a: a tuple is not a JSON value"),
            ({"a": {1}}, "a: a set is not a JSON value"),
            ({"a": b""}, "a: a bytes is not a JSON value"),
            ({"a": dt.date(2020, 1, 1)}, "a: a date is not a JSON value"),
            ({"a": [0, math.nan]}, "a[1]: nan is not a JSON value"),
            ({"a": math.inf}, "a: inf is not a JSON value"),
            ({"a b": {"c\n": 2**64}}, "['a b']['c\\n']: an integer beyond 64 bit"),
            ({"a": {1: 2}}, "a: the key '1' is not text"),
            ({"a": "\ud800"}, "a: text with half of a surrogate pair"),
        ],
    )
    def test_anything_else_is_refused_with_its_place(self, value, message):
        error = refuse(check_plain, value)
        assert error.kind is Kind.VALIDATION
        assert error.message.startswith(f"arguments: {message}")

    def test_a_value_that_holds_itself_is_refused(self):
        value = {}
        value["again"] = value
        assert "nested deeper than 64 levels" in refuse(check_plain, value).message


class TestToml:
    def test_tables_are_read(self):
        assert read_toml('[a.b]\nc = ["x", 1, 2.5, true]\n', "x.toml") == {"a": {"b": {"c": ["x", 1, 2.5, True]}}}

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("a = 1\nb = \n", "x.toml:2:5"),
            ("a = 1\nb = [1,\n", "x.toml:3:1"),
            ('a = "', "x.toml:1:6"),
            ("a = 1\na = 2", "x.toml:2:6"),
        ],
    )
    def test_a_fault_of_syntax_is_told_with_line_and_column(self, text, place):
        error = refuse(read_toml, text, "x.toml")
        assert error.kind is Kind.VALIDATION
        assert error.message.startswith(f"{place}: ")
        assert error.message.endswith("; correct the TOML there")
        assert f"x.toml:{error.details['line']}:{error.details['column']}" == place

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a.b = 2020-01-01", "x.toml: a.b: a date is not a JSON value"),
            ("a = inf", "x.toml: a: inf is not a JSON value"),
            ("a = 18446744073709551616", "x.toml: a: an integer beyond 64 bit"),
            (f"a = {'1' * 10_000}", "x.toml: an integer has too many digits"),
        ],
    )
    def test_what_json_cannot_say_is_refused_with_its_place(self, text, message):
        assert refuse(read_toml, text, "x.toml").message.startswith(message)

    @pytest.mark.parametrize(
        "text",
        [
            "a=" + "[" * 100_000,
            "a=" + "{a=" * 50_000,
            "[" + "a." * 100_000 + "a]",
            "a=1\nb = {" + '"a" . ' * 30_000 + "a=1}",
            "'a'." * 50_000,
        ],
    )
    def test_an_abyss_is_refused_before_it_costs_anything(self, text):
        assert "nested deeper than 64 levels" in refuse(read_toml, text, "x.toml").message

    def test_64_dotted_names_are_read_and_65_are_not(self):
        assert read_toml("a." * 63 + "a = 1", "x.toml")
        error = refuse(read_toml, "x = 1\n" + "a." * 64 + "a = 1", "x.toml")
        assert error.message == "x.toml:2: nested deeper than 64 levels; make it flatter"

    def test_dots_in_a_text_are_no_names(self):
        text = "." * 300 + "a." * 300
        assert read_toml(f"a = \"{text}\"\nb = '{text}'", "x.toml") == {"a": text, "b": text}

    @pytest.mark.parametrize("letters", ['"\\"', "x", "'", ".", " ", "'.", '\\"', "a "])
    def test_no_text_makes_the_look_for_dotted_names_slow(self, letters):
        # Quadratic work on 250 kB would run into the time limit of the suite.
        refuse(read_toml, f"x{letters * (250_000 // len(letters))}", "x.toml")

    def test_a_document_beyond_the_limit_is_refused(self):
        assert refuse(read_toml, "#" * 256_001, "x.toml").kind is Kind.LIMIT_EXCEEDED

    def test_half_a_surrogate_pair_is_refused(self):
        assert refuse(read_toml, 'a = "\ud800"', "x.toml").kind is Kind.VALIDATION


def test_what_orjson_refuses_is_written_all_the_same():
    assert json.loads(write_json({"large": 2**70, "path": Path("a/b")})) == {"large": 2**70, "path": "a/b"}


def test_what_has_no_json_form_is_written_as_far_as_it_has_one():
    loop: list[object] = []
    loop.append(loop)
    odd = {"no number": math.nan, "large": 2**70, ("a", 1): (math.inf, True), "larger": 10**5_000, "loop": loop}
    written = json.loads(write_json(odd), parse_constant=pytest.fail)
    assert written.pop("loop")
    assert written == {"no number": None, "large": 2**70, "('a', 1)": [None, True], "larger": hex(10**5_000)}
