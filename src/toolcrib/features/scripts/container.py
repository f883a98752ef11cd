"""Build the command line of Docker or Podman for a tool, with everything closed that the tool does not declare."""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING

from toolcrib.features.scripts.program import ARGUMENTS, COMMAND, Slots
from toolcrib.infra.files.protected_files import ProtectedFiles
from toolcrib.infra.programs import refuse_changed_script
from toolcrib.infra.programs.executables import CURES
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, READ, WRITE, Program, SandboxPolicy, has_network
from toolcrib.lib.command_arguments import check_words, spell
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.features.scripts.chain import Order
    from toolcrib.infra.programs.executables import Executables
    from toolcrib.infra.sandbox.jobs import WorkspacePolicy
    from toolcrib.model.tool import Script

ENGINES = ("docker", "podman")
IMAGE = "image"
EVERYTHING = "*"
ENTRYPOINT = "entrypoint"
ENGINE = "engine"
TOOL_FOLDER = "/tool"
WORKSPACE_FOLDER = "/workspace"
CPUS = "1"
IMAGE_NAME = re.compile(r"[A-Za-z0-9][\w./:@-]*", re.ASCII)
# Variables that configure the engine's command line or its libraries.
ENGINE_VARIABLES = re.compile(
    r"(?:DOCKER|BUILDKIT|BUILDX|COMPOSE|MOBY|CONTAINERS?|PODMAN|BUILDAH|REGISTRY|STORAGE|NETAVARK|CNI|XDG|DBUS|LD|SSL|SSH|OTEL)_.*"
    r"|GO[A-Z].*|HTTPS?_PROXY|ALL_PROXY|NO_PROXY|PATH|HOME|TMPDIR|USER|NOTIFY_SOCKET",
    re.IGNORECASE,
)


class Containers:
    """Makes the jobs that run a container and that remove it."""

    def __init__(self, commands: Executables, workspace_policy: WorkspacePolicy) -> None:
        self._commands = commands
        self._workspace_policy = workspace_policy

    def job(self, order: Order) -> tuple[Program, Program]:
        """The job that runs the container, and the one that removes it when the call is over."""
        _refuse_network(order)
        if order.run.script is not None:
            refuse_changed_script(order.run.script)
        slots = Slots(order)
        variables = _variables(order, slots)
        engine = self._engine(order)
        name = f"toolcrib-{secrets.token_hex(8)}"
        argv = [*engine, "run", "--rm", "--name", name, *self._policy(order, engine[0])]
        for variable in variables:
            argv += ["--env", variable]
        argv += [*_entrypoint(slots), _image(order), *slots.words(COMMAND)]
        written = order.chain.config.get(ARGUMENTS)
        argv += (
            slots.arguments(written) if order.run.script is None else [*slots.options(written), _file(order.run.script)]
        )
        argv += spell(slots.unmentioned(), order.run.action)
        environment = {**CLEAN_ENVIRONMENT, **variables}
        check_words([*argv, *environment.values()], order.tool.name)
        # The engine isolates the container; it cannot work inside our sandbox.
        policy = SandboxPolicy(unconfined=True, programs=True)
        folder = order.run.folder
        removal = (*engine, "rm", "--force", name)
        return (
            Program(argv=tuple(argv), cwd=folder, environment=environment, policy=policy),
            Program(argv=removal, cwd=folder, policy=policy),
        )

    def _engine(self, order: Order) -> tuple[str, ...]:
        """The engine that the operator installed; it runs outside the sandbox, so a program near the tool must not be taken for it."""
        wanted = order.chain.config.get(ENGINE)
        if wanted is not None and wanted not in ENGINES:
            raise ToolError(Kind.VALIDATION, f"config.engine: write one of {', '.join(ENGINES)}")
        for name in ENGINES if wanted is None else [str(wanted)]:
            found = self._commands.installed(name)
            if found is not None:
                return found.argv
        message = f"the command {str(wanted or ENGINES[0])!r} was not found; {CURES[ENGINES[0]]}"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)

    def _policy(self, order: Order, engine: str) -> list[str]:
        """Everything closed, and of files only what the tool declares."""
        workspace_policy = self._workspace_policy
        options = ["--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL"]
        options += ["--security-opt", "no-new-privileges", "--pids-limit", str(workspace_policy.processes)]
        options += ["--memory", f"{workspace_policy.memory_bytes}b", "--cpus", CPUS]
        options += ["--tmpfs", f"/tmp:size={workspace_policy.disk_bytes},mode=1777"]  # noqa: S108 - inside of the container
        options += ["--user", f"{os.getuid()}:{os.getgid()}"]
        if engine.endswith("podman") and os.getuid() != 0:
            options += ["--userns", "keep-id"]
        for mount in self._mounts(order):
            options += ["--mount", mount]
        return [*options, "--workdir", TOOL_FOLDER]

    def _mounts(self, order: Order) -> Iterator[str]:
        yield _bind(order.run.folder, TOOL_FOLDER, writable=False)
        capabilities, workspace = order.tool.requires, self._workspace_policy.workspace
        if capabilities.isdisjoint({READ, WRITE}):
            return
        writable = WRITE in capabilities
        if writable and self._workspace_policy.unwritable:
            raise ToolError(
                Kind.SANDBOX_UNAVAILABLE, f"no tool may write to the workspace: {self._workspace_policy.unwritable}"
            )
        if writable and EVERYTHING not in self._workspace_policy.opened:
            raise _unguarded(order)
        if READ not in capabilities:
            raise _readable(order)
        yield _bind(workspace, WORKSPACE_FOLDER, writable=writable)
        closed = self._workspace_policy.closed
        secrets_there = ProtectedFiles(workspace, self._workspace_policy.opened).find_secrets()
        for path in (*closed, *(path for path in secrets_there if not any(map(path.is_relative_to, closed)))):
            yield from _cover(path, workspace, writable=writable)
        for path in self._workspace_policy.fixed if writable else ():
            yield from _fix(path, workspace)


def _unguarded(order: Order) -> ToolError:
    message = (
        f"{order.tool.name}: no name is protected from a container that may write to the workspace, such as .git/hooks; "
        f"leave {WRITE} out of its requires, or let the operator set workspace.open = ['{EVERYTHING}']"
    )
    return ToolError(Kind.SANDBOX_UNAVAILABLE, message)


def _readable(order: Order) -> ToolError:
    """Rules and grants go by what a tool requires, and no engine mounts a folder for writing alone."""
    message = (
        f"{order.tool.name}: a container that may write to the workspace can read it too; list {READ} in its requires"
    )
    return ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [READ]})


def _refuse_network(order: Order) -> None:
    if has_network(order.tool.requires):
        message = (
            f"{order.tool.name}: containers have no network, because they cannot be led through the guarded proxy; "
            "leave net.* out of its requires, or run it with another executor than docker"
        )
        raise ToolError(Kind.SANDBOX_UNAVAILABLE, message)


def _image(order: Order) -> str:
    image = order.chain.config.get(IMAGE)
    if not isinstance(image, str) or IMAGE_NAME.fullmatch(image) is None:
        raise ToolError(
            Kind.VALIDATION, f"{order.tool.name}: config.image: write the name of an image, such as python:3.11"
        )
    return image


def _entrypoint(slots: Slots) -> list[str]:
    words = slots.words(ENTRYPOINT)
    if len(words) > 1:
        raise ToolError(Kind.VALIDATION, "config.entrypoint: write one word; what follows it goes into config.command")
    return ["--entrypoint", *words] if words else []


def _file(script: Script) -> str:
    return f"{TOOL_FOLDER}/{script.path.name}"


def _variables(order: Order, slots: Slots) -> dict[str, str]:
    """The variables, passed through the engine's environment: every user can read a command line."""
    variables = slots.variables()
    obeyed = sorted(name for name in variables if ENGINE_VARIABLES.fullmatch(name))
    if obeyed:
        message = (
            f"{order.tool.name}: config.env: the container engine itself obeys {', '.join(obeyed)}; use other names"
        )
        raise ToolError(Kind.VALIDATION, message)
    return variables


def _bind(source: Path, target: str, *, writable: bool) -> str:
    if any(letter in str(source) for letter in ',"\n'):
        raise ToolError(
            Kind.VALIDATION, f"{source} cannot be given to a container; use a path without commas and quotes"
        )
    return f"type=bind,source={source},target={target}" + ("" if writable else ",readonly")


def _inside(path: Path, workspace: Path) -> str | None:
    """Where a path of the workspace lies in the container."""
    path, workspace = path.absolute(), workspace.absolute()
    if path == workspace or not path.is_relative_to(workspace):
        return None
    return f"{WORKSPACE_FOLDER}/{path.relative_to(workspace).as_posix()}"


def _cover(path: Path, workspace: Path, *, writable: bool) -> Iterator[str]:
    """Mount an empty file or folder over each closed path."""
    target = _inside(path, workspace)
    if target is None:
        return
    if path.is_dir():
        yield f"type=tmpfs,target={target},tmpfs-size=4096,tmpfs-mode=0555"
    elif path.exists():
        yield f"type=bind,source=/dev/null,target={target},readonly"
    elif writable:
        raise _creatable(path)


def _fix(path: Path, workspace: Path) -> Iterator[str]:
    """Mount each read-only path over itself."""
    target = _inside(path, workspace)
    if target is None:
        return
    if not path.exists():
        raise _creatable(path)
    yield _bind(path, target, writable=False)


def _creatable(path: Path) -> ToolError:
    message = (
        f"a container that may write to the workspace could make {path.name}, which no tool may; "
        f"make it yourself, or leave {WRITE} out of the tool's requires"
    )
    return ToolError(Kind.BLOCKED, message)
