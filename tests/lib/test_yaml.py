"""YAML is read within bounds, by the words of YAML 1.2, and every key knows its line."""

import itertools
import json
import re
import subprocess
import sys

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.lib.yaml import MAX_ALIASES, MAX_DEPTH, read_yaml

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=100), children, max_size=4),
    max_leaves=20,
)
HALVES = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


@pytest.fixture(params=["C", "Python"])
def parser(request, monkeypatch):
    """Both parsers of the library: the one in C, and the one that is always there."""
    if request.param == "C" and not yaml.__with_libyaml__:
        pytest.skip("the library was built without its parser in C")
    monkeypatch.setattr(yaml, "__with_libyaml__", request.param == "C")


def refuse(text: str | bytes) -> str:
    with pytest.raises(ToolError) as caught:
        read_yaml(text, "tool.yaml")
    return caught.value.message


@pytest.mark.usefixtures("parser")
class TestWords:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("no", "no"), ("yes", "yes"), ("on", "on"), ("Off", "Off"), ("y", "y"),
            ("true", True), ("False", False), ("TRUE", True), ("tRue", "tRue"),
            ("null", None), ("~", None), ("", None), ("NULL", None), ("nUll", "nUll"),
            ("1", 1), ("-7", -7), ("+7", 7), ("010", 10), ("0x1F", 31), ("0o17", 15), ("0b1", "0b1"), ("1_000", "1_000"),
            ("190:20:30", "190:20:30"), ("2024-01-01", "2024-01-01"), ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
            ("1.0", 1.0), ("1.0.0", "1.0.0"), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5E-3", -0.0015), ("e3", "e3"),
            ("-", [None]), ("--", "--"), ("+", "+"), (".", "."), ("1e", "1e"),
            ('"1"', "1"), ("'true'", "true"), ('"null"', "null"), ("|\n  1", "1"),
            (str(2**64 - 1), 2**64 - 1), (str(-(2**63)), -(2**63)),
        ],
    )  # fmt: skip
    def test_a_scalar_means_what_yaml_1_2_says(self, text, value):
        found = read_yaml(f"a: {text}" if value != [None] else "a:\n-").value
        assert found == {"a": value}
        assert type(found["a"]) is type(value)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (str(2**64), "an integer beyond 64 bit does not arrive unchanged; write it in quotes"),
            (str(-(2**63) - 1), "an integer beyond 64 bit"),
            ("9" * 100_000, "an integer beyond 64 bit"),
            ("0x" + "f" * 100_000, "an integer beyond 64 bit"),
            (".nan", ".nan is not a JSON value; write a finite number or null"),
            ("-.inf", "-.inf is not a JSON value"),
            ("1e999", "the number 1e999 is too large"),
        ],
    )
    def test_a_number_that_json_cannot_say_is_refused_with_its_line(self, text, words):
        assert refuse(f"x: 1\na: {text}").startswith(f"tool.yaml:2: {words}")

    def test_block_scalars_comments_and_flow_are_read(self):
        text = "# first\na: |-\n  one\n  two\nb: >-\n  one\n  two\nc: {d: [1, x], 'e': \"\\u00e4\"} # last\n"
        assert read_yaml(text).value == {"a": "one\ntwo", "b": "one two", "c": {"d": [1, "x"], "e": "ä"}}

    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "--- # here\n...\n"])
    def test_an_empty_document_is_null(self, text):
        assert read_yaml(text).value is None

    def test_a_mark_of_byte_order_is_skipped(self):
        assert read_yaml(b"\xef\xbb\xbfa: 1").value == {"a": 1}


class TestLines:
    def test_every_key_and_item_knows_its_line(self):
        document = read_yaml("a: 1\nb:\n  - x\n\n  - c: 1\n    d: [1,\n      2]\n")
        assert document.value == {"a": 1, "b": ["x", {"c": 1, "d": [1, 2]}]}
        assert dict(document.lines) == {
            (): 1, ("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 5, ("b", 1, "c"): 5, ("b", 1, "d"): 6,
            ("b", 1, "d", 0): 6, ("b", 1, "d", 1): 7,
        }  # fmt: skip

    def test_what_is_not_there_has_the_line_of_what_is_around_it(self):
        document = read_yaml("a: 1\nb:\n  c: 1\n")
        assert [document.line(path) for path in [("b", "c"), ("b", "x", 0), ("x",), ()]] == [3, 2, 1, 1]

    def test_what_an_alias_repeats_has_the_line_of_the_alias(self):
        document = read_yaml("a: &x\n  k: 1\nb: *x\n")
        assert document.value == {"a": {"k": 1}, "b": {"k": 1}}
        assert document.line(("b", "k")) == 3


@pytest.mark.usefixtures("parser")
class TestHostileDocuments:
    def test_an_alias_bomb_is_refused_before_it_unfolds(self):
        letters = "abcdefghij"
        text = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in itertools.pairwise(letters)
        )
        assert refuse(text) == "tool.yaml:5: aliases repeat too much; write the values out"

    def test_few_aliases_of_a_large_text_are_counted_by_its_size(self):
        text = f"a: &a {'x' * 100_000}\nb: *a\n"
        assert refuse(text) == "tool.yaml:2: aliases repeat too much; write the values out"

    def test_a_few_aliases_are_fine_and_many_are_not(self):
        good = "a: &a 1\nb: [" + ", ".join(["*a"] * MAX_ALIASES) + "]"
        assert read_yaml(good).value == {"a": 1, "b": [1] * MAX_ALIASES}
        assert "aliases repeat too much" in refuse(good[:-1] + ", *a]")

    def test_an_alias_inside_of_what_it_names_is_refused(self):
        assert refuse("a: &a [*a]") == "tool.yaml:1: *a names nothing that ends before it; write the value out"
        assert "*b names nothing" in refuse("a: *b\nb: &b 1")

    def test_aliases_do_not_dig_deeper_than_the_text_may(self):
        inner = "[" * (MAX_DEPTH - 2) + "]" * (MAX_DEPTH - 2)
        assert read_yaml(f"a: &a {inner}\nb: [*a]\n").value
        assert (
            refuse(f"a: &a {inner}\nb: [[*a]]\n")
            == f"tool.yaml:2: nested deeper than {MAX_DEPTH} levels; make it flatter"
        )

    def test_a_merge_key_is_refused(self):
        bomb = "a: &a {x: 1}\n" + "".join(f"b{n}: &b{n}\n  <<: [*a, *a]\n" for n in range(9))
        assert refuse(bomb) == "tool.yaml:3: merge keys ('<<') are not supported; write the keys out"
        assert read_yaml('{"<<": 1}').value == {"<<": 1}

    @pytest.mark.parametrize(
        "text",
        ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "\n".join(" " * n + "-" for n in range(600)), "? " * 100_000],
        ids=["flow", "block", "mapping", "indented", "keys"],
    )
    def test_depth_is_bounded_while_reading(self, text):
        message = refuse(text)
        assert f"nested deeper than {MAX_DEPTH} levels" in message or "a key must be text" in message

    def test_the_last_allowed_level_is_allowed(self):
        assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
        assert "nested deeper" in refuse("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))

    def test_a_huge_document_is_refused_before_it_is_parsed(self):
        with pytest.raises(ToolError) as caught:
            read_yaml("a: " + "x" * 256_000, "tool.yaml")
        assert caught.value.kind is Kind.LIMIT_EXCEEDED
        assert caught.value.message == "tool.yaml: has 256003 bytes, the limit is 256000; make it smaller"

    def test_a_huge_scalar_within_the_limit_is_read(self):
        assert read_yaml("a: " + "x" * 200_000).value == {"a": "x" * 200_000}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: 1\nb: \0", "tool.yaml:2: holds the character U+0000, which YAML forbids; write it as an escape in double quotes"),
            ("a: \x7f", "tool.yaml:1: holds the character U+007F, which YAML forbids"),
            ("a: x\ufeff", "tool.yaml:1: holds the character U+FEFF, which YAML forbids"),
            (b"a: 1\nb: \xff", "tool.yaml:2:4: is not UTF-8; save the document as UTF-8"),
            ("a: \ud800", "tool.yaml:1:4: is not UTF-8"),
            ("a: 1".encode("utf-16"), "tool.yaml:1:1: is not UTF-8"),
            ("a:\n\tb: 1", "tool.yaml:2: a tab cannot indent YAML; write spaces"),
            ("a: !!python/object:os.system x", "tool.yaml:1: the tag 'tag:yaml.org,2002:python/object:os.system' is not read; remove it"),
            ("a: !!str 1", "tool.yaml:1: the tag 'tag:yaml.org,2002:str' is not read"),
            ("a: ! 1", "tool.yaml:1: the tag '!' is not read"),
            ("a: !x {b: 1}", "tool.yaml:1: the tag '!x' is not read"),
            ("a: 1\nb: 2\na: 3", "tool.yaml:3: the key 'a' stands twice in one mapping; remove one"),
            ("a: 1\n'a': 3", "tool.yaml:2: the key 'a' stands twice"),
            ("a: 1\n---\nb: 2", "tool.yaml:2: begins a second document; write one document in a file"),
            ("1: a", "tool.yaml:1: the key '1' is not text; write it in quotes"),
            ("true: a", "tool.yaml:1: the key 'true' is not text; write it in quotes"),
            ("? [a]\n: b", "tool.yaml:1: a key must be text; write a word before the colon"),
            ("a: &x b\n*x : 1", "tool.yaml:2: a key must be text; write a word before the colon"),
        ],
    )  # fmt: skip
    def test_what_is_no_plain_data_is_refused_with_its_line(self, text, message):
        assert refuse(text).startswith(message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: b: c", "tool.yaml:1: a colon is not allowed here; write text with a colon in quotes"),
            ("a:\n  b: 1\n   c: []", "tool.yaml:3: a colon is not allowed here"),
            ("x: 1\na: 'b\nc: 1\n", "tool.yaml:2: the quote that opens here is never closed; close it"),
            ("x: 1\na:low\nc: 1\n", "tool.yaml:2: is not a key with a value; write key: value"),
            ("a: @all", "tool.yaml:1: text cannot begin with '@'; write it in quotes"),
            ("a: *all* of it", "tool.yaml:1: text cannot begin with '*'; write it in quotes"),
            ("a: 'don't'", "tool.yaml:1: does not belong here; indent it like its neighbours"),
            ("Here it is:\n```yaml\na: 1\n```", "tool.yaml:2: ``` is a fence around YAML and none of it; remove"),
            ("a:\n\xa0\xa0b: 1", "tool.yaml:2: a no-break space cannot indent YAML; write spaces"),
        ],
    )
    @pytest.mark.parametrize("fast", [True, False])
    def test_the_slips_of_people_are_told_where_they_are_with_their_cure(self, monkeypatch, fast, text, message):
        monkeypatch.setattr("yaml.__with_libyaml__", fast)
        assert refuse(text).startswith(message)

    @pytest.mark.parametrize("text", ["a: [1", "{a: 1", "%YAML 3.0\n---\na: 1", "]"])
    def test_a_fault_of_syntax_is_told_with_its_line(self, text):
        assert re.fullmatch(r"tool\.yaml:\d+: .+; correct the YAML there", refuse(text), re.DOTALL)

    @pytest.mark.parametrize(
        ("text", "line", "column"),
        [
            ("a: [1\n", 2, 1),
            ("a:\n  b: @x", 2, 6),
            ("a: 1\nb: 2\na: 3", 3, 1),
            ("a:\n  b: !x 1", 2, 6),
            ("a:\n\tb: 1", 2, 1),
            ("a: 1\nbc: \0", 2, 5),
            ("a: \ud800", 1, 4),
            ("a: [0x" + "f" * 30 + "]", 1, 5),
        ],
    )
    def test_line_and_column_are_told_as_numbers_too(self, text, line, column):
        with pytest.raises(ToolError) as caught:
            read_yaml(text)
        assert {"line": line, "column": column}.items() <= caught.value.details.items()


class TestWhatJSONCanSay:
    @settings(max_examples=examples(300))
    @given(PLAIN)
    def test_comes_back_as_it_was(self, value):
        # JSON may write one character as two halves, which YAML does not know.
        text = HALVES.sub(lambda found: json.loads(f'"{found[0]}"'), json.dumps(value))
        assert read_yaml(text).value == value

    @settings(max_examples=examples(200))
    @given(st.text(alphabet="ab:-#&*!|>'\"{}[],?%@` \t\n01.~<", max_size=60))
    def test_for_any_text_there_is_a_value_or_one_refusal(self, text):
        try:
            json.dumps(read_yaml(text).value, allow_nan=False)
            message = ""
        except ToolError as error:
            message = error.message
        assert not message or re.match(r"document:\d+: ", message)


def test_the_library_is_not_imported_before_a_document_is_at_hand():
    code = "import sys, toolcrib.features.scripts.format, toolcrib.lib.documents; print('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
