"""Reading what a model answers: which files it means, and what is refused with a word on how to do better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.features.requests.brief import fence
from toolcrib.features.requests.openai_maker import read_answer, read_files

ENTRY = "word_counter.py"


def complaint(text):
    with pytest.raises(ToolError) as refusal:
        read_files(text, entry=ENTRY)
    assert refusal.value.kind is Kind.OUTPUT_INVALID
    return refusal.value.message


def test_a_single_block_is_the_entry_file():
    assert read_files("Sure!\n```python\nx = 1\n```\nDone.", entry=ENTRY) == {ENTRY: b"x = 1\n"}


@pytest.mark.parametrize(
    "block",
    [
        "```python\n# file: helper.py\ny = 2\n```",
        "```python\n# File: helper.py  \ny = 2\n```",
        "```python\n// filename: helper.py\ny = 2\n```",
        "```helper.py\ny = 2\n```",
        "```python helper.py\ny = 2\n```",
        "```python file=helper.py\ny = 2\n```",
        '```python title="helper.py"\ny = 2\n```',
        "~~~python\n# file: helper.py\ny = 2\n~~~",
        "   ````python filename: helper.py\ny = 2\n````",
        "```python\r\n# file: helper.py\r\ny = 2\r\n```\r",
    ],
)
def test_a_block_is_named_in_its_first_line_or_beside_its_fence(block):
    text = f"```python\n# file: {ENTRY}\nx = 1\n```\n{block}"
    assert read_files(text, entry=ENTRY) == {ENTRY: b"x = 1\n", "helper.py": b"y = 2\n"}


def test_a_longer_fence_holds_a_shorter_one():
    text = "````python\ndoc = '''\n```\ncode\n```\n'''\n````"
    assert read_files(text, entry=ENTRY) == {ENTRY: b"doc = '''\n```\ncode\n```\n'''\n"}


def test_code_in_what_a_model_thought_aloud_is_no_answer():
    text = "<think>\n```python\nwrong\n```\n</think>\n```python\nright\n```"
    assert read_files(text, entry=ENTRY) == {ENTRY: b"right\n"}


def test_files_may_lie_in_folders():
    text = f"```python\n# file: {ENTRY}\n```\n```\n# file: data/words.txt\none\n```"
    assert read_files(text, entry=ENTRY) == {ENTRY: b"\n", "data/words.txt": b"one\n"}


def test_an_answer_without_code_is_told_how_to_answer():
    assert complaint("I would split the text.").startswith("the answer holds no block of code; answer with one fenced")


def test_several_blocks_without_names_are_refused():
    assert complaint("```python\nx\n```\n```bash\npytest\n```").startswith("block 1 of several names no file; answer")
    assert complaint(f"```python\n# file: {ENTRY}\nx\n```\n```bash\npytest\n```").startswith("block 2 of several names")


def test_an_answer_without_the_entry_file_is_refused():
    assert complaint("```python\n# file: other.py\nx\n```") == (
        f"the answer holds no file {ENTRY}; write the function there"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd.py", "../up.py", "a/../../b.py", ".hidden.py", "a/.git/config", "a//b.py", "a\\b.py", "-rf.py"),
        *("a/b/c/d/e/f.py", "x" * 200 + ".py", "ünï.py", "a\x00b.py", "con\u202etrol.py", "~/.bashrc"),
    ],
)
def test_a_path_that_leads_out_or_is_hidden_is_refused(name):
    text = f"```python\n# file: {ENTRY}\nx\n```\n```python\n# file: {name}\ny\n```"
    assert "cannot be a file of the package; write a plain name such as helper.py" in complaint(text)


@pytest.mark.parametrize("name", [ENTRY, f"{ENTRY}/more.py"])
def test_a_file_is_written_once_and_is_no_folder(name):
    assert "is there twice, or is a folder too" in complaint(
        f"```python\n# file: {ENTRY}\nx\n```\n```python\n# file: {name}\ny\n```"
    )


def test_a_block_that_is_not_closed_is_refused():
    assert complaint("```python\nx = 1") == "the last block of code is not closed; end every block with a fence"


def test_too_many_files_are_refused():
    text = "".join(f"```python\n# file: part{n}.py\n```\n" for n in range(60))
    assert complaint(text) == "the answer holds 60 files, and 50 are the most; write fewer"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the answer is not a completion"),
        (None, "the answer is not a completion"),
        ({}, "the answer is not a completion"),
        ({"choices": []}, "the answer is not a completion"),
        ({"choices": [None]}, "the answer is not a completion"),
        ({"choices": [{"message": "text"}]}, "the answer is not a completion"),
        ({"error": {"message": "over capacity"}}, "the endpoint answered with an error: over capacity"),
        ({"choices": [{"message": {"content": None, "refusal": "I cannot help"}}]}, "the model refused: I cannot help"),
        ({"choices": [{"message": {"content": "```\nx"}, "finish_reason": "length"}]}, "the answer was cut off"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}, "the answer was withheld"),
        ({"choices": [{"message": {"content": None, "tool_calls": [{}]}}]}, "the answer is empty"),
        ({"choices": [{"message": {"content": " \n"}}]}, "the answer is empty"),
        ({"choices": [{"message": {"content": ["parts"]}}]}, "the answer is empty"),
    ],
)
def test_an_answer_that_says_nothing_usable_is_refused_with_the_reason(document, message):
    with pytest.raises(ToolError) as refusal:
        read_answer(document, entry=ENTRY)
    assert refusal.value.kind is Kind.OUTPUT_INVALID
    assert refusal.value.message.startswith(message)


code = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r"), max_size=200)


@given(code)
def test_any_text_in_a_fence_of_ours_is_read_back(text):
    text = text.rstrip()
    assert read_files(fence("python", f"# file: {ENTRY}\n{text}"), entry=ENTRY) == {ENTRY: f"{text}\n".encode()}


@given(st.text(st.sampled_from("`~# file:\n.py/ab \\"), max_size=300))
def test_any_text_is_read_or_refused(text):
    try:
        names = read_files(text, entry=ENTRY).keys()
    except ToolError as refusal:
        names = {str(refusal.kind)}
    assert names == {str(Kind.OUTPUT_INVALID)} or ENTRY in names
