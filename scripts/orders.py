"""Run the tests in many orders, and tell which of them fail in some.

`python scripts/orders.py` runs the whole suite in twenty orders, which takes two hours on two cores; with words, only these files and
folders of it, and `--seeds 3` in three orders. Every run of the suite draws an order of its own; these are always the same, so that
what fails in one of them fails again: `pytest -p randomly --randomly-seed=SEED`. What a failed one printed is kept in `.orders/`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".orders"
SEEDS = 20
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
COUNTED = re.compile(r"^(.*\b\d+ (?:passed|failed|error).*)$", re.MULTILINE)


def run(seed: int, tests: list[str]) -> tuple[int, str]:
    """Run the tests in one order; gives the exit code and what pytest said."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--randomly-seed={seed}", *tests]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Run every order; the exit code says whether all of them passed."""
    parser = argparse.ArgumentParser(description="Run the tests in many orders, and tell which fail in some of them.")
    parser.add_argument("tests", nargs="*", help="files and folders (all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many orders ({SEEDS})")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a text stream
    broken = 0
    for seed in range(options.first, options.first + options.seeds):
        code, said = run(seed, options.tests)
        counted = COUNTED.findall(said)
        print(
            f"{'FAILED' if code else 'ok':8} seed {seed}: {counted[-1].strip('= ') if counted else f'ended with {code}'}"
        )
        if code:
            broken += 1
            KEPT.mkdir(exist_ok=True)
            (KEPT / f"{seed}.txt").write_text(said, encoding="utf-8")
            print("\n".join(f"    {test}" for test in FAILED.findall(said)) or said[-2_000:])
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
