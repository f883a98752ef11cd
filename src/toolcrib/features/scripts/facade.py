"""What a Crib does with scripts besides calling them: check their chains, install what they need, open sinks."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import LIBRARY, SINK, resolve
from toolcrib.features.scripts.program_files import why_ignored
from toolcrib.features.scripts.sink import open_sink
from toolcrib.infra.files import is_tool_folder, list_files, read_beginning
from toolcrib.infra.programs.code_parts import shadow_of
from toolcrib.infra.sandbox.environments import prepare, read_requirements
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, PROXY_VARIABLES, READ, WRITE
from toolcrib.infra.settings import GIVEN_TO_TOOLS, WORKSPACE
from toolcrib.lib.environment_reads import needed_variables
from toolcrib.lib.javascript_program import needed_packages
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Handler, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.features.scripts.sink import Sink
    from toolcrib.infra.sandbox.jobs import Interpreter
    from toolcrib.model.tool import Entry, Tool

PYTHON = "python"
JAVASCRIPT = "javascript"
# Modules that the sandbox itself gives to files.
GIVEN_MODULES = frozenset({"rye", "toolcrib"})
# A variable of the host or a secret in a template, without a default.
VARIABLE = re.compile(r"\$\{(?:(?:env|secret):)?([A-Z][A-Z0-9_]*)\}")
# What every process of a tool has, or the system and the shell set themselves.
GIVEN = frozenset({*CLEAN_ENVIRONMENT, *PROXY_VARIABLES, *GIVEN_TO_TOOLS, "HOME", "PWD", "TMPDIR"})
PACKAGE = "it is a package, so its files are helpers; without its __init__.py they are tools of a bundle"
# The capabilities with which a tool gets the variable of the workspace.
FILES = frozenset({READ, WRITE})
FILE_NAME = re.compile(r"[\w.-]+")
MAX_READ = 64_000
OURS = frozenset({"tool_registry.json"})


class Scripts:
    """The scripts of one Crib."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def chain_problem(self, tool: Tool) -> str:
        """Why the executor chain of the tool does not reach a primitive; empty if it does."""
        if not isinstance(tool.run, Chained) or tool.kind in {LIBRARY, SINK}:
            return ""
        try:
            resolve(tool, self._resources.find_below)
        except ToolError as problem:
            return problem.message
        return ""

    def prepare(self, tool: Tool, say: Callable[[str], None] | None) -> Path | None:
        """Install the dependencies of a Python file; returns the interpreter that has them, None if it declares none."""
        path, code, packages = _python_file(tool)
        environments = self._resources.get("environments")
        if environments is None:
            message = "there is no folder outside of the project to install into; set HOME or XDG_CACHE_HOME"
            raise ToolError(Kind.VALIDATION, message)
        # As a call finds its Python: not where authors and tools can write.
        search_path = self._resources.get("host_commands").trusted_path
        return prepare(path, code, envs=environments, search_path=search_path, progress=say, packages=packages)

    def warnings(self, tool: Tool) -> list[str]:
        """A warning if other files cannot import the file of a tool by its name."""
        shadow = "" if tool.script is None else shadow_of(tool.script.path)
        return [shadow] if shadow else []

    def missing(self, tool: Tool) -> list[str]:
        """What the file of a tool needs and does not have, each with the command or the setting that provides it."""
        run = tool.run.script if isinstance(tool.run, Chained) else tool.run
        found: list[str] = []
        if isinstance(run, Script | Handler) and run.language == PYTHON:
            if not self._has_packages(tool):
                found.append(f"packages that are not installed; run: crib prepare {tool.name}")
            found += self.missing_imports(tool)
        if isinstance(run, Script) and run.language == JAVASCRIPT:
            found += self._missing_packages(run)
        if (
            isinstance(run, Script)
            and WORKSPACE in needed_variables(run.code, run.language)
            and not tool.requires & FILES
        ):
            found.append("fs.read in its requires, without which it sees no file of the project")
        for name in sorted(_variables(tool, run)):
            if not self._resources.variable(tool, name):
                word = self._resources.variable_word(tool, name)
                cure = f'set it, or run: crib secret set {name}; and add "{word}" to access.variables in toolcrib.toml'
                found.append(f"the variable or secret {name}; {cure}")
        return found

    def missing_imports(self, tool: Tool) -> list[str]:
        """The modules that a Python file imports and that are neither installed for our own Python nor beside the file.

        Empty for a file that runs with another Python, whose packages are not checked.
        """
        run = tool.script
        if run is None or run.language != PYTHON or run.packages or read_requirements(run.path, run.code):
            return []
        if self._interpreter_of(tool) is not None:
            return []
        near = {run.path.parent, *run.path.parent.parents[:2], self._resources.settings.workspace}
        missing = [
            name for name in dict.fromkeys(each.partition(".")[0] for each in run.imports) if not _is_there(name, near)
        ]
        cure = f"declare its package in a block '# /// script' of the file, then run: crib prepare {tool.name}"
        return [f"the Python module {name}, which is not installed for it; {cure}" for name in missing]

    def _missing_packages(self, script: Script) -> list[str]:
        """The packages of Node that a file imports and that no node_modules has from its folder up to the project."""
        names = needed_packages(script.code.decode("utf-8", "replace"))
        folders = self._resources.get("host_commands").folders(script.path.parent) if names else ()
        return [
            f"the Node package {name}, which is not installed near it; run: npm install {name}"
            for name in names
            if name not in GIVEN_MODULES and not any((folder / "node_modules" / name).is_dir() for folder in folders)
        ]

    def _interpreter_of(self, tool: Tool) -> Interpreter | None:
        """The Python that a call would run the file with, None for our own; raises ToolError as the call would."""
        path, code, packages = _python_file(tool)
        commands, environments = self._resources.get("host_commands"), self._resources.get("environments")
        return commands.python_for(  # type: ignore[no-any-return]  # so it is registered
            path, code, environments=environments, name=tool.name, packages=packages
        )

    def _has_packages(self, tool: Tool) -> bool:
        """Whether what a Python file declares is installed, or, where it declares nothing, what its framework needs."""
        try:
            interpreter = self._interpreter_of(tool)
        except ToolError as problem:
            if problem.kind is Kind.EXECUTOR_NOT_FOUND:
                return False
            raise
        return interpreter is not None or all(map(_is_installed, _python_file(tool)[2]))

    def ignored_files(self, tools: Iterable[Tool], problems: Iterable[ToolError]) -> list[str]:
        """Files and packages in the folders of tools that hold no tool and that no tool uses, each with the reason."""
        found: list[str] = []
        places = [problem.message for problem in problems]
        used: set[tuple[Path, str]] = set()
        for tool in tools:
            places.append(str(tool.origin))
            used.update(_used_by(tool))
        for top in self._resources.tool_folders():
            listing = list_files(top, self._resources.package_marks)
            for path in (top / name for name in sorted(listing.files | listing.packages)):
                # Problems name files from the project's root, tools by their whole path.
                spellings = (str(path), self._from_root(path))
                is_seen = any(
                    place.startswith((f"{one}:", f"{one}/")) or place == one for place in places for one in spellings
                )
                if is_seen or path.name in OURS or (path.parent, path.name) in used or is_tool_folder(path):
                    continue
                reason = PACKAGE if path.is_dir() else why_ignored(path, read_beginning(path, MAX_READ) or b"")
                found.append(f"{spellings[1]}: {reason}")
        return found

    def _from_root(self, path: Path) -> str:
        root = self._resources.settings.root
        return str(path.relative_to(root)) if root is not None and path.is_relative_to(root) else str(path)

    def open_sink(self, entry: Entry, arguments: Mapping[str, object]) -> AbstractAsyncContextManager[Sink]:
        """Open a sink to write events to."""
        if not entry.enabled:
            raise ToolError(Kind.DISABLED, f"{entry.tool.name} is disabled: {entry.reason}")
        resources = self._resources
        return open_sink(
            entry.tool,
            arguments,
            sandbox=resources.get("sandbox"),
            workspace_policy=resources.get("workspace_policy"),
            jail=resources.get("jail"),
            egress=lambda: resources.get("egress"),
            grants=resources.grants,
            variables=resources.get("granted_variables"),
            hidden=resources.get("origins").hidden_from(entry.tool),
        )


def _used_by(tool: Tool) -> Iterator[tuple[Path, str]]:
    """The words in the code and the config of a tool, each of which may be the name of a file beside it."""
    chain = tool.run if isinstance(tool.run, Chained) else None
    script = tool.run if chain is None else chain.script
    words = FILE_NAME.findall(json.dumps(chain.config, default=str)) if chain is not None else []
    if isinstance(script, Script):
        words += FILE_NAME.findall(script.code.decode("utf-8", "replace"))
        yield from ((script.path.parent, word) for word in words)
    elif chain is not None:
        yield from ((chain.folder, word) for word in words)


def _python_file(tool: Tool) -> tuple[Path, bytes, tuple[str, ...]]:
    """The path and the code of a Python tool, and what it needs where it does not say so."""
    script, run = tool.script, tool.run
    if script is not None and script.language == PYTHON:
        return script.path, script.code, script.packages
    if isinstance(run, Handler) and run.language == PYTHON:
        return run.root.absolute() / run.path, run.files[run.path], ()
    raise ToolError(Kind.VALIDATION, f"{tool.name} is not a Python file; only Python files declare dependencies")


def _variables(tool: Tool, run: object) -> set[str]:
    """The variables that the config of a tool names, and those that its file reads and cannot do without."""
    config = tool.run.config if isinstance(tool.run, Chained) else {}
    named = set(VARIABLE.findall(json.dumps(config, default=str)))
    if isinstance(run, Handler):
        return named.union(*(needed_variables(code, run.language) for code in run.contents.values())) - {*GIVEN}
    if not isinstance(run, Script):
        return named
    own = config.get("env")
    given = {*GIVEN, *(own if isinstance(own, dict | list) else ())}
    return named | (set(needed_variables(run.code, run.language)) - given)


def _is_there(module: str, folders: Collection[Path]) -> bool:
    """Whether a module of this name can be imported: ours, of the standard library, installed, or beside the file."""
    if module in GIVEN_MODULES or module in sys.stdlib_module_names or find_spec(module) is not None:
        return True
    return any((folder / f"{module}.py").exists() or (folder / module).is_dir() for folder in folders)


def _is_installed(requirement: str) -> bool:
    """Whether a package that is imported by the name it is installed by is there for our own Python."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return find_spec(name.replace("-", "_").partition(".")[0]) is not None
