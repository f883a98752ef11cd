"""What a tool prints is kept and shown, and the journal has the traceback of a failure."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TALK = '''import sys


def talk(n: int) -> int:
    """Talk."""
    print("said", n)
    print("wrote", n, file=sys.stderr)
    return 6 // n
'''
NODE = """/** Talk.
 * @param {number} n
 */
export function node_talk(n) { console.log("said", n); if (!n) throw new Error("zero"); return n; }
"""
SAY = 'def say(n: int):\n    """Say it."""\n    print("said", n)\n'
HOST = 'from toolcrib import tool\n\n\n@tool\ndef host_talk(n: int) -> int:\n    """Divide."""\n    return 6 // n\n'


@pytest.fixture
def crib(tmp_path: Path, cli: Callable[..., Any]) -> Callable[..., Any]:
    (tmp_path / "tools").mkdir()
    # A module is imported once in a process.
    module = re.sub(r"\W", "_", f"printed{tmp_path}")
    (tmp_path / "toolcrib.toml").write_text(f'[modules]\ntools = ["{module}"]\n')
    (tmp_path / f"{module}.py").write_text(HOST)
    for name, text in {"talk.py": TALK, "node_talk.mjs": NODE, "say.py": SAY}.items():
        (tmp_path / "tools" / name).write_text(text)
    return lambda command, *words: cli(command, "-C", str(tmp_path), *words)


@pytest.mark.parametrize(("tool", "wrote"), [("talk", ["wrote 2"]), ("node_talk", [])])
def test_what_a_tool_prints_is_shown_by_a_call_and_by_the_logs(crib, tool, wrote):
    called = crib("call", tool, "n=2")
    assert called.out in {"3\n", "2\n"}
    assert called.err.splitlines() == [
        "crib: the tool printed: said 2",
        *(f"crib: the tool wrote: {line}" for line in wrote),
    ]
    assert [line.strip() for line in crib("logs").out.splitlines()[1:]] == ["said 2", *wrote]


def test_what_is_the_value_is_not_shown_a_second_time(crib):
    called = crib("call", "say", "n=2")
    assert (called.out, called.err) == ("said 2\n", "")


@pytest.mark.parametrize(
    ("tool", "last"),
    [("talk", "ZeroDivisionError: "), ("node_talk", "Error: zero"), ("host_talk", "ZeroDivisionError")],
)
def test_the_log_has_the_traceback_of_a_failure(crib, tool, last):
    assert crib("call", tool, "n=0").code == 1
    said = crib("logs", "--failed").out
    assert last in said
    assert f"in {tool}" in said or "    at " in said
    assert "Traceback" not in crib("call", tool, "n=0", "--json").out
