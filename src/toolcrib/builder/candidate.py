"""What a maker made: read as it lies there, within bounds, and not run."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.built import GENERATED, Package, make_tool, read_file, read_folder
from toolcrib.dialects.folder.files import MARKS
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Allowance

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import ToolRequest

NOTHING_MORE = Allowance()
SHOWN_FILES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A package on its way: its files by their paths from its folder, of which `entry` holds the function.

    `digest` is the same for the same bytes made for the same wish.
    """

    name: str
    entry: str
    files: Mapping[str, bytes]
    digest: str


def read_candidate(path: Path, request: ToolRequest) -> Candidate:
    """Read what was made: a folder with `<name>.py` in it, or that one file. Raises ToolError with what is wrong, and the cure."""
    entry = f"{request.name}.py"
    files = {entry: read_file(path)} if _is_one_file(path) else read_folder(path)
    _refuse_taken_names(files, path)
    if entry not in files:
        raise _without_entry(files, path, request)
    package = package_of(files, request, NOTHING_MORE)
    return Candidate(name=request.name, entry=entry, files=files, digest=package.digest)


def tool_of_candidate(
    candidate: Candidate, request: ToolRequest, *, folder: Path, allowance: Allowance = NOTHING_MORE
) -> Tool:
    """The tool that the candidate would be, with its files in the folder; raises ToolError if its code cannot be read."""
    return make_tool(package_of(candidate.files, request, allowance), folder)


def package_of(files: Mapping[str, bytes], request: ToolRequest, allowance: Allowance) -> Package:
    """What these files come to for whoever asked, with what the operator adds."""
    return Package(
        name=request.name,
        function=request.function,
        description=request.description,
        parameters=request.parameters,
        output_schema=request.output_schema,
        files=files,
        requires=request.capabilities | allowance.capabilities,
        hosts=allowed_hosts(request, allowance),
        requirements=request.requirements,
        request=request.id,
    )


def allowed_hosts(request: ToolRequest, allowance: Allowance) -> tuple[str, ...] | None:
    """Where its network may lead; None if neither the request nor the operator says so."""
    if request.hosts is None and not allowance.hosts:
        return None
    return tuple(dict.fromkeys((*(request.hosts or ()), *allowance.hosts)))


def _is_one_file(path: Path) -> bool:
    try:
        return path.suffix == ".py" and not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _refuse_taken_names(files: Mapping[str, bytes], path: Path) -> None:
    """Refuse files by whose names the folder would be taken for something else than this package."""
    for name in sorted(files.keys() & {*GENERATED, *MARKS}):
        is_ours = name in GENERATED
        cure = "is written when the tool is published; remove it" if is_ours else "marks other tool folders; rename it"
        raise ToolError(Kind.VALIDATION, f"{path.name}/{name}: {cure}")


def _without_entry(files: Mapping[str, bytes], path: Path, request: ToolRequest) -> ToolError:
    found = ", ".join(sorted(files)[:SHOWN_FILES]) or "nothing"
    message = f"{path.name}: there is no {request.name}.py; write def {request.function}(…) there (found: {found})"
    return ToolError(Kind.NOT_FOUND, message)
