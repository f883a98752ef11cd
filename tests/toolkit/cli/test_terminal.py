"""What a terminal shows besides the words: colours where they are wanted, and that a command is at work."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from toolcrib.toolkit.cli import complain, has_colour, paint, say
from toolcrib.toolkit.cli.progress import Spinner, working


class Screen(io.StringIO):
    """A stream that says it is a terminal, and when something was written to it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.drawn.set()
        return super().write(text)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """The user says nothing about colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colours_are_used_on_a_terminal_and_as_the_user_says(monkeypatch, variables, on_a_terminal, elsewhere):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (has_colour(Screen()), has_colour(io.StringIO())) == (on_a_terminal, elsewhere)
    assert paint("x", "red", io.StringIO()) == ("\x1b[31mx\x1b[0m" if elsewhere else "x")


def test_a_complaint_is_marked_in_colour_and_its_words_cannot_control_the_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    complain("no \x1b[2J")
    assert screen.getvalue() == "\x1b[31mcrib:\x1b[0m no \\x1b[2J\n"


def test_a_long_command_shows_that_it_works_and_leaves_nothing_behind():
    screen = Screen()
    spinner = Spinner(screen, "checking \x1b[2J tools", patience=0)
    assert screen.drawn.wait(20)
    spinner.stop()
    shown = screen.getvalue()
    assert "⠙ checking \\x1b[2J tools (0 s)" in shown
    assert shown.endswith("\r\x1b[2K")


def test_what_is_written_meanwhile_stands_on_a_line_of_its_own(monkeypatch):
    monkeypatch.setattr("toolcrib.toolkit.cli.progress.PATIENCE_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.setattr(sys, "stdout", screen)
    with working("counting"):
        assert screen.drawn.wait(20)
        say("one")
    assert "\r\x1b[2Kone\n" in screen.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    before = set(threading.enumerate())
    with working("counting") as tell:
        tell("still counting")
        assert set(threading.enumerate()) <= before
    assert pipe.getvalue() == ""
