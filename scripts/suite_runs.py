"""Run the suite as a stranger would, note how it ended, and report how many runs of how many passed.

`python scripts/suite_runs.py quiet`                  `make test` in a clone of its own
`python scripts/suite_runs.py busy`                   the same while other work at the same priority keeps every core busy
`sudo python scripts/suite_runs.py user`              as an ordinary user, in the background, with an empty environment and /usr/bin/python3
`python scripts/suite_runs.py --report`               the table of docs/benchmarks.md, and what failed

Each run adds a line to `.suite_runs/runs.jsonl`: date, commit, Python, condition, how many passed, failed and were skipped, seconds, and the
names of the failures. What is committed is tested; the clones stay, so that only the first run in each installs packages.
What a failed run printed is kept beside it. No test gets a second try.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".suite_runs"
RUNS = KEPT / "runs.jsonl"
# Another user may read it, unlike a checkout in the home of root.
CLONES = Path("/var/tmp/toolcrib-suite-runs")  # noqa: S108 - made with mode 0755, by whoever runs this
CONDITIONS = ("quiet", "busy", "user")
USER = "nobody"
LAST = 20
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
ENDED = re.compile(r"^.*\b\d+ (?:passed|failed|error).* in ([\d.]+)s.*$", re.MULTILINE)


def main() -> int:
    """Run once, or print the report; the exit code says whether the run passed."""
    parser = argparse.ArgumentParser(description="Run the suite as a stranger would, and note how it ended.")
    parser.add_argument("condition", nargs="?", choices=CONDITIONS)
    parser.add_argument("--python", help="the interpreter (of the environment; /usr/bin/python3 for user)")
    parser.add_argument("--report", action="store_true", help="print the table of all runs")
    options = parser.parse_args()
    if options.report or options.condition is None:
        report([json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()])
        return 0
    python = options.python or ("/usr/bin/python3" if options.condition == "user" else sys.executable)
    run = run_once(options.condition, python)
    print(json.dumps(run))
    KEPT.mkdir(exist_ok=True)
    with RUNS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
    return 0 if run["ok"] else 1


def run_once(condition: str, python: str) -> dict[str, Any]:
    """Run `make test` in the clone of this condition and interpreter; what is known about the run."""
    version = _output(python, "-c", "import platform; print(platform.python_version())")
    place = CLONES / f"{condition}-{version}"
    commit = _clone(place / "toolcrib")
    words = ["make", "test", f"PYTHON={python}"]
    options: dict[str, Any] = {}
    if condition == "user":
        # As a shell starts it in the background: without a terminal, and deaf to Ctrl-C.
        words = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *words]
        options = {"env": {"HOME": str(place), "PATH": "/usr/bin:/bin"}}
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", place], check=True)  # noqa: S607
            options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with _busy() if condition == "busy" else contextlib.nullcontext():
        process = subprocess.Popen(
            words,
            cwd=place / "toolcrib",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )
        try:
            said = process.communicate()[0].decode(errors="replace")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if process.returncode:
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{condition}-{version}-{date}.txt").write_text(said, encoding="utf-8")
    last = list(ENDED.finditer(said))[-1:]
    counted = {word.rstrip("s"): int(number) for one in last for number, word in COUNTED.findall(one[0])}
    return {
        "date": date,
        "commit": commit,
        "python": version,
        "condition": condition,
        "ok": process.returncode == 0,
        "passed": counted.get("passed", 0),
        "failed": counted.get("failed", 0) + counted.get("error", 0),
        "skipped": counted.get("skipped", 0),
        "seconds": float(last[0][1]) if last else None,
        "failures": FAILED.findall(said),
    }


def _clone(place: Path) -> str:
    """Bring the clone to what is committed here; its commit."""
    commit = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", ROOT, place], check=True)  # noqa: S607
    git = ["git", "-c", "safe.directory=*", "-C", str(place)]
    subprocess.run([*git, "fetch", "-q", str(ROOT), "HEAD"], check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "FETCH_HEAD"], check=True)
    shutil.rmtree(place / ".pytest_cache", ignore_errors=True)
    return commit


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Keep every core busy."""
    words = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(words) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def report(runs: list[dict[str, Any]]) -> None:
    """Print a row for each condition and Python, how many of the last runs passed, and the failures."""
    print("| condition | Python | passed | of | minutes |\n| --- | --- | --- | --- | --- |")
    for (condition, python), group in groupby(sorted(runs, key=_kind), _kind):
        found = list(group)
        seconds = [run["seconds"] for run in found if run["seconds"]]
        minutes = f"{statistics.median(seconds) / 60:.1f}" if seconds else "-"
        print(f"| {condition} | {python} | {sum(run['ok'] for run in found)} | {len(found)} | {minutes} |")
    last = runs[-LAST:]
    print(f"\nof the last {len(last)} runs {sum(run['ok'] for run in last)} passed")
    for run in runs:
        for name in run["failures"] or ([] if run["ok"] else ["it ended before pytest counted"]):
            print(f"{run['date']} {run['commit'][:8]} {run['condition']} {run['python']}: {name}")


def _kind(run: dict[str, Any]) -> tuple[str, str]:
    return run["condition"], run["python"]


def _output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
