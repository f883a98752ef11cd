"""`doc_summary.md` and `doc.md`: how long, which sections, which examples, which failures."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.features.folders.documentation import (
    Absent,
    DocExample,
    Fence,
    Heading,
    Text,
    doc_examples,
    failure_modes,
    missing_sections,
    read_blocks,
)

SECTIONS = ["Summary", "Preconditions", "Postconditions", "Invariants", "Failure Modes", "Examples", "Common Mistakes"]


def missing(name):
    return (
        f'doc.md:1: Missing required section: {name}; write "## {name}" on a line of its own, '
        "outside of code and comments"
    )


def example(text):
    (found,) = doc_examples(f"## Examples\n{text}")
    return found


# doc_summary.md


@pytest.mark.spec("S2-25")
@pytest.mark.parametrize(("length", "passes"), [(1, True), (249, True), (250, False), (251, False)])
@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_a_summary_has_fewer_than_250_characters_without_its_final_newline(length, passes, ending, read):
    reading = read(summary="ü" * length + ending)
    told = f"tools/my-tool/doc_summary.md:1: has {length} characters; shorten it to at most 249"
    assert reading.problems == (() if passes else (told,))
    assert not passes or reading.tool.summary == "ü" * length


@pytest.mark.spec("S2-25", "S2-49")
def test_the_good_summary_passes_and_the_bad_one_is_told_its_length(read, faults, fixture_text):
    good, bad = fixture_text("summaries/good.md"), fixture_text("summaries/bad.md")
    assert read(summary=good).tool.summary == good.removesuffix("\n")
    assert len(good.removesuffix("\n")) == 190
    assert faults(summary=bad) == ["doc_summary.md:1: has 531 characters; shorten it to at most 249"]


@pytest.mark.spec("S2-25")
@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n", "\ufeff"])
def test_an_empty_summary_is_refused(text, faults):
    assert faults(summary=text) == [
        "doc_summary.md:1: is empty; write what a system prompt says of the tool in it"
    ]  # fmt: skip


@pytest.mark.parametrize(("lines", "told"), [(1, 0), (2, 0), (4, 0), (5, 1)])
def test_more_than_four_lines_are_advised_against(lines, told, warnings_of):
    advice = ["doc_summary.md:1: has 5 lines; 4 are enough for a system prompt"]
    assert warnings_of(summary="\n".join(["line"] * lines) + "\n") == advice[:told]


def test_an_example_in_javascript_is_read_and_advised_against(warnings_of, doc):
    text = "### Example 1: A Word\n```js\nexecute({ word: 'crib' })\n```"
    assert warnings_of(doc=doc(Examples=text)) == [
        "doc.md:20: Example 1: A Word: its arguments are read from JavaScript; write them as JSON, in a block that begins with ```json"
    ]


@pytest.mark.parametrize("name", ["summary", "doc"])
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"one\n\xff\xfe", ":2: is not UTF-8; save the document as UTF-8"),
        (b"one\ntwo \x00", ":2: holds a NUL character; remove it"),
        (b"x" * 300_000, ":1: has 300000 bytes, the limit is 256000; make it smaller"),
    ],
)
def test_unreadable_texts_are_refused_with_their_line(name, data, told, faults):
    file = {"summary": "doc_summary.md", "doc": "doc.md"}[name]
    assert faults(**{name: data}) == [f"{file}{told}"]


# The sections of doc.md


@pytest.mark.spec("S2-26", "S2-49", "S2-66")
@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_that_is_missing_is_named(name, faults, doc):
    left_out = "Common Mistakes (Do Not)" if name == "Common Mistakes" else name
    assert faults(doc=doc(**{left_out: None})) == [missing(name)]


@pytest.mark.spec("S2-26")
def test_all_sections_that_are_missing_are_told_at_once(faults):
    assert faults(doc="# My Tool\n") == [missing(name) for name in SECTIONS]


@pytest.mark.spec("S2-27")
@pytest.mark.parametrize(
    "title", ["Common Mistakes", "Common Mistakes (Do Not)", "Common Mistakes: none", "Common Mistakes ##"]
)
def test_more_may_follow_the_name_of_a_section(title, read, doc):
    assert read(doc=doc(**{"Common Mistakes (Do Not)": None, title: "None."})).problems == ()


@pytest.mark.parametrize(
    "heading",
    [
        "# Summary", "### Summary", "##Summary", "## summary", "## Summaryx", "## Summary_of", "## The Summary", "##",
        "    ## Summary", "\t## Summary", "> ## Summary", "- ## Summary", "Summary\n---", "Mentions ## Summary", r"\## Summary",
        "**Summary**", "```\n## Summary\n```", "~~~\n## Summary\n~~~", "````md\n```\n## Summary\n```\n````",
        "```\n~~~\n## Summary\n```", "   ```js\n## Summary\n   ```", "<!-- \n## Summary\n-->", "<!--\n\n## Summary\n\n-->",
        "   <!-- a --\n## Summary\n--> ## Summary",
    ],
)  # fmt: skip
@pytest.mark.spec("S2-29")
def test_what_only_looks_like_a_heading_does_not_count(heading, faults, doc):
    assert missing("Summary") in faults(doc=f"{heading}\n\n{doc(Summary=None)}")


@pytest.mark.parametrize(
    "before",
    [
        "```\ncode\n```", "~~~\n```\n~~~", "`a` ``b`` ```c```", "<!-- note -->", "<!-->", "text <!-- not closed", "``\n",
        "    ```\n", "```a`b", "````\n```\n````", "```\n```js\n```", "~~~ `x`\n~~~~~",
    ],
)  # fmt: skip
def test_code_and_comments_end_where_they_end(before, read, doc):
    assert read(doc=f"{before}\n{doc()}").problems == ()


@pytest.mark.parametrize("opening", ["```", "~~~", "````json", "<!--", "<!-- a -> b"])
def test_a_block_without_an_end_runs_to_the_end(opening, faults, doc):
    assert faults(doc=f"## Summary\n{opening}\n{doc(Examples='None.')}") == [missing(name) for name in SECTIONS[1:]]


def test_a_heading_may_be_indented_a_little_and_end_in_signs(read, doc):
    assert read(doc=doc(Summary=None) + "\n   ##\tSummary   ##  \nText").problems == ()


@pytest.mark.spec("S2-28")
def test_the_real_example_passes(read_fixture):
    reading = read_fixture("ignore-user")
    assert reading.problems == reading.warnings == ()
    assert len(reading.tool.examples) == 2


def test_the_template_has_every_section_and_names_no_error_type(fixture_text, read):
    reading = read(doc=fixture_text("doc_template.md"))
    assert reading.problems == ()
    assert [line.split(": ", 1)[1].split(";")[0] for line in reading.warnings] == [
        "'Error Type 1' is not an error type",
        "'Error Type 2' is not an error type",
        "Example 1: {Scenario Name}: the schema refuses its arguments (word is missing (string)",
    ]


# Examples


def test_an_example_is_a_title_and_arguments():
    found = doc_examples(
        '# T\n## Examples\n\n### One\nText\n```json\n{"a": [1]}\n```\n### Two\nOnly words.\n### Three\n~~~JSON x\n{}\n~~~'
    )
    assert found == [
        DocExample(title="One", line=6, arguments_text='{"a": [1]}', arguments={"a": [1]}),
        DocExample(title="Three", line=12, arguments_text="{}", arguments={}),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "{\n  text: 'ha', // what to repeat\n  times: 2,\n}",
        'await repeat_text({ text: "ha", times: 2 })',
        "repeat_text({ text: 'ha', times: 2 });",
        "execute({ args: { text: 'ha', times: 2 } })",
    ],
)
@pytest.mark.parametrize("language", ["javascript", "js", "ts"])
def test_arguments_in_javascript_are_read_as_they_would_be_in_json(language, code):
    [example] = doc_examples(f"## Examples\n### One\n```{language}\n{code}\n```\n")
    assert (example.arguments, example.is_json, example.problem) == ({"text": "ha", "times": 2}, False, "")


@pytest.mark.parametrize(
    "code",
    [
        "const a = { text: 'ha' }",
        "f({ text: name })",
        "f({ a: 1 }, { b: 2 })",
        "f({ a: 1 }); g({ b: 2 })",
        "{ a: 1",
        "await",
        "",
    ],
)
def test_other_code_in_javascript_is_no_example(code):
    assert doc_examples(f"## Examples\n### One\n```js\n{code}\n```\n") == []


def test_a_section_without_headings_is_one_example():
    assert example('Text\n```json\n{"a": 1}\n```').title == "Examples"
    assert example('Text\n```json\n{"a": 1}\n```').arguments == {"a": 1}


def test_only_the_section_on_examples_shows_examples():
    assert doc_examples("## Summary\n```json\n{}\n```\n## Examples\n```text\n{}\n```\n    ```json\n    {}\n    ```\n## More\n### A\n```json\n{}\n```") == []  # fmt: skip
    assert doc_examples("```\n## Examples\n```\n```json\n{}\n```") == []


@pytest.mark.parametrize(
    "line", ["Result:", "Result: two words", "**Result:**", "**Result**: words", "- Result: words", "> Result: words"]
)
def test_code_after_the_result_is_the_expected_data(line):
    found = example(f'```json\n{{}}\n```\n{line}\n\nmore\n```json\n[1, null]\n```\n```json\n"other"\n```')
    assert (found.arguments, found.expected, found.expected_error, found.problem) == ({}, [1, None], "", "")


def test_without_a_result_nothing_is_expected():
    found = example('```json\n{}\n```\nThe Result: is\n```json\n{"a": 1}\n```')
    assert found.expected is Absent


def test_null_is_a_result():
    assert example("```json\n{}\n```\nResult:\n```json\nnull\n```").expected is None


def test_a_result_before_the_arguments_is_none():
    found = example('Result: VALIDATION\n```json\n{"a": 1}\n```')
    assert (found.arguments, found.expected, found.expected_error) == ({"a": 1}, Absent, "")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("Result: SESSION_INACTIVE, nothing is sent", "SESSION_INACTIVE"),
        ("Result: fails with `TRANSIENT`", "TRANSIENT"),
        ("Result: the error\nCONFLICT", "CONFLICT"),
        ("Result: nothing\n\nCONFLICT", ""),
        ("Result: a validation error", ""),
        ("Result: VALIDATIONS and NOT_A_KIND", ""),
        ("Result: XVALIDATION", ""),
        ("Result: an HTTP ERROR", ""),
    ],
)
def test_a_result_that_names_an_error_type_expects_it(line, error):
    assert example(f"```json\n{{}}\n```\n{line}\n").expected_error == error


def test_code_beside_an_error_shows_the_error_and_no_data():
    found = example('```json\n{}\n```\nResult: CONFLICT\n```json\n{"ok": false}\n```')
    assert (found.expected, found.expected_error) == (Absent, "CONFLICT")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("{\n  'a': 1}", "line 4 is not JSON: expecting property name enclosed in double quotes; correct the JSON there"),
        ("[1]", 'the arguments are not a JSON object; write {"name": value}'),
        ('{"a": 1,\n"a": 2}', "line 2 is not JSON: the key 'a' stands twice in one object; remove one"),
        ("[" * 100 + "]" * 100, f"line 2 is not JSON: {'[0]' * 8}…: nested deeper than 64 levels; make it flatter"),
        ('{"a": NaN}', "line 2 is not JSON: NaN is not a JSON value; write a finite number or null"),
        ('{"a": 18446744073709551616}', "line 2 is not JSON: a: an integer beyond 64 bit does not arrive unchanged; write it as text"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_read_say_why(code, problem):
    found = example(f"```json\n{code}\n```")
    assert (found.arguments, found.problem, found.arguments_text, found.line) == (None, problem, code, 2)


def test_a_result_that_cannot_be_read_says_why():
    found = example("```json\n{}\n```\nResult:\n```json\n{,}\n```")
    assert found.arguments == {}
    assert found.expected is Absent
    assert found.problem == (
        "line 7 is not JSON: expecting property name enclosed in double quotes; correct the JSON there"
    )


def test_code_without_an_end_says_so():
    assert example("```json\n{}").problem == "nothing closes the code of line 2; add a line of three backticks"


def test_examples_that_the_schema_refuses_are_told_with_their_line(warnings_of, read, doc):
    shown = '### Good\n```json\n{"word": "a"}\n```\n### Bad\n```json\n{"word": 1}\n```\n### Broken\n```json\n{\n```'
    told = warnings_of(doc=doc(Examples=shown))
    assert [line.split(": ")[:2] for line in told] == [["doc.md:24", "Bad"], ["doc.md:28", "Broken"]]
    assert told[0].endswith(": the schema refuses its arguments (word: 1 is not of type string); correct them")
    assert ": line 29 is not JSON: expecting property name" in told[1]
    assert read(doc=doc(Examples=shown)).tool.examples == ({"word": "a"},)


def test_an_example_that_shows_how_arguments_are_refused_is_fine(warnings_of, read, doc):
    shown = '```json\n{"word": 1}\n```\nResult: VALIDATION'
    assert warnings_of(doc=doc(Examples=shown)) == []
    assert read(doc=doc(Examples=shown)).tool.examples == ()


def test_only_what_is_shown_to_succeed_is_an_example_for_models(read, doc):
    shown = (
        '### Fine\n```json\n{"word": "a"}\n```\nResult: the word.\n'
        '### Gone\n```json\n{"word": "b"}\n```\nResult: SESSION_INACTIVE\n'
        '### Refused\n```json\n{"word": 1}\n```\nResult: VALIDATION\n'
        '### Unclear\n```json\n{"word": "c"}\n```\nResult:\n```json\n{\n```'
    )
    tool = read(doc=doc(Examples=shown)).tool
    assert tool.examples == ({"word": "a"},)
    assert len(doc_examples(tool.documentation)) == 4


def test_an_example_may_leave_out_what_has_a_default(warnings_of, fields, doc):
    fields["parameters"]["properties"]["word"]["default"] = "crib"
    assert warnings_of(schema=fields, doc=doc(Examples="```json\n{}\n```")) == []


# Failure modes


def test_failure_modes_are_the_items_that_begin_in_bold():
    text = (
        "## Failure Modes\n- **VALIDATION**: a\n* **`CONFLICT`**: b\n   + **TRANSIENT:** c\n- **Timeout**: d\n- plain\n"
        "- text **AUTH**\n```\n- **IN_CODE**: e\n```\n    - **DEEPER**: f\n## Invariants\n- **INTERNAL**: g\n"
    )
    assert [(mode.name, mode.line, mode.known) for mode in failure_modes(text)] == [
        ("VALIDATION", 2, True), ("CONFLICT", 3, True), ("TRANSIENT", 4, True), ("Timeout", 5, False),
    ]  # fmt: skip


def test_a_failure_mode_that_is_no_error_type_is_warned_of(warnings_of, doc):
    assert warnings_of(doc=doc(**{"Failure Modes": "- **VALIDATION**: a\n- **Network down**: b"})) == [
        "doc.md:17: 'Network down' is not an error type; write an error type such as VALIDATION, TRANSIENT or CONFLICT"
    ]


# Any text at all

MARKS = ["## Examples", "### A", "## Failure Modes", "```json", "```", "~~~", "<!--", "-->", "Result:", "- **X**", "{", "}", "\r", "\x0c", "\u2028", "    ", "`", "\t"]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=6)), max_size=30).flatmap(
    lambda parts: st.sampled_from(["\n", " ", "", "\r\n"]).map(lambda glue: glue.join(parts))
)


@given(TEXTS)
def test_no_text_breaks_the_reader_and_every_line_is_told_where_it_stands(text):
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for block in read_blocks(text):
        assert 1 <= block.line <= len(lines)
        if isinstance(block, Text):
            assert lines[block.line - 1] == block.text
        elif isinstance(block, Heading):
            assert lines[block.line - 1].strip().startswith("#")
        elif isinstance(block, Fence):
            assert lines[block.line - 1].strip()[:3] in {"```", "~~~"}
    for found in doc_examples(text):
        assert found.problem or found.arguments is not None
        assert lines[found.line - 1].strip()[:3] in {"```", "~~~"}
    assert all("**" in lines[mode.line - 1] for mode in failure_modes(text))
    assert set(missing_sections(text)) <= set(SECTIONS)


@given(st.dictionaries(st.text(string.ascii_letters, min_size=1), st.text() | st.integers(-(2**63), 2**63), max_size=5))
def test_arguments_come_out_as_they_were_written(arguments):
    import json

    assert example(f"```json\n{json.dumps(arguments, indent=1)}\n```").arguments == arguments


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "text",
    [
        "#" * 90_000, "## " + "#" * 90_000, "##" + " " * 90_000 + "x", "`" * 90_000, "- **" * 30_000, "- **" + "a" * 90_000,
        "<!--" * 30_000, "```json\n" * 5_000, "## Examples\n" * 5_000, "### A\n```json\n{}\n```\n" * 2_000,
        "Result" + "*" * 90_000, "* " * 45_000, "\n" * 30_000, "## Failure Modes\n" + "- **A**\n" * 5_000,
        "## Examples\n" + "### A\n```json\n{}\n```\nResult:\n" * 1_000, "## Examples\n```json\n{}\n```\nResult: " + "A_" * 45_000,
        "## Examples\n```json\n{}\n```\n" + "Result:\n" * 5_000, "## Examples\n" + "### A\n" * 5_000,
    ],
)  # fmt: skip
def test_long_texts_of_signs_are_read_at_once(text):
    doc_examples(text)
    failure_modes(text)
    missing_sections(text)
