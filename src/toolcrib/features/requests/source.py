"""The packages that were built from requests, as tools of the folder that they lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.requests.format import read_package

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.model.tool import Tool


class BuiltPackage:
    """Reads the description of a package; its code is not run."""

    name = "built"

    def reads(self, path: Path) -> bool:
        """Whether it may describe a package."""
        return path.suffix == ".json"

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The one tool of the package; none if the file describes something else."""
        return read_package(path, code)
