"""The job of a worker: Node, the handler that it loads, and the bytes that were checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground import sandbox
from toolcrib.ground.sandbox.jobs import Program
from toolcrib.ground.sandbox.walls import build_walls, has_network
from toolcrib.model.errors import Kind, ToolError
from toolcrib.runners import node
from toolcrib.runners.commands import NODE
from toolcrib.runners.handler.contents import checked_files
from toolcrib.runners.node_version import refuse_without_proxy, version_of
from toolcrib.runners.program import basic_variables, search_path

if TYPE_CHECKING:
    from toolcrib.ground.sandbox.walls import Premises
    from toolcrib.model.tool import Handler, Tool
    from toolcrib.runners.commands import Commands, Found

JAVASCRIPT = "javascript"
OLDEST = (20, 19)
CURE = "install Node 20.19 or newer, or pip install 'toolcrib[node]'"
WORKER = Path(sandbox.__file__).parent / "handler.cjs"
FILES = (WORKER, WORKER.with_name("modules.cjs"))


def make_job(tool: Tool, run: Handler, commands: Commands, premises: Premises, *, observe: bool = False) -> Program:
    """The process that loads a handler; raises ToolError where there is no Node for it."""
    root = run.root.absolute()
    folders = run.folders
    found = _find(tool, commands)
    near = commands.near(folders[0])
    if has_network(tool.requires):
        codes = tuple(run.contents.values())
        refuse_without_proxy(tool.name, codes, found.argv[0], has_packages=node.has_packages(near))
    words = (str(WORKER), str(root / run.path), str(root), *map(str, folders))
    files = checked_files(run)
    packages = dict.fromkeys(place for folder in folders for place in commands.near(folder))
    return Program(
        argv=(*found.argv, *node.options(premises.memory_bytes, calls=False), *words),
        cwd=folders[0],
        environment={
            **basic_variables(tool.requires, premises),
            **node.ENVIRONMENT,
            "PATH": search_path(found.argv[0], near),
        },
        walls=build_walls(
            tool.requires,
            premises,
            (*files, *found.runtime, *packages, *FILES),
            listed=folders,
            observe=observe,
        ),
        channel=True,
        files=files,
    )


def _find(tool: Tool, commands: Commands) -> Found:
    # The operator's and nobody else's: what a project has installed runs in it, and is not what it runs on.
    found = commands.installed(NODE)
    if found is None:
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} needs Node, which was not found; {CURE}")
    program = found.argv[0]
    if not node.is_node(found):
        message = f"{tool.name} needs Node, and {found.argv[-1]} is a script of {program}; {CURE}"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
    version = version_of(program)
    if version is not None and version < OLDEST:
        message = f"{tool.name} needs Node 20.19 or newer, and {program} is {'.'.join(map(str, version))}; {CURE}"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
    return found
