"""Honest tools of every kind pass the gate, and the gate says what it looked at."""

import re
from importlib.resources import files

import pytest

from tool_requests import allowance_of

TEXT = {"name": "text", "type": "string", "description": "A text", "required": True}


def passes(judgement):
    assert judgement.complaints == ()
    assert judgement.passed
    assert not judgement.unprovable
    return True


@pytest.mark.spec("S0-26", "S0-19", "S0-42", "S0-23")
def test_a_tool_that_is_what_was_asked_for_passes_and_is_told_what_was_looked_at(prove, honest):
    heard = []
    judgement = prove(honest, say=heard.append)
    assert passes(judgement)
    assert judgement.checks == (
        "interface: shout in text_shouter.py",
        "import: it only defines",
        "refuses: 15 calls",
        "accepts: 12 calls",
        "output, effects, limits: in every call",
        "defaults: by a call that leaves out what it may",
    )
    assert heard == [
        "reading the request and the interface",
        "importing text_shouter.py",
        "making 12 calls that it has to answer",
    ]


def test_a_list_of_objects_with_fields_that_may_be_null_passes(prove, wanted):
    request = wanted(
        name="word_lister",
        inputs=[TEXT],
        outputs=[{"name": "words", "type": "list", "schema": {"word": "string", "next": "string | null"}}],
        example_usage=None,
    )
    code = """
from typing import TypedDict

class Word(TypedDict):
    word: str
    next: str | None

class Words(TypedDict):
    words: list[Word]

def word_lister(text: str) -> Words:
    found = text.split()
    return {"words": [{"word": one, "next": other} for one, other in zip(found, [*found[1:], None])]}
"""
    assert passes(prove(code, request))


def test_lists_and_objects_as_inputs_and_nested_outputs_pass(prove, wanted):
    request = wanted(
        name="field_picker",
        inputs=[
            {"name": "record", "type": "object", "description": "A record", "required": True},
            {"name": "names", "type": "list", "description": "Its fields", "default": []},
        ],
        outputs=[{"name": "picked", "type": "object", "schema": {"count": "integer", "names": "list"}}],
        example_usage=None,
    )
    code = """
def field_picker(record: dict, names: list | None = None) -> dict:
    names = [name for name in names or [] if isinstance(name, str)]
    found = [*names, *record]
    return {"picked": {"count": len(found), "names": found}}
"""
    assert passes(prove(code, request))


def test_an_async_function_passes(prove, honest):
    assert passes(prove(honest.replace("def shout", "async def shout")))


def test_a_package_with_modules_and_data_beside_it_passes(prove):
    files = {
        "text_shouter.py": """
from pathlib import Path
from spelling import louder
from inner import limits

def shout(text: str, times: int = 2) -> dict:
    sign = (Path(__file__).parent / "data" / "sign.txt").read_text().strip()
    return {"loud": louder(text, min(times, limits.MOST)) + sign, "letters": len(text), "first": text[:1] or None}
""",
        "spelling.py": 'def louder(text, times):\n    return " ".join([text.upper()] * max(times, 0))\n',
        "inner/__init__.py": "",
        "inner/limits.py": "MOST = 10\n",
        "data/sign.txt": "!\n",
    }
    assert passes(prove(files))


def test_a_tool_without_inputs_passes_although_its_answer_never_varies(prove, wanted):
    request = wanted(
        name="version_teller", inputs=[], outputs=[{"name": "version", "type": "string"}], example_usage=None
    )
    assert passes(prove('def version_teller():\n    return {"version": "1.2"}\n', request))


def test_a_tool_without_declared_outputs_may_answer_anything(prove, wanted):
    request = wanted(name="text_halver", inputs=[TEXT], outputs=None, example_usage=None)
    assert passes(prove("def text_halver(text):\n    return text[: len(text) // 2]\n", request))


def test_a_default_may_be_computed_and_a_decorator_may_keep_the_signature(prove, honest):
    code = honest.replace("times: int = 2", "times: int = TWICE").replace("def shout", "@lru_cache\ndef shout")
    assert passes(prove(f"from functools import lru_cache\nTWICE = 1 + 1\n{code}"))


def test_a_tool_that_is_random_is_not_held_to_its_defaults(prove, wanted):
    request = wanted(
        name="dice_roller",
        inputs=[{"name": "sides", "type": "integer", "description": "How many", "default": 6}],
        outputs=[{"name": "rolled", "type": "integer"}],
        examples=[{"input": {"sides": 1}, "output": {"rolled": 1}}],
        example_usage=None,
    )
    code = """
import random

def dice_roller(sides: int = 6):
    return {"rolled": random.SystemRandom().randint(1, (sides - 1) * 10**12 + 1)}
"""
    assert passes(prove(code, request))


def test_an_input_that_is_required_and_has_a_default_is_given_as_the_request_shows_it(prove, wanted):
    given = {"name": "number", "type": "integer", "description": "Any", "required": True, "default": 5, "example": 3}
    request = wanted(
        name="number_doubler", inputs=[given], outputs=[{"name": "twice", "type": "integer"}], example_usage=None
    )
    assert passes(prove("def number_doubler(number: int) -> dict:\n    return {'twice': 2 * number}\n", request))


def test_chance_is_no_reason_to_refuse_where_something_follows_from_the_inputs(prove, wanted):
    request = wanted(
        name="password_maker",
        inputs=[{"name": "letters", "type": "integer", "description": "How many", "default": 12}],
        outputs=[{"name": "password", "type": "string"}],
        example_usage=None,
    )
    code = """
import secrets, string

def password_maker(letters: int = 12) -> dict:
    return {"password": "".join(secrets.choice(string.ascii_letters) for _ in range(letters))}
"""
    assert passes(prove(code, request))


def test_a_file_may_be_called_like_a_module_that_the_gate_uses(prove, honest):
    probe = files("toolcrib.features.requests.gate").joinpath("child_probe.py").read_text("utf-8")
    names = {*re.findall(r"^ *(?:import|from) (\w+)", probe, re.MULTILINE), "pathlib", "traceback"}
    assert {"contextlib", "ctypes", "inspect", "json", "typing"} <= names
    assert passes(prove({"text_shouter.py": honest, **{f"{name}.py": "NUMBER = 1\n" for name in names}}))


def test_code_as_people_write_it_passes(prove, wanted):
    request = wanted(
        name="date_shifter",
        inputs=[
            {"name": "start", "type": "string", "description": "A date", "required": True},
            {"name": "days", "type": "integer", "description": "How many", "default": 1},
            {"name": "unit", "type": "string", "description": "days or weeks"},
        ],
        outputs=[
            {"name": "date", "type": "string"},
            {"name": "facts", "type": "object", "schema": {"weekday": "string", "zone": "string | null"}},
        ],
        example_usage="from tools.date_shifter import shift_date\n\nshift_date(start='2024-02-28').date\n",
    )
    code = r'''
"""Dates, shifted."""
from __future__ import annotations

import functools
import logging
import re
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from toolcrib import Kind, ToolError

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
BERLIN = ZoneInfo("Europe/Berlin")

class Unit(str, Enum):
    DAYS = "days"
    WEEKS = "weeks"

@dataclass(frozen=True)
class Facts:
    weekday: str
    zone: str | None = None

@dataclass(frozen=True)
class Shifted:
    date: str
    facts: Facts

@functools.lru_cache(maxsize=64)
def shift_date(start: str, days: int = 1, unit: str | None = None) -> Shifted:
    """Shift a date by some days."""
    if not ISO.fullmatch(start):
        raise ToolError(Kind.VALIDATION, f"{start!r} is not a date")
    log.info("shifting %s", start)
    there = date.fromisoformat(start) + timedelta(days=days * (7 if unit == Unit.WEEKS else 1))
    return Shifted(date=there.isoformat(), facts=Facts(weekday=there.strftime("%A"), zone=str(BERLIN)))

if __name__ == "__main__":
    import sys
    print(shift_date(*sys.argv[1:]))
'''
    assert passes(prove(code, request))


def test_an_answer_in_the_envelope_of_the_original_passes(prove, honest):
    code = honest.replace("return {", 'return {"result": {').replace(
        "or None}", 'or None}, "success": True, "error": None}'
    )
    assert passes(prove(code))


def test_a_value_at_the_edge_may_be_refused_by_a_tool_that_says_so(prove, honest):
    refusing = """
class ToolError(Exception):
    kind = "VALIDATION"
"""
    code = honest.replace(
        "    loud =", '    if not text or times < 0:\n        raise ToolError("give more")\n    loud ='
    )
    assert passes(prove(refusing + code))


def test_a_tool_may_do_what_the_operator_added_to_its_request(prove, wanted):
    request = wanted(
        name="file_counter", inputs=[TEXT], outputs=[{"name": "found", "type": "string"}], example_usage=None
    )
    code = """
import os
from pathlib import Path

def file_counter(text: str) -> dict:
    workspace = Path(os.environ.get("TOOLCRIB_WORKSPACE", "/no/such/folder"))
    return {"found": f"{text}: {len(list(workspace.iterdir()))}"}
"""
    assert not prove(code, request).passed
    assert passes(prove(code, request, allowance=allowance_of("fs.read")))


def test_one_that_may_write_is_called_one_call_after_the_other(prove, wanted):
    request = wanted(
        name="note_keeper",
        inputs=[TEXT],
        outputs=[{"name": "kept", "type": "string"}],
        example_usage=None,
        capabilities=["fs.read", "fs.write"],
    )
    code = """
import os
import time
from pathlib import Path

def note_keeper(text: str) -> dict:
    note = Path(os.environ["TOOLCRIB_WORKSPACE"], "note.txt")
    note.touch(exist_ok=False)
    note.write_text(text)
    time.sleep(0.05)  # long enough for another call to get in between
    kept = note.read_text()
    note.unlink()
    return {"kept": kept}
"""
    assert passes(prove(code, request))
