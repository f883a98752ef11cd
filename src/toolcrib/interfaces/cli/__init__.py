"""The command line: its entry, which opens cribs on demand and turns errors into exit codes, and the commands of no feature.

Modules are loaded lazily here, so that `crib call` loads neither Click nor other commands.
"""

from __future__ import annotations

import os
import pwd
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.lib.lazy import load
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.toolkit.cli import (
    ExitCode,
    WrongUseError,
    code_of_error,
    complain,
    complain_about,
    require_project,
)
from toolcrib.toolkit.cli.options import wants_help

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from toolcrib.client.remote_crib import RemoteCrib
    from toolcrib.core.plugins import Plugins
    from toolcrib.crib import Crib
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Explanation, Result
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.client_protocol import AnyCrib, CallingCrib


def register(plugins: Plugins) -> None:
    """Add the commands that find, call and check tools, and those around a project."""
    plugins.add_command("list", "toolcrib.interfaces.cli.commands:list_", "List the tools.")
    plugins.add_command("show", "toolcrib.interfaces.cli.commands:show", "Show everything about a tool.")
    plugins.add_command("call", "toolcrib.interfaces.cli.commands:call", "Call a tool.")
    plugins.add_command("explain", "toolcrib.interfaces.cli.commands:explain", "Explain why a call would run or not.")
    plugins.add_command("run", "toolcrib.interfaces.cli.commands:run_file", "List or call the tools of a Python file.")
    plugins.add_command("result", "toolcrib.interfaces.cli.commands:result", "Print the rest of a large result.")
    plugins.add_command("help", "toolcrib.interfaces.cli.program:help_", "Show how a command is used.")
    plugins.add_command("version", "toolcrib.interfaces.cli.commands:version", "Print the version.")
    plugins.add_command(
        "completion", "toolcrib.interfaces.cli.program:completion", "Print the completion script of a shell."
    )
    plugins.add_command(
        "init", "toolcrib.interfaces.cli.project_commands:init", "Write a project with a first tool and its test."
    )
    plugins.add_command(
        "check", "toolcrib.interfaces.cli.project_commands:check", "Report what is wrong with the tools."
    )
    plugins.add_command(
        "doctor", "toolcrib.interfaces.cli.project_commands:doctor", "Show versions, settings, sandbox and problems."
    )
    plugins.add_command(
        "costs", "toolcrib.interfaces.cli.project_commands:costs", "Sum up what the calls of this project cost."
    )
    plugins.add_command(
        "latency", "toolcrib.interfaces.cli.project_commands:latency", "Show how long the calls of this project took."
    )


def main(words: Sequence[str] | None = None, opening: object = None) -> int:
    """Run the command line on these words, by default those of the process; the exit code.

    `opening` is the connection of `crib mcp`, whose first request was answered before this was loaded.
    """
    try:
        code = _dispatch(sys.argv[1:] if words is None else words, opening)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()
        return ExitCode.READER_GONE
    except KeyboardInterrupt:
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except (WrongUseError, SettingsError) as problem:
        complain(str(problem))
        return ExitCode.WRONG_USE
    except ToolError as problem:
        complain_about(problem)
        return code_of_error(problem)
    except OSError as problem:
        complain(f"{problem.filename or 'output'}: {problem.strerror}")
        _give_up_stdout()
        return ExitCode.FAILED
    return code


@dataclass(frozen=True, slots=True)
class CribOpener:
    """Open the crib of a project, by default that of the current folder, or of a server."""

    project: str | None = None

    def in_folder(self, project: str) -> Self:
        """An opener for the named project folder."""
        return replace(self, project=project)

    @property
    def folder(self) -> Path:
        """The named project folder, else the project around the current folder, else the current folder."""
        return self._find_here() if self.project is None else Path(self.project)

    def open_local(
        self,
        *,
        grants: Iterable[str] = (),
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> Crib:
        """The crib of the project; without a project, one that stores nothing on disk."""
        folder = self.folder
        is_project: Callable[[Path], bool] = load("toolcrib.infra.settings:is_project")
        exists = self.project is not None or is_project(folder)
        crib: Crib = load("toolcrib.crib:Crib")(
            folder if exists else None,
            caller=name_caller(),
            tools=tools,
            given_by=load("toolcrib.infra.settings:COMMAND_LINE"),
            observe=observe,
            journal=journal,
            access={"grants": sorted(grants) or None},
            # Outside every project there are still the tools of the user.
            scripts=None if exists else {"folders": [load("toolcrib.infra.settings:USER_SCRIPTS")]},
        )
        return crib

    def open_folder(self, folder: Path, *, caller: str) -> Crib:
        """The crib of exactly this folder, even if another project was named."""
        crib: Crib = load("toolcrib.crib:Crib")(folder, caller=caller)
        return crib

    def open_calling(
        self, url: str | None, *, grants: Iterable[str] = (), tools: Iterable[Tool] = (), observe: bool = False
    ) -> CallingCrib:
        """The crib at the URL, else that of the project, to make calls."""
        if url is not None:
            return self._open_remote(url, grants)
        return LocalCalls(self.open_local(grants=grants, tools=tools, observe=observe))

    def open_any(self, url: str | None, *, grants: Iterable[str] = ()) -> AnyCrib:
        """The crib at the URL, else that of the project."""
        return self._open_remote(url, grants) if url is not None else _as_any(self.open_local(grants=grants))

    def open_durable(self, url: str | None) -> AnyCrib:
        """The same; refuses a crib that stores nothing on disk."""
        if url is not None:
            return self._open_remote(url)
        crib = self.open_local()
        require_project(crib.settings)
        return _as_any(crib)

    def _open_remote(self, url: str, grants: Iterable[str] = ()) -> RemoteCrib:
        if self.project is not None:
            raise WrongUseError("--url names a server, and --project a folder of this machine; leave one of them out")
        if frozenset(grants):
            raise WrongUseError(
                "--grant: what tools may use is set on the server of --url, in grants; leave --grant out"
            )
        token = os.environ.get(load("toolcrib.client.connection:TOKEN_VARIABLE"))
        try:
            crib: RemoteCrib = load("toolcrib.client.remote_crib:RemoteCrib")(url, token=token)
        except ToolError as problem:
            if problem.kind is Kind.VALIDATION:
                raise WrongUseError(f"--url: {problem.message}") from problem
            raise
        return crib

    def _find_here(self) -> Path:
        """The project around the current folder, else that folder."""
        found: Path = load("toolcrib.infra.settings:find_project")(
            Path.cwd(),
            lambda trusted, other: f"if you trust it, write: -C {trusted}, else: -C {other}",
            load("toolcrib.core.plugins:Plugins")().tables(),
        )
        return found


class LocalCalls:
    """A local crib behind the protocol of `crib call`."""

    url = ""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self.caller = crib.caller
        self.suggest = crib.suggest
        self.get_ready = crib.get_ready
        self.explain: Callable[[Call], Explanation] = crib.explain
        self.call_sync: Callable[[Call], Result] = crib.call_sync

    @property
    def problems(self) -> Sequence[ToolError]:
        """What could not be loaded, and why."""
        return self._crib.problems

    def parameters_of(self, name: str) -> Mapping[str, object]:
        """The schema of a tool's arguments; empty if there is no such tool."""
        entry = self._crib.find(name)
        return {} if entry is None else entry.tool.parameters

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._crib.__exit__(kind, problem, trace)


def _dispatch(words: Sequence[str], opening: object) -> int:
    """Run `crib call` and `crib mcp` by themselves, and every other command through Click."""
    if words[:1] == ["call"] and not wants_help(words):
        return int(load("toolcrib.interfaces.cli.call_command:call_command")(words[1:], CribOpener()))
    if opening is not None:
        opener = CribOpener(*words[2:])
        return int(load("toolcrib.interfaces.mcp.stdio_command:serve_project")(opener, opening))
    return int(load("toolcrib.interfaces.cli.program:run")(words, CribOpener()))


def _as_any(crib: Crib) -> AnyCrib:
    opened: AnyCrib = load("toolcrib.interfaces.cli.local_crib:LocalCrib")(crib)
    return opened


def _give_up_stdout() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def name_caller() -> str:
    """The user of the operating system, by uid: variables of the environment could be set by anyone."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
