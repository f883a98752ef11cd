"""Judge the web page: its files are what the source gives, its components pass their tests, and a real browser finds nothing wrong.

`python judges/page.py`: axe-core, and a Chromium for machines without one, are found in `.judges/page`. Screenshots of every
screen lie in `.judges/page/screenshots` afterwards; they are for looking at.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from browser import AXE, SCREENSHOTS, VARIABLE, find_browser  # noqa: E402 - the folder is named above

PLACE = ROOT / ".judges" / "page"
# The Chromium from npm brings libraries of its own for machines that lack them.
UNPACK = """
import("@sparticuz/chromium").then(async ({ default: chromium, inflate }) => {
  const program = await chromium.executablePath();
  console.log(JSON.stringify([program, await inflate("node_modules/@sparticuz/chromium/bin/al2023.tar.br")]));
});
"""
SECONDS_TO_UNPACK = 120


def main() -> int:
    """Run every part; gives how many failed."""
    screenshots = PLACE / "screenshots"
    shutil.rmtree(screenshots, ignore_errors=True)
    variables = {
        **os.environ,
        VARIABLE: find_browser() or unpack_browser(),
        AXE: str(PLACE / "node_modules" / "axe-core" / "axe.min.js"),
        SCREENSHOTS: str(screenshots),
    }
    parts = (
        ("scripts/page.py", "--check"),
        ("scripts/page.py", "--test"),
        (
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:randomly",
            "-m",
            "page",
            "--timeout",
            "180",
            "tests/interfaces/web",
        ),
    )
    return sum(
        subprocess.run([sys.executable, *part], cwd=ROOT, env=variables, check=False).returncode != 0 for part in parts
    )


def unpack_browser() -> str:
    """The path of the Chromium that comes from npm, unpacked anew: one that was cut off would not start."""
    node = shutil.which("node")
    if node is None:
        sys.exit("no Node is there; run: make judges ARGS=page")
    folder = PLACE / "browser"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(
        [node, "-e", UNPACK],
        cwd=PLACE,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS_TO_UNPACK,
    )
    program, libraries = json.loads(done.stdout)
    if starts(program):
        return program
    # Only the browser is given the libraries: they are older than those of the machine.
    wrapper = folder / "browser"
    wrapper.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries}/lib exec {program} "$@"\n')
    wrapper.chmod(0o755)
    if not starts(str(wrapper)):
        sys.exit("the Chromium from npm does not start on this machine; install one: apt-get install chromium")
    return str(wrapper)


def starts(program: str) -> bool:
    """Whether a browser has the libraries that it needs."""
    done = subprocess.run([program, "--version"], capture_output=True, timeout=SECONDS_TO_UNPACK, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
