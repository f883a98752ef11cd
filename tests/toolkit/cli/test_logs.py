"""The log on standard error, as the command line shows it."""

import logging
import os
import select
import sys
import threading
from contextlib import suppress

import pytest

from toolcrib.lib.javascript_error import log_fields
from toolcrib.toolkit.cli import log_on_stderr

JAVASCRIPT = """TypeError: bad thing
    at execute (file:///srv/tools/sample/handler.js:28:9)
    at Readable.push (node:internal/streams/readable:392:5)"""
PYTHON = """Traceback (most recent call last):
  File "/srv/tools/sample/handler.py", line 3, in execute
    raise ValueError("bad thing")
ValueError: bad thing
"""


@pytest.fixture
def shown(capsys):
    """What the command line shows of a message."""

    def shown(*words, verbose=False, extra=None):
        with log_on_stderr(verbose=verbose):
            logging.getLogger("toolcrib.runners").error(*words, extra=extra)
        return capsys.readouterr().err

    return shown


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (PYTHON, "ValueError: bad thing"),
        ("string: boo", "string: boo"),
        ("", ""),
    ],
)
def test_an_error_is_shown_in_one_line_that_says_what_went_wrong(shown, trace, words):
    line = shown("%s failed unexpectedly\n%s", "sample", trace)
    assert line == f"crib: sample failed unexpectedly{f': {words}' if words else ''}\n"


def test_an_error_of_javascript_is_shown_by_its_own_summary_which_stands_first_in_its_stack(shown):
    line = shown("%s failed unexpectedly\n%s", "sample", JAVASCRIPT, extra=log_fields({"stack": JAVASCRIPT}))
    assert line == "crib: sample failed unexpectedly: TypeError: bad thing (/srv/tools/sample/handler.js:28)\n"


@pytest.mark.parametrize("trace", [JAVASCRIPT, PYTHON])
def test_more_is_shown_on_request(shown, trace):
    assert shown("sample failed unexpectedly\n%s", trace, verbose=True).count("\n") > 3


def test_a_log_that_is_never_read_does_not_stop_the_program(monkeypatch):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * select.PIPE_BUF)
    os.set_blocking(writing, True)

    def fail() -> None:
        logging.getLogger("toolcrib.test").error("it failed")

    with os.fdopen(writing, "w", encoding="utf-8") as unread:
        monkeypatch.setattr(sys, "stderr", unread)
        with log_on_stderr():
            failing = threading.Thread(target=fail, daemon=True)
            failing.start()
            failing.join(25)
            is_stuck = failing.is_alive()
        os.close(reading)
    assert not is_stuck


def test_a_very_long_failure_takes_one_line_that_a_pipe_takes_at_once(capsys):
    with log_on_stderr():
        try:
            raise RuntimeError("é" * 1_000_000)
        except RuntimeError:
            logging.getLogger("toolcrib.test").exception("it failed")
    line = capsys.readouterr().err
    assert line.startswith("crib: it failed: RuntimeError: éé")
    assert len(line.encode()) <= select.PIPE_BUF
