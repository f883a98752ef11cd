"""Completion in real shells: the script of each is loaded as its users do it, and the Tab key is pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

SECONDS = 25
READY = "ready>"
TAB = "\t"
# Each without the files of the user, and with a prompt that can be waited for.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"PS1='{READY}'\n", 'eval "$(crib completion bash)"\n'),
    "zsh": (
        ["zsh", "-f", "-i"],
        f"PS1='{READY}'; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -d $HOME/.zcompdump\n",
        'eval "$(crib completion zsh)"\n',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        f"function fish_prompt; echo -n '{READY}'; end; function fish_mode_prompt; end; set -U fish_greeting\n",
        "crib completion fish | source\n",
    ),
}
CONTROL = re.compile(
    r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()][AB0]|[=>78cDEHM])|[\r\x0e\x0f\x08]"
)


class Shell:
    """A shell on a terminal of its own."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.said = ""
        # Set up before it starts: a child of a process with threads should run nothing but exec.
        program = shutil.which(words[0])
        assert program is not None
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        surroundings = {"PATH": path, "HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8", "COLUMNS": "120"}
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            os.execve(program, words, surroundings)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text is on the screen, behind what was waited for before."""
        end = time.monotonic() + SECONDS
        while text not in self.said:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} was not shown: {self.said[-2000:]!r}"
            if select.select([self._terminal], [], [], left)[0]:
                raw = os.read(self._terminal, 65_536).decode("utf-8", "replace")
                # Fish asks what kind of terminal it is, and waits for the answer.
                if "\x1b[c" in raw or "\x1b[0c" in raw:
                    self.press("\x1b[?62;c")
                self.said += CONTROL.sub("", raw)
        _, _, self.said = self.said.partition(text)

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path):
    """Each shell that is installed, in a project, with its completion loaded."""
    words, prompt, load = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here; apt-get install {words[0]}")
    (tmp_path / "toolcrib.toml").write_text("")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/greet_people.py").write_text('def greet_people() -> str:\n    """Greet."""\n    return ""\n')
    opened = Shell(words, tmp_path)
    # What is typed is shown too, so what is waited for is not what is typed.
    opened.press(f"{prompt}{load}echo loa''ded\n")
    opened.wait_for("loaded")
    opened.wait_for(READY)
    yield opened
    opened.close()


def test_commands_options_and_tools_are_completed(shell):
    for typed, completed in (
        ("crib expl", "ain"),
        ("crib call greet_p", "eople"),
        ("crib check --stri", "ct"),
        ("crib bundle expo", "rt"),
    ):
        shell.press(typed + TAB)
        shell.wait_for(typed.split()[-1] + completed)
        # Clear the line, and enter it empty.
        shell.press("\x15\n")
        shell.wait_for(READY)
