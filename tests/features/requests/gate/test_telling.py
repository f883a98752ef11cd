"""One fault is told once, in the words of the candidate, with how often it was seen."""

import pytest

CODE = """
def shout(loudly: bool = False) -> dict:
    return {"loud": "AHOY" if loudly else "ahoy", "letters": 4, "first": None}
"""
EXAMPLES = [
    {"input": {"loudly": True}, "output": {"loud": "AHOY", "letters": 4, "first": None}},
    {"input": {}, "output": {"loud": "ahoy", "letters": 4, "first": None}},
]


def checks(judgement):
    return sorted({str(complaint.check) for complaint in judgement.complaints})


def texts(judgement):
    return [str(complaint) for complaint in judgement.complaints]


def test_a_misspelt_output_is_told_once_with_how_often_it_was_seen(prove, few):
    judgement = prove(CODE.replace('"loud":', '"luod":'), few(examples=EXAMPLES))
    assert checks(judgement) == ["output"]
    [text] = texts(judgement)
    assert text.startswith(
        "output: shout(loudly=True): OUTPUT_INVALID: text_shouter returned something else than it promises: "
    )
    assert "did you mean loud?" in text
    assert text.endswith("; return every declared output, of its declared type, and no others; seen in 5 calls")


def test_a_name_that_only_examples_show_is_told_once_too(prove, few):
    judgement = prove(CODE.replace('"loud":', '"luod":'), few(examples=EXAMPLES, outputs=None))
    [text] = texts(judgement)
    assert text.startswith(
        "examples: shout(loudly=True) answers otherwise than the request shows: value.loud: expected"
    )
    assert text.endswith("; answer as shown; seen in 2 calls")


@pytest.mark.parametrize("examples", [None, EXAMPLES])
def test_one_line_that_raises_is_told_once_even_with_changing_texts(examples, prove, few):
    code = CODE.replace("    return", "    {}[f'key {loudly}']\n    return")
    [text] = texts(prove(code, few(examples=examples)))
    first = "True" if examples else "False"
    assert f"fails: KeyError: 'key {first}' (at text_shouter.py:3); " in text
    assert text.endswith(f"; seen in {2 if examples else 3} calls")


def test_two_lines_that_raise_are_told_each(prove, few):
    code = CODE.replace("    return", "    if loudly:\n        {}['a']\n    {}['a']\n    return")
    assert sorted(text.partition("(at ")[2].partition(")")[0] for text in texts(prove(code, few()))) == [
        "text_shouter.py:4",
        "text_shouter.py:5",
    ]


def test_values_of_another_type_are_one_mistake_however_they_look(prove, few):
    [text] = texts(prove(CODE.replace('"letters": 4', '"letters": str(loudly)'), few()))
    assert 'letters: "False" is not of type integer' in text
    assert text.endswith("; seen in 3 calls")


def test_an_example_that_fails_by_what_it_was_kept_from_is_told_as_that_alone(prove, few):
    judgement = prove(CODE.replace("    return", "    open('/var/mark', 'w')\n    return"), few(examples=EXAMPLES))
    assert checks(judgement) == ["effects"]


def test_an_example_that_takes_too_long_is_told_as_that_alone(prove, few):
    code = CODE.replace("    return", "    import time\n    while not loudly: time.sleep(1)\n    return")
    assert checks(prove(code, few(examples=EXAMPLES), seconds=1)) == ["limits"]
