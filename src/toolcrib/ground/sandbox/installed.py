"""What was installed for the tools of a project, environments of Python and modules of Node, and never outside of it.

Tools that may read nothing else read these, so a link counts only if it leads to a folder of the same kind in the same
project.
"""

from __future__ import annotations

import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.files.regular import read_small

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger("toolcrib.sandbox")

NODE_MODULES = "node_modules"
ENVIRONMENTS = (".venv", "venv")

_SETTINGS_FILE = "pyvenv.cfg"
_MAX_SETTINGS_BYTES = 16_000


@cache
def own_programs() -> frozenset[Path]:
    """The Python that runs Toolcrib, and the one that its environment was made from."""
    base = getattr(sys, "_base_executable", sys.executable)
    return frozenset(Path(program).resolve() for program in (sys.executable, base))


def nearest_modules(folders: Sequence[Path]) -> Path | None:
    """The modules of the first folder that has some; the last of the folders holds the whole project."""
    for folder in folders:
        place = folder / NODE_MODULES
        if os.path.isdir(place) and _stays(place, (NODE_MODULES,), folders[-1]):  # noqa: PTH112 - quiet, unlike Path
            return place
    return None


def nearest_environment(folders: Sequence[Path]) -> Path | None:
    """The environment of the first folder that has one; the last of the folders holds the whole project."""
    places = (folder / name for folder in folders for name in ENVIRONMENTS)
    return next((place for place in places if is_environment(place) and _stays(place, ENVIRONMENTS, folders[-1])), None)


def is_environment(folder: Path) -> bool:
    """Whether it is an environment of Python."""
    return settings_of(folder) is not None


def settings_of(folder: Path) -> bytes | None:
    """What an environment of Python says of itself; None if the folder is none."""
    return read_small(folder / _SETTINGS_FILE, _MAX_SETTINGS_BYTES)


def _stays(place: Path, names: tuple[str, ...], project: Path) -> bool:
    """Whether it is in the project and what its name says, wherever it leads."""
    real, top = place.resolve(), project.resolve()
    if real.name in names and real != top and real.is_relative_to(top):
        return True
    logger.warning("%s leads to %s and is passed over; install it in the project itself", place, real)
    return False
