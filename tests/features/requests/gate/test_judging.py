"""How the gate comes to its judgement: examples decide, refusals hold, time is kept, and trouble of its own is no fault."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tool_requests import allowance_of
from toolcrib import Kind, ToolError
from toolcrib.features.requests.gate.judge import judge

CODE = """
def shout(loudly: bool = False) -> dict:
    return {"loud": "AHOY" if loudly else "ahoy", "letters": 4, "first": None}
"""
CONSTANT = CODE.replace('"AHOY" if loudly else "ahoy"', '"ahoy"')
EXAMPLES = [
    {"input": {"loudly": True}, "output": {"loud": "AHOY", "letters": 4, "first": None}},
    {"input": {}, "output": {"loud": "ahoy", "letters": 4, "first": None}},
]


def checks(judgement):
    return sorted({str(complaint.check) for complaint in judgement.complaints})


def texts(judgement):
    return [str(complaint) for complaint in judgement.complaints]


def test_the_answers_that_the_request_shows_are_the_right_ones(prove, few):
    judgement = prove(CODE, few(examples=EXAMPLES))
    assert judgement.complaints == ()
    assert "examples: 2" in judgement.checks


def test_a_wrong_answer_to_an_example_is_told_with_what_is_right(prove, few):
    judgement = prove(CONSTANT.replace("None", '"a"'), few(examples=EXAMPLES))
    assert not judgement.unprovable
    assert texts(judgement) == [
        (
            "examples: shout(loudly=True) answers otherwise than the request shows: "
            'value.loud: expected "AHOY", got "ahoy"; value.first: expected null, got "a"; answer as shown'
        ),
        (
            "examples: shout() answers otherwise than the request shows: "
            'value.first: expected null, got "a"; answer as shown'
        ),
    ]


def test_an_example_that_fails_is_told(prove, few):
    judgement = prove(CODE.replace("    return", "    1 / loudly\n    return"), few(examples=EXAMPLES))
    assert checks(judgement) == ["examples"]
    assert texts(judgement) == [
        (
            "examples: shout() fails: ZeroDivisionError: division by zero (at text_shouter.py:3); "
            "the request shows {'loud': 'ahoy', 'letters': 4, 'first': None}"
        )
    ]


def test_an_output_of_which_nothing_is_proved_is_named(prove, few):
    heard = []
    assert prove(CODE, few(), say=heard.append).passed
    assert heard[-1] == "nothing is proved of first: empty in every answer; examples would show more"


def test_examples_that_differ_only_by_what_python_calls_equal_are_both_tried(prove, wanted):
    request = wanted(
        name="value_namer",
        inputs=[{"name": "record", "type": "object", "description": "Any", "required": True}],
        outputs=[{"name": "kind", "type": "string"}],
        example_usage=None,
        examples=[
            {"input": {"record": {"value": 1}}, "output": {"kind": "int"}},
            {"input": {"record": {"value": True}}, "output": {"kind": "bool"}},
        ],
    )
    assert texts(prove("def value_namer(record):\n    return {'kind': 'int'}\n", request)) == [
        (
            "examples: value_namer(record={'value': True}) answers otherwise than the request shows: "
            'value.kind: expected "bool", got "int"; answer as shown'
        )
    ]


def test_with_examples_other_calls_may_fail(prove, few):
    narrow = CONSTANT.replace("    return", "    assert not loudly\n    return")
    assert prove(narrow, few(examples=EXAMPLES[1:])).passed


KNOWING_BETTER = """
import functools

def told(function):
    @functools.wraps(function)
    def inner(**given):
        return function(loudly=given.get("loudly", True))
    return inner

@told
"""


def test_one_that_draws_the_same_twice_is_not_held_to_its_defaults(prove, few, trial):
    drawn = iter(["HEY", "HEY", *["ho", "HEY"] * 20])

    class Drawing:
        def __init__(self, opened):
            self.load, self.deeds, self._call = opened.load, opened.deeds, opened.call

        async def call(self, arguments):
            result = await self._call(arguments)
            return result if arguments else replace(result, value={**result.value, "loud": next(drawn)})

    @asynccontextmanager
    async def drawing(tool, terms):
        async with trial(tool, terms) as opened:
            yield Drawing(opened)

    code = CODE.replace('"letters": 4', '"letters": 4 + loudly')
    assert prove(code, few(), trial=drawing).complaints == ()


def test_leaving_out_is_held_against_giving_every_default(prove, few, trial):
    """The platform fills in defaults; should they be lost on the way, the gate sees who uses others."""

    @asynccontextmanager
    async def unfilled(tool, terms):
        properties = {"loudly": {"type": "boolean"}}
        async with trial(replace(tool, parameters={**tool.parameters, "properties": properties}), terms) as opened:
            yield opened

    assert prove(CODE, few(), trial=unfilled).passed
    assert texts(prove(KNOWING_BETTER + CODE.lstrip(), few(), trial=unfilled)) == [
        (
            "defaults: shout() with every default given answers {'loud': 'ahoy', 'letters': 4, 'first': None}, "
            "and otherwise {'loud': 'AHOY', 'letters': 4, 'first': None}; use the defaults of the request"
        )
    ]


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("return {'loud': 1}", "output"),
        ("open('/var/mark', 'w')", "effects"),
        ("import time; time.sleep(60)", "limits"),
    ],
)
def test_with_examples_other_calls_still_have_to_be_harmless(line, check, prove, few):
    code = CODE.replace("    return", f"    if loudly:\n        {line}\n    return")
    assert checks(prove(code, few(examples=EXAMPLES[1:]), seconds=1 if check == "limits" else 10)) == [check]


def test_a_daemon_is_seen_although_only_an_example_is_answered(prove, few):
    daemon = "import os, time\n    if os.fork() == 0:\n        time.sleep(9)\n        os._exit(0)"
    code = CODE.replace("    return", f"    assert loudly\n    {daemon}\n    return")
    assert texts(prove(code, few(examples=EXAMPLES[:1]))) == [
        "effects: shout(loudly=True) leaves a process behind; end what it began"
    ]


def test_a_deed_that_is_done_again_and_again_is_told_once(prove, few):
    code = CODE.replace(
        "    return", "    try:\n        open('/var/mark')\n    except OSError:\n        pass\n    return"
    )
    assert texts(prove(code, few())) == [
        "effects: shout(): it reads /var/mark (it was denied); remove it: no capability opens that"
    ]


def test_many_deeds_are_summed_up(prove, few):
    reading = "for number in range(30):\n        try:\n            open(f'/var/{number}')\n        except OSError:\n            pass"
    judgement = prove(CODE.replace("    return", f"    {reading}\n    return"), few())
    assert len(judgement.complaints) == 11
    assert texts(judgement)[-1] == "effects: … and 20 more such deeds"


def test_words_of_a_candidate_stay_on_one_line_of_bounded_length(prove, few):
    judgement = prove(CODE.replace("    return", "    raise ValueError('a\\nb ' * 5000)\n    return"), few())
    assert all("\n" not in text and len(text) < 2_000 for text in texts(judgement))
    assert "ValueError: a b a b" in texts(judgement)[0]


@pytest.mark.spec("S0-20")
def test_what_the_inputs_do_not_allow_is_refused_before_the_tool_runs(prove, few, trial):
    """The schema that guards a call is the platform's own; should it be lost on the way, the gate sees that."""

    @asynccontextmanager
    async def unguarded(tool, terms):
        async with trial(replace(tool, parameters={"type": "object"}), terms) as opened:
            yield opened

    judgement = prove(CODE, few())
    assert judgement.passed
    assert "refuses: 8 calls" in judgement.checks
    unguarded_judgement = prove(CODE, few(), trial=unguarded)
    assert texts(unguarded_judgement)[0] == (
        "refuses: shout(loudly=3.5) (loudly = 3.5) was not refused; the inputs do not allow it"
    )


def test_the_gate_ends_at_its_deadline(prove, few):
    judgement = prove(CODE.replace("    return", "    import time\n    time.sleep(5)\n    return"), few(), deadline=0.7)
    assert texts(judgement) == ["limits: the time was over before the gate had finished; raise builder.seconds"]
    assert not judgement.unprovable


@pytest.mark.parametrize("kind", [Kind.SANDBOX_UNAVAILABLE, Kind.OVERLOADED, Kind.CANCELLED])
def test_trouble_of_the_platform_is_raised_and_not_blamed_on_the_candidate(kind, prove, few, trial):
    class Troubled:
        def __init__(self, opened):
            self.load, self.deeds, self._call = opened.load, opened.deeds, opened.call

        async def call(self, arguments):
            result = await self._call(arguments)
            return result if result.refused else replace(result, error=ToolError(kind, "not now"))

    @asynccontextmanager
    async def troubled(tool, terms):
        async with trial(tool, terms) as opened:
            yield Troubled(opened)

    with pytest.raises(ToolError, match="not now"):
        prove(CODE, few(), trial=troubled)


async def test_a_judgement_that_is_not_awaited_ends_at_once(candidate, few):
    begun, ended = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def waiting(tool, terms):
        begun.set()
        try:
            await asyncio.Event().wait()
            yield None
        finally:
            ended.set()

    request = few()
    work = judge(
        candidate(request, CODE),
        request,
        waiting,
        allowance=allowance_of(),
        seconds_per_call=1,
        deadline=time.monotonic() + 60,
        say=lambda text: None,
    )
    task = asyncio.create_task(work)
    await asyncio.wait_for(begun.wait(), 25)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 25)
    assert ended.is_set()


def test_a_request_that_cannot_be_checked_is_told_before_anything_runs(prove, few):
    request = few()
    open_inputs = replace(request, parameters={"type": "object"})
    unreadable = replace(request, output_schema={"type": "nonsense"})
    wordless = replace(request, description=" ", inputs=(replace(request.inputs[0], description=""),))
    for wrong, words in (
        (open_inputs, 'leaves its inputs open; their schema says "type": "object" and "additionalProperties": false'),
        (unreadable, "has outputs that cannot be checked"),
        (wordless, "has no description; write what the tool does"),
        (wordless, "has no description for the input loudly; write what it means"),
    ):
        judgement = prove(CODE, wrong, trial=None)
        assert checks(judgement) == ["schema"]
        assert any(words in text for text in texts(judgement))
