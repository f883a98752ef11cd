"""Write the first files of a project or a tool, without overwriting any."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.toolkit.cli import WrongUseError, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write the files that do not exist yet, and report which."""
    with explain_failure():
        for name, text in files.items():
            report_file(name, written=write_new(root / name, text))


def write_new(path: Path, text: str) -> bool:
    """Write a new file; False if the name exists, even as a dangling link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def report_file(name: str, *, written: bool) -> None:
    """Report whether a file was written or kept."""
    say(f"{'wrote' if written else 'kept '}  {name}")


@contextmanager
def explain_failure() -> Iterator[None]:
    """Turn a failure to write into wrong use, with its cure."""
    try:
        yield
    except OSError as problem:
        raise WrongUseError(
            f"{problem.filename}: {problem.strerror}; name a folder that can be written to"
        ) from problem
