"""Prepare a tool before it is called: check its chain of executors, install what it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import LIBRARY, SINK, resolve
from toolcrib.infra.sandbox.environments import prepare
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Handler, Script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.scripts.chain import FindExecutor
    from toolcrib.model.tool import Tool

PYTHON = "python"


def prepare_tool(
    tool: Tool, environments: Path | None, search_path: str, say: Callable[[str], None] | None
) -> Path | None:
    """Install what a Python file declares; the Python that has it, None if it declares nothing."""
    path, code = _python_file(tool)
    if environments is None:
        message = "there is no folder outside of the project to install into; set HOME or XDG_CACHE_HOME"
        raise ToolError(Kind.VALIDATION, message)
    return prepare(path, code, envs=environments, search_path=search_path, progress=say)


def _python_file(tool: Tool) -> tuple[Path, bytes]:
    """The file of a tool that is written in Python, and what it holds."""
    run = tool.run.script if isinstance(tool.run, Chained) else tool.run
    if isinstance(run, Script) and run.language == PYTHON:
        return run.path, run.code
    if isinstance(run, Handler) and run.language == PYTHON:
        return run.root.absolute() / run.path, run.files[run.path]
    raise ToolError(Kind.VALIDATION, f"{tool.name} is no Python file; only such declare what they need to be installed")


def chain_problem(tool: Tool, find: FindExecutor) -> str:
    """What would keep every call of the tool from reaching a primitive; empty if nothing does."""
    if not isinstance(tool.run, Chained) or tool.kind in {LIBRARY, SINK}:
        return ""

    try:
        resolve(tool, find)
    except ToolError as problem:
        return f"{tool.origin}: {problem.message}"
    return ""
