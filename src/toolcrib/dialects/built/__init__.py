"""Packages that the Builder published: `tools/<name>/` with tool.json, the maker's code, and a file to import it by."""

from __future__ import annotations

from toolcrib.dialects.built.files import read_file, read_folder
from toolcrib.dialects.built.making import make_tool, write_generated
from toolcrib.dialects.built.package import (
    DESCRIPTION_FILE,
    GENERATED,
    IMPORT_FILE,
    VERSION,
    Package,
    write_description,
)
from toolcrib.dialects.built.reading import load_package, read_package

__all__ = [
    "DESCRIPTION_FILE",
    "GENERATED",
    "IMPORT_FILE",
    "VERSION",
    "Package",
    "load_package",
    "make_tool",
    "read_file",
    "read_folder",
    "read_package",
    "write_description",
    "write_generated",
]
