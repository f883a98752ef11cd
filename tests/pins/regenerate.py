"""Write the golden files anew: `python tests/pins/regenerate.py`, with words for pytest such as `-k openapi`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent), *sys.argv[1:]]
    sys.exit(subprocess.run(command, env={**os.environ, "PINS_REGENERATE": "1"}, check=False).returncode)
