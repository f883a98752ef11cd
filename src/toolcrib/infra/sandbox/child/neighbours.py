"""Import modules from the folder of a file, after everything installed; as a program, run a Python file in this way."""

# ruff: noqa: PTH100, PTH120 - pathlib would take longer than the rest
from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Neighbours:
    """Finds modules in the folder of a file, except those of `hidden` paths; it stands last in `sys.meta_path`.

    It finds no name of the standard library, because libraries try to import those that only other systems have.
    """

    def __init__(self, folder: str, hidden: Iterable[str] = ()) -> None:
        self._folder = folder
        self._hidden = frozenset(hidden)

    def install(self) -> None:
        """Take part in every import. What is in a package is found by itself, so that stands first."""
        sys.meta_path.append(self)
        if self._hidden:
            sys.meta_path.insert(0, _Inside(self))

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module that is in no package."""
        if path is not None or name in sys.stdlib_module_names:
            return None
        found = PathFinder.find_spec(name, [self._folder])
        return None if found is None or self.hides(found) else found

    def hides(self, found: ModuleSpec) -> bool:
        """Whether it is the module of a hidden path."""
        return not self._hidden.isdisjoint((found.origin, *(found.submodule_search_locations or ())))


class _Inside:
    """Finds modules in packages, except those that are hidden."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        found = None if path is None else PathFinder.find_spec(name, path)
        if found is not None and self._neighbours.hides(found):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def is_installed(name: str, places: Sequence[str] | None = None) -> bool:
    """Whether the standard library or a package in `places`, by default those of `sys.path`, has a module of this name."""
    return name in sys.stdlib_module_names or PathFinder.find_spec(name, places) is not None


if __name__ == "__main__":
    import runpy

    # An interpreter puts our own folder first.
    sys.path[:] = [place for place in sys.path if place != os.path.dirname(__file__)]
    del sys.argv[0]
    Neighbours(os.path.dirname(os.path.abspath(sys.argv[0]))).install()
    runpy.run_path(sys.argv[0], run_name="__main__")
