"""Record what a tool did as a case, in the project's file of cases for that tool."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.testing.case_files import IN_A_PROJECT, JSON_ENDING, read_cases
from toolcrib.infra.files import durable, make_folder, read_small
from toolcrib.lib.documents import MAX_DEFINITION_BYTES
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolcrib.model.tool import Tool

# Two cases at one moment must not overwrite each other.
_WRITING = threading.Lock()


def record_case(tool: Tool, root: Path | None, case: Mapping[str, object]) -> str:
    """Add a case to the file `tests/cases/SLUG.json`; returns where it stands.

    Raises ToolError for a case that could not be run, and for a name that is taken.
    """
    if root is None:
        raise ToolError(Kind.CONFLICT, "there is no project to write a case into; make one with: crib init")
    file = root.joinpath(*IN_A_PROJECT, f"{tool.slug}{JSON_ENDING}")
    with _WRITING:
        before = read_small(file, MAX_DEFINITION_BYTES)
        cases = [] if before is None else orjson.loads(before) if before.strip() else []
        document = orjson.dumps([*cases, dict(case)], option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if len(document) > MAX_DEFINITION_BYTES:
            message = f"{file.name}: larger than {MAX_DEFINITION_BYTES} bytes with this case; record a smaller one"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        read_cases(document, str(file.relative_to(root)))
        make_folder(file.parent)
        durable.replace(file, document)
    return str(file.relative_to(root))
