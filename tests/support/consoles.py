"""Console blocks of pages: their commands, what is shown below each, and a shell that runs the few commands they may use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

PROMPT = "$ "
ANYTHING = "…"
# A page writes ID where its reader types the id that the command before has shown.
ID = "ID"
SHOWN_ID = re.compile(r"\b[0-9a-f]{32}\b")

# Runs a program with its words in a folder; gives its exit code and what it printed.
Run = Callable[[str, list[str], Path], tuple[int, str]]


class Shell:
    """A folder to be in, the last exit code, and what runs programs; `cd` and `echo` are its own."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder = folder
        self.code = 0
        self._run = run
        self._id = ""

    def run(self, line: str) -> str:
        """Run a line of a console block; gives what it printed."""
        command, *words = shlex.split(line.replace("$?", str(self.code)))
        if command == "cd":
            self.folder = (self.folder / words[0]).resolve()
            return ""
        if command == "echo":
            return " ".join(words) + "\n"
        self.code, printed = self._run(command, [self._id if word == ID else word for word in words], self.folder)
        if found := SHOWN_ID.search(printed):
            self._id = found[0]
        return printed


def steps_of(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output below it."""
    for part in re.split(rf"^{re.escape(PROMPT)}", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def matches(expected: str, output: str) -> bool:
    """Whether the output is the expected one; `…` stands for anything in a line, alone for any lines."""
    patterns = [
        r"(?:[^\n]*\n)*?" if line == ANYTHING else r"[^\n]*".join(map(re.escape, line.split(ANYTHING))) + "\n"
        for line in expected.splitlines()
    ]
    return re.fullmatch("".join(patterns), output) is not None
