"""Walk the README and the tutorial as a new user does: a fresh copy, a fresh environment, `pip install`, then every command.

What each command prints is compared with what the page shows. `make judges ARGS=readme` runs it; with `--write` it also writes how long
each command took, and how much it printed, into docs/first-minutes.md. On a busy machine that is refused, because the figures would be those
of the other work; `--anyway` writes them nevertheless, with the load average that says so.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from consoles import Shell, matches, steps_of  # noqa: E402 - it lies where pytest is told to look

PAGES = ("README.md", "docs/tutorial.md")
FIGURES = ROOT / "docs" / "first-minutes.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)
SECONDS = 600


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A command of a page, and what came of it."""

    command: str
    seconds: float
    processor: float
    size: int
    load: float


class Programs:
    """Runs programs with nothing but the new environment, a home and the system's programs."""

    def __init__(self, environment: Path, home: Path) -> None:
        self._variables = {
            "PATH": os.pathsep.join([str(environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(home),
            # Where packages come from is a matter of the machine.
            **{name: text for name, text in os.environ.items() if name.startswith(("PIP_", "UV_"))},
        }

    def __call__(self, command: str, words: list[str], folder: Path) -> tuple[int, str]:
        # What a program logs is not what it prints.
        stderr = subprocess.DEVNULL if command == "python" else subprocess.STDOUT
        done = subprocess.run(
            ["/usr/bin/env", command, *words],
            cwd=folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout


def commands_of(page: str) -> list[tuple[str, str]]:
    """The commands of a page in their order, each with what it should print."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [step for block in CONSOLE.findall(text) for step in steps_of(block)]


def walk(page: str, folder: Path, programs: Programs) -> list[Step]:
    """Run the commands of a page in a fresh clone of the repository."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    shell, steps = Shell(folder, programs), []
    for command, expected in commands_of(page):
        began, used = time.monotonic(), _processor_seconds()
        printed = shell.run(command)
        step = Step(
            command=command,
            seconds=time.monotonic() - began,
            processor=_processor_seconds() - used,
            size=len(printed.encode()),
            load=os.getloadavg()[0],
        )
        if not matches(expected, printed):
            raise SystemExit(f"{page}: {command}\n--- shown\n{expected}--- printed\n{printed}")
        if not command.startswith("cd "):
            steps.append(step)
            print(f"{step.seconds:7.2f} s {step.processor:7.2f} s {step.size:6} bytes  {page}: {command}", flush=True)
    return steps


def table_of(walked: dict[str, list[Step]]) -> str:
    """The figures as the page shows them."""
    python = ".".join(map(str, sys.version_info[:3]))
    lines = [f"{os.cpu_count()} processors, Python {python}.", ""]
    for page, steps in walked.items():
        total, used = sum(step.seconds for step in steps), sum(step.processor for step in steps)
        loads = [step.load for step in steps]
        summary = f"{len(steps)} commands, {total:.1f} s together, {used:.1f} s of a processor"
        lines += [
            f"**{page}**: {summary}, at a load average of {min(loads):.1f} to {max(loads):.1f}.",
            "",
            "| command | seconds | processor | bytes |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| `{step.command}` | {step.seconds:.2f} | {step.processor:.2f} | {step.size:,} |" for step in steps
        ] + [""]
    return "\n".join(lines)


def _processor_seconds() -> float:
    """What all ended children have used, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Walk all pages; the exit code is 1 if one shows what is not printed."""
    parser = argparse.ArgumentParser(description="Walk the README and the tutorial in a clean environment.")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/first-minutes.md")
    parser.add_argument("--anyway", action="store_true", help="write them also from a busy machine")
    options = parser.parse_args()
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if options.write and load > processors and not options.anyway:
        print(f"the load average is {load:.1f} on {processors} processors; wait until it is quiet, or add --anyway")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        environment, home = Path(folder) / "environment", Path(folder) / "home"
        home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        programs = Programs(environment, home)
        walked = {page: walk(page, Path(folder) / Path(page).stem, programs) for page in PAGES}
    if options.write:
        figures = table_of(walked)
        text = FIGURES.read_text(encoding="utf-8")
        FIGURES.write_text(PLACE.sub(lambda found: f"{found[1]}\n{figures}\n{found[2]}", text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
