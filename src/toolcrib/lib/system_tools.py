"""Define the platform's own tools: the primitives in which every chain of executors ends, and the bundled runtimes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.model.tool import Behaviour, Chained, Method, Origin, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

BUNDLE = "system"
ORIGIN = Origin(place="toolcrib")
PRIMITIVE = "primitive"
RUNTIME = "runtime"

SUBPROCESS = "subprocess"
HTTP_CLIENT = "http_client"
FILESYSTEM = "filesystem"
PYTHON = "python_runtime"
NODE = "node_runtime"
BASH = "bash"
DOCKER = "docker"

OPERATIONS = ("read", "list", "exists", "write", "append", "delete", "make_folder")


def system_tools() -> list[Tool]:
    """The tools of the bundle `system`; always the same objects."""
    return [*_tools().values()]


def primitive_of(tool: Tool) -> str | None:
    """The name of the primitive that the tool is; None if it is not one of the platform's primitives."""
    return tool.name if tool.kind == PRIMITIVE and is_ours(tool) else None


def is_ours(tool: Tool) -> bool:
    """Whether the tool is one of the platform's own, and not another tool of the same name."""
    own = _tools().get(tool.name)
    return own is not None and tool.run is own.run


@cache
def _tools() -> dict[str, Tool]:
    tools = [
        _primitive(
            SUBPROCESS,
            "Start a program of the machine, in the workspace and without a shell. Returns what it prints.",
            {
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The program: a name, or a path in the workspace.",
                },
                "args": {"type": "array", "items": {"type": "string"}, "description": "Its arguments, word by word."},
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Variables of its environment, besides the few that every program has.",
                },
                "cwd": {"type": "string", "description": "The folder of the workspace that it runs in."},
            },
            required=["command"],
            requires={"shell.execute"},
        ),
        _primitive(
            HTTP_CLIENT,
            "Send an HTTP request. Returns the body of the answer, read as JSON where it is.",
            {
                "method": {
                    "type": "string",
                    "enum": [method.value for method in Method],
                    "default": "GET",
                    "description": "The HTTP method.",
                },
                "url": {"type": "string", "minLength": 1, "description": "The full address, http or https."},
                "headers": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Headers of the request.",
                },
                "body": {"description": "What is sent: text as it is, anything else as JSON."},
            },
            required=["url"],
            requires={"net.http"},
        ),
        _primitive(
            FILESYSTEM,
            "Read, list, write, extend or delete files of the workspace.",
            {
                "operation": {"type": "string", "enum": [*OPERATIONS], "description": "What to do."},
                "path": {"type": "string", "minLength": 1, "description": "A path in the workspace."},
                "content": {"type": "string", "description": "The text to write or append."},
            },
            required=["operation", "path"],
            requires={"fs.read", "fs.write"},
        ),
        _runtime(PYTHON, "Runs files written in Python.", {"command": "python"}),
        _runtime(NODE, "Runs files written in JavaScript, with Node.", {"command": "node"}),
        _runtime(BASH, "Runs files written for Bash.", {"command": "bash"}, requires={"shell.execute"}),
        _runtime(DOCKER, "Runs tools in containers, with Docker or Podman.", {}),
    ]
    return {tool.name: tool for tool in tools}


def _primitive(
    name: str, description: str, properties: dict[str, object], *, required: list[str], requires: set[str]
) -> Tool:
    parameters: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return _tool(
        name,
        description,
        parameters,
        Chained(kind=PRIMITIVE, tool_type=PRIMITIVE, executor=None, folder=Path()),
        requires,
    )


def _runtime(name: str, description: str, config: Mapping[str, object], *, requires: set[str] | None = None) -> Tool:
    run = Chained(kind=RUNTIME, tool_type=RUNTIME, executor=SUBPROCESS, folder=Path(), config=config)
    parameters: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    return _tool(name, description, parameters, run, requires or set())


def _tool(name: str, description: str, parameters: dict[str, object], run: Chained, requires: set[str]) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        run=run,
        bundle=BUNDLE,
        category=f"{run.kind}s",
        behaviour=Behaviour.ACTION,
        side_effects=SideEffects.WRITES,
        requires=frozenset(requires),
        origin=ORIGIN,
    )
