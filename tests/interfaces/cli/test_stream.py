"""`crib call --stream` prints what a tool yields as it comes, and the result decides how the command ends."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from soaks import examples
from toolcrib.toolkit.cli import ExitCode
from warm_python import WarmPython

ROWS = '''import rye
from collections.abc import Iterator

def rows(count: int, fails: bool = False) -> Iterator[dict]:
    """Rows.

    Args:
        count: How many.
        fails: Whether to fail at the end.
    """
    for number in range(count):
        rye.progress(number + 1, count, "row")
        yield {"row": number}
    if fails:
        raise ValueError("no more")
'''
WORDS = '''from toolcrib import tool

@tool(output_schema={"type": "string"})
def words():
    """Words."""
    yield "one "
    yield "text\\x1b[31m"
'''


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "rows.py").write_text(ROWS)
    (tmp_path / "tools" / "words.py").write_text(WORDS)
    return tmp_path


@pytest.mark.spec("S1-92")
def test_chunks_are_printed_in_lines_and_progress_goes_to_standard_error(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    done = cli("call", "rows", "count=2", "--stream")
    assert (done.code, done.out) == (0, '{"row": 0}\n{"row": 1}\n')
    assert done.err.splitlines() == ["crib: 1/2 row", "crib: 2/2 row"]


def test_a_text_that_comes_in_pieces_is_printed_as_one(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    done = cli("call", "words", "--stream")
    assert (done.code, done.out, done.err) == (0, "one text\x1b[31m\n", "")


def test_a_tool_that_fails_behind_its_chunks_fails_the_command(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    done = cli("call", "rows", "count=1", "fails=true", "--stream")
    assert (done.code, done.out) == (1, '{"row": 0}\n')
    assert "what was printed was not checked, and the call failed" in done.err
    assert "no more" in done.err


def test_with_json_each_event_is_a_line(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    done = cli("call", "rows", "count=1", "--stream", "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["event"] for event in events] == ["progress", "chunk", "result"]
    assert events[1] == {"event": "chunk", "number": 1, "value": {"row": 0}, "checked": False}
    assert events[2]["value"] == [{"row": 0}]


def test_a_tool_that_does_not_stream_prints_its_value(cli, project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "tools" / "seven.py").write_text('def seven() -> int:\n    """Seven."""\n    return 7\n')
    assert cli("call", "seven", "--stream").out == "7\n"
    refused = cli("call", "rows", "count=no", "--stream")
    assert (refused.code, refused.out) == (ExitCode.REFUSED, "")


TICKS = """
import asyncio
from pathlib import Path
from toolcrib import tool

@tool
async def ticks(file: str):
    number = 0
    try:
        while True:
            number += 1
            yield {"number": number}
            await asyncio.sleep(0)
    finally:
        Path(file).write_text("ended")
"""


@pytest.fixture
def ticking(tmp_path):
    """Words that start the tool; it writes this file when it ends."""
    (tmp_path / "ticking.py").write_text(TICKS)
    (tmp_path / "toolcrib.toml").write_text('[modules]\ntools = ["ticking"]\n')
    file = tmp_path / "ended"
    return ["-m", "toolcrib", "call", "ticks", f"file={file}", "--stream", "-C", str(tmp_path)], file


@pytest.mark.spec("S1-92")
@pytest.mark.parametrize(("leave", "code"), [("interrupt", 130), ("close", 141)])
def test_a_reader_that_leaves_ends_the_tool(ticking, leave, code):
    words, file = ticking
    with WarmPython(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert json.loads(process.stdout.readline()) == {"number": 1}
        if leave == "close":
            process.stdout.close()
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == code, process.stderr.read()
    assert file.read_text() == "ended"


@pytest.mark.rounds
def test_an_interrupt_at_any_moment_ends_the_program_without_a_traceback(ticking):
    words, file = ticking
    for number in range(examples(100) // 2):
        file.unlink(missing_ok=True)
        with WarmPython(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for _ in range(1 + number % 5):
                process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "crib: interrupted\n")
        assert file.read_text() == "ended"
