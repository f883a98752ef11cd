"""Places for sockets: the kernel takes a path of at most 107 bytes, and temporary folders may lie deep."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What is left of 107 for the folder, the name of the socket, and what a program adds while it makes one.
LONGEST = 60


@contextmanager
def socket_folder() -> Iterator[Path]:
    """A folder with a short path; it is removed at the end."""
    usual = tempfile.gettempdir()
    place = usual if len(usual.encode()) <= LONGEST else "/tmp"
    with tempfile.TemporaryDirectory(prefix="crib-", dir=place) as folder:
        yield Path(folder)
