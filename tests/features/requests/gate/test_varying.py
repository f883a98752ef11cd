"""What a request has to say so that a constant, or nothing at all, does not pass for an answer."""

import pytest

from tool_requests import allowance_of
from toolcrib.features.requests.gate.judge import find_unprovable

CODE = """
def shout(loudly: bool = False) -> dict:
    return {"loud": "AHOY" if loudly else "ahoy", "letters": 4, "first": None}
"""
CONSTANT = CODE.replace('"AHOY" if loudly else "ahoy"', '"ahoy"')
ONE_ANSWER = "the examples all have one answer, so a constant would pass; add one that differs"
EXAMPLES = [
    {"input": {"loudly": True}, "output": {"loud": "AHOY", "letters": 4, "first": None}},
    {"input": {}, "output": {"loud": "ahoy", "letters": 4, "first": None}},
]


def texts(judgement):
    return [str(complaint) for complaint in judgement.complaints]


def test_where_the_examples_differ_other_answers_need_not(prove, wanted):
    """Nothing else that is tried has an answer of its own here, and the examples have."""
    text = {"name": "text", "type": "string", "description": "A word", "required": True}
    request = wanted(
        name="yes_spotter",
        inputs=[text],
        outputs=[{"name": "found", "type": "boolean"}],
        example_usage=None,
        examples=[
            {"input": {"text": "yes"}, "output": {"found": True}},
            {"input": {"text": "no"}, "output": {"found": False}},
        ],
    )
    judgement = prove("def yes_spotter(text):\n    return {'found': text == 'yes'}\n", request)
    assert judgement.complaints == ()
    assert ONE_ANSWER not in judgement.checks


@pytest.mark.parametrize("number", [1, 2])
def test_a_constant_is_not_proved_by_examples_that_all_have_one_answer(number, prove, few):
    examples = [{"input": {"loudly": loudly}, "output": EXAMPLES[1]["output"]} for loudly in (False, True)]
    judgement = prove(CONSTANT, few(examples=examples[:number]))
    assert texts(judgement) == [
        (
            f"varies: not provable: {ONE_ANSWER}: shout answers {{'loud': 'ahoy', 'letters': 4, 'first': None}} "
            "to each of 2 different calls"
        )
    ]
    assert judgement.unprovable


def test_examples_that_all_have_one_answer_are_remarked_on(prove, few):
    heard = []
    judgement = prove(CODE, few(examples=EXAMPLES[1:]), say=heard.append)
    assert judgement.complaints == ()
    assert ONE_ANSWER in judgement.checks
    assert ONE_ANSWER in heard
    decided = prove(CODE, few(examples=EXAMPLES), say=heard.append)
    assert ONE_ANSWER not in decided.checks
    assert heard.count(ONE_ANSWER) == 1


def test_a_tool_without_inputs_has_one_answer_and_no_remark(prove, wanted):
    request = wanted(
        name="pi_teller", inputs=[], outputs=None, example_usage=None, examples=[{"input": {}, "output": 3.14}]
    )
    judgement = prove("def pi_teller():\n    return 3.14\n", request)
    assert judgement.complaints == ()
    assert ONE_ANSWER not in judgement.checks


def test_what_says_nothing_about_the_answer_is_not_provable_and_is_not_written(prove, wanted):
    request = wanted(name="quantum_banana", inputs=[], outputs=None, example_usage=None)
    stub = "def quantum_banana(): pass"
    text = (
        "not provable: add outputs or examples to the request, which says nothing about the answer, "
        "or allow it to go unproved"
    )
    assert find_unprovable(request, allowance_of()).text == text
    judgement = prove(stub, request, trial=None)
    assert texts(judgement) == [f"proof: {text}"]
    assert judgement.unprovable
    assert prove(stub, request, allowance=allowance_of(unproved=True)).passed


def test_outputs_examples_or_inputs_say_something_about_the_answer(wanted):
    def ask(**fields):
        return wanted(**{"inputs": [], "outputs": None, "example_usage": None, **fields})

    assert find_unprovable(ask(), allowance_of()) is not None
    for fields in (
        {"outputs": [{"name": "version", "type": "string"}]},
        {"examples": [{"input": {}, "output": 1}]},
        {"inputs": [{"name": "text", "type": "string", "description": "A text"}]},
    ):
        assert find_unprovable(ask(**fields), allowance_of()) is None


def test_one_that_answers_nothing_is_told_so_although_no_outputs_are_declared(prove, few):
    silent = few(outputs=None)
    judgement = prove("def shout(loudly=False): pass", silent)
    assert texts(judgement) == ["output: shout answers null to each of 3 calls; return what was asked for"]
    assert not judgement.unprovable, "another attempt may return something"
    assert prove("def shout(loudly=False):\n    return loudly or None", silent).passed
