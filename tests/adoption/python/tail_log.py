"""tail of the log files that lie beside this script"""
from pathlib import Path


def tail_log(path: Path, lines: int = 2) -> str:
    """Last lines of a log file."""
    if lines < 1:
        raise ValueError("lines must be 1 or more")
    if not path.exists():
        raise FileNotFoundError(f"no log at {path}")
    return "\n".join(path.read_text(encoding="utf-8").splitlines()[-lines:])
