"""The real program in a process of its own: streams, terminals, signals, what it imports."""

from __future__ import annotations

import contextlib
import os
import pty
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from warm_python import WarmPython, run_python

PROGRAM = [sys.executable, "-m", "toolcrib"]
SECONDS = 30
HEAVY = (
    "click",
    "rich",
    "toolcrib.infra.egress.client",
    "tree_sitter",
    "tree_sitter_bash",
    "re2",
    "importlib.metadata",
)


def run(
    folder: Path, *words: str, stdin: str | None = None, start=run_python, **options
) -> subprocess.CompletedProcess[str]:
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    # Buffered as on any machine: what is left in the buffer at the end is where a closed output is noticed, by a real start.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment, **source, **options}
    return start([*PROGRAM, *words], cwd=folder, encoding="utf-8", timeout=SECONDS, check=False, **streams)


class Terminal:
    """The program on a terminal of its own; every wait is bounded."""

    def __init__(self, folder: Path, *words: str, columns: int = 160) -> None:
        self.ours, theirs = pty.openpty()
        self.process = WarmPython(
            [*PROGRAM, *words],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns)},
        )
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text: str) -> str:
        """Read until the text is there."""
        until = time.monotonic() + SECONDS
        while text not in self.seen and time.monotonic() < until and self._read():
            pass
        assert text in self.seen, self.seen
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and self._read():
            pass
        try:
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()
            os.close(self.ours)

    def _read(self) -> bool:
        if not select.select([self.ours], [], [], SECONDS)[0]:
            return False
        try:
            data = os.read(self.ours, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)


def test_a_call_imports_nothing_that_it_does_not_need(host_module):
    code = (
        "import sys; from toolcrib.__main__ import main; code = main(['call', 'add', 'first=1', 'second=2'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=host_module, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (0, "3\n[]\n"), done.stderr


def test_standard_input_is_an_argument_or_all_of_them(host_module):
    assert run(host_module, "call", "say", "text=@-", stdin="from a pipe").stdout == "from a pipe\n"


def test_without_a_terminal_nothing_is_asked_and_nothing_granted(host_module):
    refused = run(host_module, "call", "send", "to=Ada", stdin="y\n")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "[y/N]" not in refused.stderr
    assert 'write "send" = ["mail.send", "net.http"] under [grants]' in refused.stderr
    waiting = run(host_module, "call", "wipe", "what=disk", stdin="y\n")
    assert (waiting.returncode, waiting.stdout) == (5, "")
    assert "[y/N]" not in waiting.stderr


def test_on_a_terminal_a_capability_is_asked_for_once(host_module):
    terminal = Terminal(host_module, "call", "send", "to=Ada")
    assert "send requires mail.send, net.http, which is not granted." in terminal.wait_for("[y/N]")
    terminal.type("y\n")
    assert terminal.end() == 0
    assert terminal.seen.count("[y/N]") == 1
    assert "sent to Ada" in terminal.seen


@pytest.mark.parametrize("answer", ["\n", "yes please\n", "\x04"])
def test_anything_but_a_clear_yes_is_a_no(host_module, answer):
    terminal = Terminal(host_module, "call", "send", "to=Ada")
    terminal.wait_for("[y/N]")
    terminal.type(answer)
    assert terminal.end() == 3
    assert "sent to Ada" not in terminal.seen
    assert "CAPABILITY_MISSING" in terminal.seen


def test_on_a_terminal_a_confirmation_shows_the_call_and_each_question_comes_once(host_module):
    terminal = Terminal(host_module, "call", "wipe", "what=di\x1b[2Jsk")
    asked = terminal.wait_for("[y/N]")
    assert "wipe needs confirmation" in asked
    assert '"what": "di\\u001b[2Jsk"' in asked
    terminal.type("y\n")
    assert terminal.end() == 0
    assert "wiped di\\x1b[2Jsk" in terminal.seen
    both = Terminal(host_module, "call", "purge")
    both.wait_for("purge requires net.http")
    both.type("y\n")
    both.wait_for("Call it? [y/N]")
    both.type("y\n")
    assert both.end() == 0
    assert "purged" in both.seen
    assert both.seen.count("[y/N]") == 2


def test_a_tool_cannot_make_the_program_ask(host_module):
    terminal = Terminal(host_module, "call", "pretend")
    assert terminal.end() == 1
    assert "[y/N]" not in terminal.seen


def test_raw_output_is_obeyed_by_a_terminal_only_when_asked_for(host_module):
    tame = Terminal(host_module, "call", "say", "text=a\x1b[1mb")
    assert tame.end() == 0
    assert "a\\x1b[1mb" in tame.seen
    raw = Terminal(host_module, "call", "say", "text=a\x1b[1mb", "--raw")
    assert raw.end() == 0
    assert "a\x1b[1mb" in raw.seen
    assert run(host_module, "call", "say", "text=a\x1b[1mb").stdout == "a\x1b[1mb\n"


def test_tables_are_drawn_on_a_terminal_and_read_no_markup(host_module):
    (host_module / "tools" / "evil.py").write_text(
        'def evil() -> str:\n    """[red]Ev\\x1b[2Jil[/red]."""\n    return ""\n'
    )
    terminal = Terminal(host_module, "list")
    assert terminal.end() == 0
    assert "│" in terminal.seen
    assert "[red]Ev\\x1b[2Jil[/red]." in terminal.seen
    assert "\x1b[2J" not in terminal.seen


def test_a_terminal_that_is_too_narrow_for_a_table_gets_its_rows_line_by_line(host_module):
    terminal = Terminal(host_module, "list", columns=30)
    assert terminal.end() == 0
    assert "│" not in terminal.seen
    assert "name: add\r\nstate: on" in terminal.seen
    assert "│" in (usual := Terminal(host_module, "list", columns=80)).wait_for("│")
    assert usual.end() == 0


def processes_in(folder: Path) -> list[str]:
    """The processes that work in the folder, as a file of code works in its own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found


def test_an_interrupt_ends_the_tool_and_the_program(host_module):
    (host_module / "tools" / "wait.py").write_text(
        "import time\n\n\ndef wait() -> str:\n    time.sleep(60)\n    return ''\n"
    )
    process = subprocess.Popen(
        [*PROGRAM, "call", "wait"], cwd=host_module, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + SECONDS
    while not (found := processes_in(host_module / "tools")) and time.monotonic() < until:
        select.select([], [], [], 0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert err == "crib: interrupted\n"
    assert found
    assert not processes_in(host_module / "tools")


def test_a_reader_that_goes_away_is_no_failure_worth_words(host_module):
    read, write = os.pipe()
    os.close(read)
    try:
        done = run(host_module, "list", start=subprocess.run, stdout=write)
        assert (done.returncode, done.stderr) == (141, "")
        done = run(host_module, "call", "large", "letters=200000", start=subprocess.run, stdout=write)
        assert (done.returncode, done.stderr) == (141, "")
    finally:
        os.close(write)


def test_a_full_disk_is_told_in_one_line(host_module):
    with Path("/dev/full").open("w") as full:
        done = run(host_module, "call", "add", "first=1", start=subprocess.run, stdout=full)
    assert (done.returncode, done.stderr) == (1, "crib: output: No space left on device\n")


def test_letters_that_the_terminal_cannot_show_are_spelled(host_module):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(host_module, "call", "say", "text=ö", start=subprocess.run, env=ascii_only)
    assert (done.returncode, done.stdout) == (0, "\\xf6\n")


def test_a_tool_file_runs_in_the_sandbox_and_its_stderr_is_shown(host_module):
    (host_module / "tools" / "noisy.py").write_text(
        "import sys\n\n\ndef noisy() -> int:\n    sys.stderr.write('\\x1b[31mbeware\\n')\n    return 5\n"
    )
    done = run(host_module, "call", "noisy")
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert done.stderr == "crib: the tool wrote: \\x1b[31mbeware\n"


def test_the_demonstration_works_and_names_no_place_of_this_machine(tmp_path, monkeypatch, capfd):
    demo = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "demo.py"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # Each of its commands is a process, whose start is not what is shown.
    monkeypatch.setattr(subprocess, "run", run_python)
    code = demo["main"]()
    out, err = capfd.readouterr()
    assert (code, err) == (0, ""), out
    assert out.endswith("# Every step did what it should.\n")
    assert str(tmp_path) not in out
    assert not list(tmp_path.iterdir())


def test_a_terminal_shows_how_far_a_call_is_and_a_pipe_does_not(tmp_path):
    (tmp_path / "tools").mkdir()
    code = 'import rye\n\n\ndef slow() -> str:\n    """Be slow."""\n    rye.progress(1, 2, "half\\x1b[31m")\n    rye.log("info", "done")\n    return "end"\n'
    (tmp_path / "tools" / "slow.py").write_text(code)
    terminal = Terminal(tmp_path, "call", "slow")
    assert terminal.end() == 0
    assert "1/2 half\\x1b[31m" in terminal.seen
    assert "\r\x1b[Kslow: info: done" in terminal.seen
    assert terminal.seen.endswith("end\r\n")
    piped = run(tmp_path, "call", "slow")
    assert (piped.stdout, piped.stderr) == ("end\n", "")
