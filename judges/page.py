"""Judge the web page: its files are what the source gives, its components pass their tests, and a real browser finds nothing wrong.

`python judges/page.py`: axe-core, and a Chromium for machines without one, are found in `.judges/page`. Screenshots of every
screen lie in `.judges/page/screenshots` afterwards; they are for looking at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from browser import AXE, SCREENSHOTS, VARIABLE, find_browser  # noqa: E402 - the folder is named above

PLACE = ROOT / ".judges" / "page"
UNPACK = 'import("@sparticuz/chromium").then(async (found) => console.log(await found.default.executablePath()))'


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
    """The path of the Chromium that comes from npm."""
    node = shutil.which("node")
    if node is None:
        sys.exit("no Node is there; run: make judges ARGS=page")
    done = subprocess.run([node, "-e", UNPACK], cwd=PLACE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
