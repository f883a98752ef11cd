"""A tour of Toolcrib in a temporary folder: real commands, their real output, and a check that each did what it should.

Run it with: make demo
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """\
from toolcrib import Crib, tool


@tool
def area(width: float, height: float) -> float:
    "The area of a rectangle."
    return width * height


with Crib(tools=[area]) as crib:
    print(crib.call_sync("area", width=3, height=4).value)
    print(crib.call_sync("area", width=3).error.message)
"""


def main() -> int:
    """Make the tour; 1 if a step did not behave as expected."""
    with tempfile.TemporaryDirectory() as folder:
        tour = Tour(Path(folder).resolve())
        tour.tell("A project with a first tool: one file, one plain function.")
        tour.crib("init", shows="tools/greet.py")
        tour.crib("list", shows="Greet a person by name.")
        tour.crib("show greet", shows="offered to models:  yes, as greet")

        tour.tell("A call. The file runs in a process of its own.")
        tour.crib("call greet name=Ada", shows="Hello, Ada!")

        tour.tell("A wrong argument is refused before the tool runs.")
        tour.crib("call greet name=Ada times=often", ends=3, shows="times")

        tour.tell("A dangerous command is refused by a rule, even where the shell is granted.")
        tour.crib("call shell 'command=rm -rf /' --grant shell.execute", ends=3, shows="BLOCKED (rules")
        tour.tell("Nothing is granted that nobody granted, and every gate says why.")
        tour.crib("explain shell 'command=ls'", ends=3, shows="--grant shell.execute")

        tour.tell("A tool folder: four files, checked before they ship. The examples in its document are tests.")
        tour.crib("new count-words --python", shows="tools/count-words/schema.json")
        tour.crib("build", shows="1 tool, 0 warnings")
        tour.crib("test count_words", shows="0 failed")
        tour.tell("Any model is shown it in its own form, and what the form cannot say is told.")
        tour.crib("export count_words --for anthropic", shows="input_schema")

        tour.tell("The same from Python: any function with hints is a tool.")
        tour.python("area.py", PROGRAM, shows="12\n")
        return tour.end()


class Tour:
    """Runs the steps in one folder and remembers which of them went wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures: list[str] = []
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("TOOLCRIB_")}

    def tell(self, text: str) -> None:
        """Say what comes next."""
        print(f"# {text}\n")

    def crib(self, line: str, *, shows: str, ends: int = 0) -> None:
        """Run a command and expect its exit code and a part of its output."""
        print(f"$ crib {line}")
        self._run([sys.executable, "-m", "toolcrib", *shlex.split(line)], f"crib {line}", shows, ends)

    def python(self, name: str, program: str, *, shows: str) -> None:
        """Run a program and expect a part of its output."""
        (self.folder / name).write_text(program, encoding="utf-8")
        print(f"$ cat {name}\n{program}\n$ python {name}")
        self._run([sys.executable, name], name, shows, 0)

    def end(self) -> int:
        """Say how the tour went."""
        for failure in self.failures:
            print(f"not as expected: {failure}", file=sys.stderr)
        if not self.failures:
            print("# Every step did what it should.")
        return 1 if self.failures else 0

    def _run(self, command: list[str], step: str, shows: str, ends: int) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        output = done.stdout.replace(f"{self.folder}{os.sep}", "")
        print(output)
        if done.returncode != ends:
            self.failures.append(f"{step} ended with {done.returncode} instead of {ends}")
        if shows not in output:
            self.failures.append(f"{step} did not show {shows!r}")


if __name__ == "__main__":
    sys.exit(main())
