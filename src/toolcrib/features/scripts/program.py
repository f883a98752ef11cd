"""Build the job of a program from the config of a tool and its executors, with the slots filled.

Slots may stand in words, variables, folders and command lines.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import chained
from toolcrib.infra.programs import node_runtime, refuse_changed_script
from toolcrib.infra.programs.executables import basic_variables, search_path
from toolcrib.infra.programs.node_runtime import refuse_without_proxy
from toolcrib.infra.sandbox.child import neighbours
from toolcrib.infra.sandbox.jobs import (
    CLEAN_ENVIRONMENT,
    PROGRAMS,
    READ,
    WRITE,
    Program,
    build_policy,
    has_network,
)
from toolcrib.lib.command_arguments import SHELLS, as_text, check_words, spell
from toolcrib.lib.command_line import COMMAND_LINE, Words, check_stdin, command_words
from toolcrib.lib.system_tools import RUNTIME, is_ours
from toolcrib.lib.templates import Name, Text, compile_template, look_up_in
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Convention
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.features.scripts.chain import Order
    from toolcrib.infra.programs.executables import Executable, Executables
    from toolcrib.infra.sandbox.jobs import WorkspacePolicy
    from toolcrib.lib.templates import Place
    from toolcrib.model.tool import Script, Tool

COMMAND = "command"
ARGUMENTS = "args"
VARIABLES = "env"
FOLDER = "cwd"
INPUT = "stdin"
STREAM = "stream"
FUNCTION = "function"
# What a runtime may name in its words.
TOOL_PATH, PARAMS_JSON, PROJECT_PATH = "tool_path", "params_json", "project_path"
SHELL = "shell"
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
END_OF_OPTIONS = "--"
CODE_OPTION = re.compile(r"[-+][A-Za-z]*c[A-Za-z]*")
SH = "/bin/sh"
CALLS = "rye.execute"
# What the primitive itself works with, like the shell tool: the files of the workspace.
PRIMITIVE_CAPABILITIES = frozenset({PROGRAMS, READ, WRITE})
# The interpreter of a file without a shebang line.
INTERPRETERS = {"python": "python", "javascript": "node", "bash": "bash"}

NEIGHBOURS = Path(neighbours.__file__)
# `-c` and `-m` name code instead of a file.
_PYTHON_CODE = re.compile(r"-[A-Za-z]*[cm]")
_QUOTES = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?P<open>['"])""", re.DOTALL)


class Programs:
    """Makes the jobs of programs."""

    def __init__(self, commands: Executables, workspace_policy: WorkspacePolicy, *, observe: bool = False) -> None:
        self._commands = commands
        self._workspace_policy = workspace_policy
        self._observe = observe

    def job(self, order: Order) -> Program:
        """The program of an order; raises ToolError for what cannot be started."""
        if order.is_primitive:
            return self._called_directly(order)
        _refuse_unlisted_command(order)
        if order.run.script is not None:
            refuse_changed_script(order.run.script)
        slots = Slots(order)
        if _runs_shell(order):
            return self._with_shell(order, slots)
        found = self._starter(order, slots)
        if found.program in SHELLS:
            refuse_spliced_code(order.chain.config.get(ARGUMENTS))
        words = [*slots.words(COMMAND)[1:], *self._arguments(order, slots, found)]
        line = slots.line() if not names_the_file(order) else Words(words=(), stdin=slots.stdin())
        argv = [found.argv[0], *self._node_options(order, found), *found.argv[1:], *words, *line.words]
        if found.program.startswith("python"):
            argv = _with_neighbours_last(argv)
        return self._program(order, slots, argv, found, line.stdin)

    def _called_directly(self, order: Order) -> Program:
        """The primitive called by its own name: the caller gives everything, and slots are not filled."""
        given = order.arguments
        folder = inside(
            self._workspace_policy.workspace, str(given.get("cwd", "")), (self._workspace_policy.workspace,)
        )
        found = self._commands.find(str(given["command"]), folder)
        own, words = given.get("env"), given.get("args")
        variables = check_variables(own if isinstance(own, dict) else {})
        argv = (*found.argv, *(str(word) for word in (words if isinstance(words, list) else [])))
        environment = {**CLEAN_ENVIRONMENT, **variables}
        check_words([*argv, *environment.values()], order.tool.name)
        policy = build_policy(PRIMITIVE_CAPABILITIES, self._workspace_policy, found.runtime, observe=self._observe)
        return Program(argv=argv, cwd=folder, environment=environment, policy=policy)

    def _with_shell(self, order: Order, slots: Slots) -> Program:
        line, values = slots.command_line()
        words = [
            *slots.arguments(order.chain.config.get(ARGUMENTS)),
            *spell(slots.unmentioned(more=(COMMAND,)), order.run.action),
        ]
        behind = "".join(f' "${{{number}}}"' for number in range(len(values) + 1, len(values) + len(words) + 1))
        return self._program(order, slots, [SH, "-c", f"{line}{behind}", "sh", *values, *words], None, slots.stdin())

    def _starter(self, order: Order, slots: Slots) -> Executable:
        """What is started: the command of the nearest element that names one, seen from where that element lies."""
        folder = order.run.folder
        words, script = slots.words(COMMAND), order.run.script
        if not words:
            return self._by_language(order.tool, script)
        owner = next(element for element in order.chain.elements if COMMAND in chained(element).config)
        found = self._commands.find(words[0], chained(owner).folder if "/" in words[0] else folder)
        return found if script is None else self._with_types(script, found)

    def _with_types(self, script: Script, found: Executable) -> Executable:
        """For TypeScript a Node that runs it, if there is one."""
        if not node_runtime.is_node(found) or not node_runtime.is_too_old_for(script, found.argv[0]):
            return found
        packaged = self._commands.packaged_node()
        return found if packaged is None or node_runtime.is_too_old_for(script, packaged.argv[0]) else packaged

    def _by_language(self, tool: Tool, script: Script | None) -> Executable:
        command = "" if script is None else INTERPRETERS.get(script.language, "")
        if script is None or not command:
            raise ToolError(Kind.VALIDATION, f"{tool.name}: nothing says what to start; write config: {{command: …}}")
        return self._commands.find(command, script.path.parent)

    def _arguments(self, order: Order, slots: Slots, found: Executable) -> list[str]:
        """What follows the command: those of the executor that names the command, the file, and then the tool's own."""
        script, own = order.run.script, order.run.config
        if script is None:
            return slots.arguments(order.chain.config.get(ARGUMENTS))
        namers = order.chain.elements if COMMAND in own else order.chain.elements[1:]
        written = (
            config[ARGUMENTS] for config in (chained(element).config for element in namers) if ARGUMENTS in config
        )
        runtime_words = next(written, None)
        if names_the_file(order):
            return slots.runtime_words(runtime_words, script, self._workspace_policy.workspace)
        before = slots.options(runtime_words)
        behind = [] if COMMAND in own else slots.arguments(own.get(ARGUMENTS))
        is_misread = (
            len(found.argv) == 1 and node_runtime.is_node(found) and node_runtime.needs_commonjs(script, self._commands)
        )
        if is_node_function(script):
            return [*before, str(node_runtime.FUNCTION), str(script.path), script.entry]
        return [*before, *([str(node_runtime.COMMONJS)] if is_misread else []), str(script.path), *behind]

    def _node_options(self, order: Order, found: Executable) -> list[str]:
        if not node_runtime.is_node(found):
            return []
        script = order.run.script
        if has_network(order.tool.requires) and script is not None:
            has_packages = node_runtime.has_packages(self._commands.near(order.run.folder))
            refuse_without_proxy(order.tool.name, (script.code,), found.argv[0], has_packages=has_packages)
        typed = [] if script is None else node_runtime.type_options(script, found.argv[0])
        return [*typed, *node_runtime.options(self._workspace_policy.memory_bytes, rye=True)]

    def _program(
        self, order: Order, slots: Slots, argv: list[str], found: Executable | None, stdin: str | None
    ) -> Program:
        folder, workspace, script = order.run.folder, self._workspace_policy.workspace, order.run.script
        near = self._commands.near(folder)
        environment = {
            **slots.read_by_file(),
            **basic_variables(order.tool.requires, self._workspace_policy),
            "PATH": search_path(argv[0], near),
            **(node_runtime.ENVIRONMENT if found is not None and node_runtime.is_node(found) else {}),
            **slots.variables(),
        }
        check_words([*argv, *environment.values()], order.tool.name)
        # Executors of our own have no folder.
        homes = [chained(element).folder for element in order.chain.elements if not is_ours(element)]
        seen = (*homes, *(() if found is None else found.runtime), *near, *node_runtime.FILES, NEIGHBOURS)
        return Program(
            argv=tuple(argv),
            cwd=inside(folder, slots.folder(), (folder, workspace)),
            environment=environment,
            policy=build_policy(
                order.tool.requires, self._workspace_policy, seen, hidden=order.hidden, observe=self._observe
            ),
            channel=CALLS in order.tool.requires,
            files={} if script is None else {script.path.absolute(): script.code},
            stdin=stdin,
        )


class Slots:
    """Fills what the authors of one order configured; the caller's values go where a slot is and nowhere else."""

    def __init__(self, order: Order) -> None:
        properties = order.tool.parameters.get("properties")
        declared = properties if isinstance(properties, dict) else {}
        self._order = order
        self._config = order.chain.config
        self._declared = frozenset(declared)
        self._lookup = look_up_in(declared, order.arguments, order.values)

    def words(self, key: str) -> list[str]:
        """A list of words, or one word, without slots: the caller never chooses the program."""
        written = self._config.get(key)
        if written is None:
            return []
        words = written if isinstance(written, list) else [written]
        if not words or not all(isinstance(word, str) and word for word in words):
            raise ToolError(Kind.VALIDATION, f"config.{key}: write a word, or a list of words")
        return [str(word) for word in words]

    def arguments(self, written: object) -> list[str]:
        """A list of words, each slot filled; a value stays a value, also where it begins with a dash."""
        words: list[str] = []
        skipped = ""
        for template in _list_of_words(written):
            if self._is_left_out(template):
                skipped = skipped or str(template)
                continue
            if skipped:
                message = f"config.args: {template} follows {skipped}, which was not given; give a value for it too"
                raise ToolError(Kind.VALIDATION, message)
            word = as_text(self._fill(ARGUMENTS, template))
            if word.startswith("-") and _begins_with_slot(template) and END_OF_OPTIONS not in words:
                message = (
                    f"config.args: the value of {template} begins with '-' and would be taken for an option; give another, "
                    f"or let the author write it as --name={template}, or put {END_OF_OPTIONS} before it"
                )
                raise ToolError(Kind.VALIDATION, message)
            words.append(word)
        return words

    def options(self, written: object) -> list[str]:
        """A list of words that stand before a file; none of them is the caller's, or another file could run instead."""
        for template in _list_of_words(written):
            if _begins_with_slot(template):
                message = (
                    f"config.args: {template} would stand where the file to run stands; write it as --name={template}"
                )
                raise ToolError(Kind.VALIDATION, message)
        return self.arguments(written)

    def runtime_words(self, written: object, script: Script, project: Path) -> list[str]:
        """The words of a runtime that says itself where the file and the arguments stand; the caller's own slots do not count."""
        known = {
            **self._order.values,
            TOOL_PATH: str(script.path),
            PARAMS_JSON: json.dumps(dict(self._order.arguments), ensure_ascii=False),
            PROJECT_PATH: str(project),
        }
        lookup = look_up_in((), {}, known)
        words = (compile_template(word).render(lookup, self._order.variable) for word in _list_of_words(written))
        return [as_text(word) for word in words]

    def variables(self) -> dict[str, str]:
        """The variables of `env`."""
        filled = self._fill(VARIABLES, self._config.get(VARIABLES, {}))
        return check_variables(filled if isinstance(filled, dict) else {})

    def read_by_file(self) -> dict[str, str]:
        """The variables that the file names, as far as the operator granted them to the tool."""
        return {name: value for name in self._order.variables if (value := self._order.variable(name))}

    def folder(self) -> str:
        """The working folder, relative to the tool's own folder."""
        return as_text(self._fill(FOLDER, self._config.get(FOLDER, "")))

    def command_line(self) -> tuple[str, list[str]]:
        """The command line with a parameter of the shell for each slot, and the values of those parameters.

        The shell therefore never reads a value as code.
        """
        written = self._config.get(COMMAND)
        if not isinstance(written, str) or not written.strip():
            raise ToolError(Kind.VALIDATION, "config.command: with shell: true, write a command line")
        values: list[str] = []

        def as_parameter(value: object, before: str) -> str:
            if _is_inside_quotes(before):
                message = "config.command: write slots without quotes around them; each becomes one word by itself"
                raise ToolError(Kind.VALIDATION, message)
            values.append(as_text(value))
            return f'"${{{len(values)}}}"'

        # With the blank no slot stands alone, so that each goes through the function above.
        line = self._fill(COMMAND, f"{written} ", as_parameter)
        return str(line).rstrip(" "), values

    def stdin(self) -> str | None:
        """What the author configured as standard input; None for none, also if it is an argument that was not given."""
        written = self._config.get(INPUT)
        if written is None or self._is_left_out(written):
            return None
        return check_stdin(as_text(self._fill(INPUT, written)))

    def line(self) -> Words:
        """The words after the file, and standard input: as the program was read to take them, else as options."""
        order = self._order
        if order.run.script is not None and is_node_function(order.run.script):
            how = order.run.config.get(FUNCTION)
            call = {
                **(how if isinstance(how, dict) else {}),
                "arguments": dict(order.arguments),
                "streams": order.streams,
                "joinsText": joins_text(order.tool.output_schema),
            }
            return Words(words=(), stdin=check_stdin(json.dumps(call, ensure_ascii=False)))
        described = order.run.config.get(COMMAND_LINE)
        if isinstance(described, dict):
            return command_words(described, self.unmentioned(), self._order.run.action)
        return Words(words=tuple(spell(self.unmentioned(), self._order.run.action)), stdin=self.stdin())

    def _is_left_out(self, template: object) -> bool:
        """Whether it is nothing but a slot for an argument that was not given."""
        document = compile_template(template).document
        slot = document.sole if isinstance(document, Text) else None
        return isinstance(slot, Name) and slot.name in self._declared and slot.name not in self._order.arguments

    def unmentioned(self, *, more: tuple[str, ...] = ()) -> dict[str, object]:
        """The arguments that no slot uses."""
        keys = (ARGUMENTS, VARIABLES, FOLDER, INPUT, *more)
        mentioned = compile_template({key: self._config.get(key) for key in keys}).names
        return {name: value for name, value in self._order.arguments.items() if name not in mentioned}

    def _fill(self, key: str, written: object, place: Place | None = None) -> object:
        template = compile_template(written)
        try:
            if place is None:
                return template.render(self._lookup, self._order.variable)
            return template.render(self._lookup, self._order.variable, place)
        except ToolError as error:
            if error.kind is not Kind.VALIDATION or error.message.startswith("config."):
                raise
            raise error.replace(reason=f"config.{key}: {error.reason}") from None


def names_the_file(order: Order) -> bool:
    """Whether the runtime that starts the file says in its words where the file stands."""
    if order.run.script is None or COMMAND in order.run.config or is_node_function(order.run.script):
        return False
    configs = (chained(element).config for element in order.chain.elements[1:])
    first = next((config for config in configs if ARGUMENTS in config or COMMAND in config), {})
    written = first.get(ARGUMENTS)
    words = written if isinstance(written, list) else []
    return any(TOOL_PATH in compile_template(word).names for word in words if isinstance(word, str))


def is_node_function(script: Script) -> bool:
    """Whether a function of a JavaScript file is called, and the file is not started as a program."""
    return script.language == "javascript" and script.convention is not Convention.ARGV


def check_variables(variables: Mapping[str, object]) -> dict[str, str]:
    """The variables as text; refuses a name that no environment has."""
    for name in variables:
        if VARIABLE_NAME.fullmatch(name) is None:
            raise ToolError(
                Kind.VALIDATION, f"env: {name[:80]!r} is not a name of a variable; use letters, digits and '_'"
            )
    return {name: as_text(value) for name, value in variables.items()}


def refuse_spliced_code(written: object) -> None:
    """Refuse a value in the middle of code for a shell, where it would be read as code too."""
    for option, template in pairwise(_list_of_words(written)):
        document = compile_template(template).document
        is_code = isinstance(option, str) and CODE_OPTION.fullmatch(option) is not None
        if is_code and isinstance(document, Text) and document.sole is None:
            message = "config.args: a value in code for a shell would be read as code; write config: {command: …, shell: true}"
            raise ToolError(Kind.VALIDATION, message)


def inside(base: Path, written: str, allowed: Iterable[Path]) -> Path:
    """The folder that `written` means, seen from `base`; refuses one outside the allowed ones, links followed."""
    try:
        folder = (base / written).resolve()
        is_folder = folder.is_dir()
        is_inside = any(folder.is_relative_to(place.resolve()) for place in allowed)
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links, a name too long, a NUL
        raise ToolError(
            Kind.VALIDATION, f"cwd {written[:200]!r} is not the name of a folder; write a path"
        ) from problem
    if not is_inside:
        raise ToolError(Kind.BLOCKED, f"cwd {written[:200]!r} is outside the workspace; write a path inside it")
    if not is_folder:
        raise ToolError(Kind.NOT_FOUND, f"cwd {written[:200]!r} is not a folder")
    return folder


def _with_neighbours_last(argv: list[str]) -> list[str]:
    """The words that start a Python file, which then finds what is installed before the files beside it."""
    words = enumerate(argv[1:], 1)
    place = next((place for place, word in words if word.endswith(".py") or _PYTHON_CODE.match(word)), 0)
    return [*argv[:place], str(NEIGHBOURS), *argv[place:]] if argv[place].endswith(".py") else argv


def _list_of_words(written: object) -> list[object]:
    if written is None:
        return []
    if not isinstance(written, list) or any(isinstance(word, dict | list) for word in written):
        raise ToolError(Kind.VALIDATION, "config.args: write a list of words")
    return written


def _begins_with_slot(template: object) -> bool:
    document = compile_template(template).document
    return isinstance(document, Text) and not document.head


def _is_inside_quotes(before: str) -> bool:
    return any(found["open"] for found in _QUOTES.finditer(before))


def _runs_shell(order: Order) -> bool:
    """Whether the tool itself, and not a runtime, asks for a shell: the rules that screen it look there too."""
    wanted = order.run.config.get(SHELL, False)
    if not isinstance(wanted, bool):
        raise ToolError(Kind.VALIDATION, "config.shell: write true or false")
    return wanted


def _refuse_unlisted_command(order: Order) -> None:
    """Refuse a tool with a command of its own that does not require shell.execute; a runtime may bring the command."""
    starts_own = order.run.kind != RUNTIME and (COMMAND in order.run.config or order.run.config.get(SHELL) is True)
    if starts_own and PROGRAMS not in order.tool.requires:
        message = f"{order.tool.name} starts a command of its own; list {PROGRAMS} in its requires"
        raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [PROGRAMS]})
