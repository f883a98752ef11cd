"""Programs of the machine: from what a tool's authors configured to the job that starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.files.regular import read_beginning
from toolcrib.ground.sandbox.jobs import CLEAN_ENVIRONMENT, PROXY_VARIABLES, Program
from toolcrib.ground.sandbox.walls import PROGRAMS, READ, WRITE, build_walls, has_network
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.words import SHELLS, check_words, spell
from toolcrib.runners import node
from toolcrib.runners.chain import chained
from toolcrib.runners.slots import ARGUMENTS, COMMAND, SHELL, Slots, check_variables, refuse_spliced_code
from toolcrib.runners.system import RUNTIME, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.ground.sandbox.walls import Premises
    from toolcrib.model.tool import Script, Tool
    from toolcrib.runners.commands import Commands, Found
    from toolcrib.runners.driver import Order

SH = "/bin/sh"
WORKSPACE = "TOOLCRIB_WORKSPACE"
CALLS = "rye.execute"
# What the primitive itself works with, like the shell tool: the files of the workspace.
PRIMITIVE_CAPABILITIES = frozenset({PROGRAMS, READ, WRITE})
# Who reads a file of code that says nothing of it in its first line.
INTERPRETERS = {"python": "python", "javascript": "node", "bash": "bash"}


class Programs:
    """Makes the jobs of programs."""

    def __init__(self, commands: Commands, premises: Premises, *, observe: bool = False) -> None:
        self._commands = commands
        self._premises = premises
        self._observe = observe

    def job(self, order: Order) -> Program:
        """The program that an order comes to; raises ToolError for what cannot be started."""
        if order.is_primitive:
            return self._called_directly(order)
        _refuse_unlisted_command(order)
        if order.run.script is not None:
            refuse_changed(order.run.script)
        slots = Slots(order)
        if _runs_shell(order):
            return self._with_shell(order, slots)
        found = self._starter(order, slots)
        if found.program in SHELLS:
            refuse_spliced_code(order.chain.config.get(ARGUMENTS))
        words = [*slots.words(COMMAND)[1:], *self._arguments(order, slots, found)]
        argv = [found.argv[0], *self._node_options(order, found), *found.argv[1:], *words]
        argv += spell(slots.unmentioned(), order.run.action)
        return self._program(order, slots, argv, found)

    def _called_directly(self, order: Order) -> Program:
        """The primitive under its own name: the caller says everything, and no slot is looked for in it."""
        given = order.arguments
        folder = inside(self._premises.workspace, str(given.get("cwd", "")), (self._premises.workspace,))
        found = self._commands.find(str(given["command"]), folder)
        own, words = given.get("env"), given.get("args")
        variables = check_variables(own if isinstance(own, dict) else {})
        argv = (*found.argv, *(str(word) for word in (words if isinstance(words, list) else [])))
        environment = {**CLEAN_ENVIRONMENT, **variables}
        check_words([*argv, *environment.values()], order.tool.name)
        walls = build_walls(PRIMITIVE_CAPABILITIES, self._premises, found.runtime, observe=self._observe)
        return Program(argv=argv, cwd=folder, environment=environment, walls=walls)

    def _with_shell(self, order: Order, slots: Slots) -> Program:
        line, values = slots.command_line()
        words = [
            *slots.arguments(order.chain.config.get(ARGUMENTS)),
            *spell(slots.unmentioned(more=(COMMAND,)), order.run.action),
        ]
        behind = "".join(f' "${{{number}}}"' for number in range(len(values) + 1, len(values) + len(words) + 1))
        return self._program(order, slots, [SH, "-c", f"{line}{behind}", "sh", *values, *words], None)

    def _starter(self, order: Order, slots: Slots) -> Found:
        """What is started: the command of the nearest element that names one, seen from where that element lies."""
        folder = order.run.folder
        words, script = slots.words(COMMAND), order.run.script
        if not words:
            return self._by_language(order.tool, script)
        owner = next(element for element in order.chain.elements if COMMAND in chained(element).config)
        return self._commands.find(words[0], chained(owner).folder if "/" in words[0] else folder)

    def _by_language(self, tool: Tool, script: Script | None) -> Found:
        command = "" if script is None else INTERPRETERS.get(script.language, "")
        if script is None or not command:
            raise ToolError(Kind.VALIDATION, f"{tool.name}: nothing says what to start; write config: {{command: …}}")
        return self._commands.find(command, script.path.parent)

    def _arguments(self, order: Order, slots: Slots, found: Found) -> list[str]:
        """What follows the command: those of whoever names the command, the file, and then the tool's own."""
        script, own = order.run.script, order.run.config
        if script is None:
            return slots.arguments(order.chain.config.get(ARGUMENTS))
        namers = order.chain.elements if COMMAND in own else order.chain.elements[1:]
        written = (
            config[ARGUMENTS] for config in (chained(element).config for element in namers) if ARGUMENTS in config
        )
        before = slots.options(next(written, None))
        behind = [] if COMMAND in own else slots.arguments(own.get(ARGUMENTS))
        is_misread = len(found.argv) == 1 and node.is_node(found) and node.needs_commonjs(script, self._commands)
        return [*before, *([str(node.COMMONJS)] if is_misread else []), str(script.path), *behind]

    def _node_options(self, order: Order, found: Found) -> list[str]:
        if not node.is_node(found):
            return []
        script = order.run.script
        if has_network(order.tool.requires) and script is not None:
            from toolcrib.runners.node_version import refuse_without_proxy

            has_packages = node.has_packages(self._commands.near(order.run.folder))
            refuse_without_proxy(order.tool.name, (script.code,), found.argv[0], has_packages=has_packages)
        return node.options(self._premises.memory_bytes, calls=CALLS in order.tool.requires)

    def _program(self, order: Order, slots: Slots, argv: list[str], found: Found | None) -> Program:
        folder, workspace, script = order.run.folder, self._premises.workspace, order.run.script
        near = self._commands.near(folder)
        environment = {
            **basic_variables(order.tool.requires, self._premises),
            "PATH": search_path(argv[0], near),
            **(node.ENVIRONMENT if found is not None and node.is_node(found) else {}),
            **slots.variables(),
        }
        check_words([*argv, *environment.values()], order.tool.name)
        # Ours lie nowhere: they are made by code.
        homes = [chained(element).folder for element in order.chain.elements if not is_ours(element)]
        seen = (*homes, *(() if found is None else found.runtime), *near, *node.FILES)
        return Program(
            argv=tuple(argv),
            cwd=inside(folder, slots.folder(), (folder, workspace)),
            environment=environment,
            walls=build_walls(order.tool.requires, self._premises, seen, observe=self._observe),
            channel=CALLS in order.tool.requires,
            files={} if script is None else {script.path.absolute(): script.code},
        )


def basic_variables(capabilities: frozenset[str], premises: Premises) -> dict[str, str]:
    """The few variables that every job has, where it finds the workspace, and where the only way out, if it has them."""
    variables = dict(CLEAN_ENVIRONMENT)
    if capabilities & {READ, WRITE}:
        variables[WORKSPACE] = str(premises.workspace)
    if has_network(capabilities):
        variables |= PROXY_VARIABLES
    return variables


def refuse_changed(script: Script) -> None:
    """Refuse a file that is not what was read: what runs is what was checked.

    The program opens the file by its path a moment later, because its neighbours are found from there, and Bash reads on as
    it goes. Behind mounts of its own it finds there what was read. Where there are none, only the owner of the file can
    change it in between: nothing that runs here can write to folders of tools.
    """
    now = read_beginning(script.path, len(script.code) + 1)
    if now is None:
        message = f"{script.path.name} cannot be read any more; write it again, as a regular file"
        raise ToolError(Kind.NOT_FOUND, message)
    if now != script.code:
        raise ToolError(Kind.CONFLICT, f"{script.path.name} changed while it was about to run; call again")


def inside(base: Path, written: str, allowed: Iterable[Path]) -> Path:
    """The folder that `written` means, seen from `base`; refuses one outside the allowed ones, links followed."""
    try:
        folder = (base / written).resolve()
        is_folder = folder.is_dir()
        is_inside = any(folder.is_relative_to(place.resolve()) for place in allowed)
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links, a name too long, a NUL
        raise ToolError(Kind.VALIDATION, f"cwd {written[:200]!r} is no folder's name") from problem
    if not is_inside:
        raise ToolError(Kind.BLOCKED, f"cwd {written[:200]!r} is outside the workspace; write a path inside it")
    if not is_folder:
        raise ToolError(Kind.NOT_FOUND, f"cwd {written[:200]!r} is not a folder")
    return folder


def _runs_shell(order: Order) -> bool:
    """Whether the tool itself, and not a runtime, asks for a shell: the rules that screen it look there too."""
    wanted = order.run.config.get(SHELL, False)
    if not isinstance(wanted, bool):
        raise ToolError(Kind.VALIDATION, "config.shell: write true or false")
    return wanted


def _refuse_unlisted_command(order: Order) -> None:
    """A runtime brings its command; a tool that brings its own starts programs, whatever it names as its executor."""
    starts_own = order.run.kind != RUNTIME and (COMMAND in order.run.config or order.run.config.get(SHELL) is True)
    if starts_own and PROGRAMS not in order.tool.requires:
        message = f"{order.tool.name} starts a command of its own; list {PROGRAMS} in its requires"
        raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [PROGRAMS]})


def search_path(program: str, near: tuple[Path, ...]) -> str:
    """Where what it starts is found in turn: what is installed near the tool, beside the program, then the system."""
    from pathlib import Path

    installed = [str(place / (".bin" if place.name == "node_modules" else "bin")) for place in near]
    system = CLEAN_ENVIRONMENT["PATH"].split(":")
    return ":".join(dict.fromkeys([*installed, str(Path(program).parent), *system]))
