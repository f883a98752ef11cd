"""The cases of a tool: what its documents show, and what was recorded beside it or in the project."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from toolcrib.cases.documented import documented_cases
from toolcrib.cases.nouns import Case
from toolcrib.cases.reading import load_cases
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Handler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.model.tool import Tool

BESIDE_A_TOOL = "cases"
IN_A_PROJECT = ("tests", "cases")
ENDINGS = (".json", ".yaml")


def find_cases(tool: Tool, root: Path | None = None) -> list[Case]:
    """Every case of a tool, of its documents first; `root` is the project, whose files are named from there."""
    recorded = [case for file in _files(tool, root) for case in read_file(file)]
    return [replace(case, place=from_root(root, case.place)) for case in (*documented_cases(tool), *recorded)]


def read_file(file: Path) -> list[Case]:
    """The cases of a file; each thing that is wrong with one is itself a case that fails."""
    try:
        return load_cases(file)
    except ToolError as error:
        problems = error.details.get("problems") or [(error.details.get("line", 1), error.message)]
        return [_unreadable(file, line, problem) for line, problem in cast("list[tuple[int, str]]", problems)]


def _unreadable(file: Path, line: int, problem: str) -> Case:
    place = f"{file}:{line}"
    return Case(name=file.name, place=place, problem=problem.removeprefix(f"{place}: "))


def _files(tool: Tool, root: Path | None) -> Iterator[Path]:
    """Where cases of the tool are written, as far as there are any."""
    stems = []
    if isinstance(tool.run, Handler):
        stems.append(tool.run.root / tool.run.folder / BESIDE_A_TOOL)
    if root is not None:
        stems += [root.joinpath(*IN_A_PROJECT, name) for name in dict.fromkeys((tool.name, tool.slug))]
    for stem in stems:
        for ending in ENDINGS:
            file = stem.parent / f"{stem.name}{ending}"
            # Whatever stands there was meant to be a file of cases.
            if os.path.lexists(file):
                yield file


def from_root(root: Path | None, place: str) -> str:
    """A place as people of the project name it."""
    return place if root is None else place.removeprefix(f"{root}{os.sep}")
