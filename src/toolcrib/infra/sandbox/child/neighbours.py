"""Import modules from the folder of a file, after everything installed; as a program, run a Python file in this way."""

# ruff: noqa: PTH100, PTH120 - pathlib would take longer than the rest
from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, all_suffixes

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_SUFFIXES = tuple(all_suffixes())


class Neighbours:
    """Finds modules in the folder of a file, except those of `hidden` paths; it stands last in `sys.meta_path`.

    It finds no name of the standard library, because libraries try to import those that only other systems have.
    """

    def __init__(self, folder: str, hidden: Iterable[str] = ()) -> None:
        self._folder = folder
        names = (os.path.relpath(path, folder) for path in hidden)
        self._hidden = {name.partition(".")[0] for name in names if "." not in name or name.endswith(_SUFFIXES)}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module that is in no package."""
        if path is not None or name in sys.stdlib_module_names or name in self._hidden:
            return None
        return PathFinder.find_spec(name, [self._folder])


def is_installed(name: str, places: Sequence[str] | None = None) -> bool:
    """Whether the standard library or a package in `places`, by default those of `sys.path`, has a module of this name."""
    return name in sys.stdlib_module_names or PathFinder.find_spec(name, places) is not None


if __name__ == "__main__":
    import runpy

    # An interpreter puts our own folder first.
    sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
    del sys.argv[0]
    sys.meta_path.append(Neighbours(os.path.dirname(os.path.abspath(sys.argv[0]))))
    runpy.run_path(sys.argv[0], run_name="__main__")
