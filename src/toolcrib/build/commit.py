"""Which commit a folder is at: read from the files of its repository, without starting git."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolcrib.ground.files.regular import read_small

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = "unknown"
MAX_FILE_BYTES = 4_096
MAX_PACKED_BYTES = 16_000_000
MAX_REFERENCES = 5

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# No part begins with a dot, so that none leads up, and nothing is in it that git itself would not take.
_REFERENCE = re.compile(r"refs(?:/[^./\x00-\x20\x7f~^:?*\[\\][^/\x00-\x20\x7f~^:?*\[\\]*)+")


def read_commit(folder: Path) -> str:
    """The commit of the nearest repository around the folder; `unknown` if there is none, or none that can be read."""
    real = folder.resolve()
    for place in (real, *real.parents):
        # The nearest one counts, whatever it holds: one further up would speak of other files.
        if os.path.lexists(place / ".git"):
            return _resolve(_repository(place / ".git"))
    return UNKNOWN


def _repository(mark: Path) -> Path:
    """Where the repository lies; of a worktree or a submodule `.git` is a file that says so."""
    kind, _, place = _read(mark).partition(": ")
    return mark.parent / place if kind == "gitdir" else mark


def _resolve(repository: Path) -> str:
    common = _common_folder(repository)
    text = _read(repository / "HEAD")
    for _ in range(MAX_REFERENCES):
        if _COMMIT.fullmatch(text):
            return text
        kind, _, name = text.partition(": ")
        if kind != "ref" or not _REFERENCE.fullmatch(name):
            return UNKNOWN
        text = _read(repository / name) or _read(common / name) or _packed(common, name)
    return UNKNOWN


def _common_folder(repository: Path) -> Path:
    """Where branches lie: a worktree has only its own HEAD."""
    return repository / _read(repository / "commondir")


def _packed(repository: Path, name: str) -> str:
    """What `packed-refs`, with a commit and a name on each line, says of the name."""
    end = f" {name}".encode("utf-8", "surrogateescape")
    lines = (read_small(repository / "packed-refs", MAX_PACKED_BYTES) or b"").splitlines()
    return next((line for line in lines if line.endswith(end)), b"").removesuffix(end).decode("utf-8", "replace")


def _read(path: Path) -> str:
    """The text of a small file without the end of its line; nothing if there is none to read."""
    data = read_small(path, MAX_FILE_BYTES) or b""
    return data.decode("utf-8", "surrogateescape").rstrip("\r\n")
