"""The entry of the command line: dispatch the command, open cribs on demand, and turn errors into exit codes.

Modules are loaded lazily here, so that `crib call` loads neither Click nor other commands.
"""

from __future__ import annotations

import os
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
    from collections.abc import Iterable, Sequence
    from typing import Self

    from toolcrib.client.remote_crib import RemoteCrib
    from toolcrib.core.client_protocol import AnyCrib, CallingCrib
    from toolcrib.crib import Crib
    from toolcrib.model.protocols import Journal
    from toolcrib.model.tool import Tool


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
        found: Path = (
            load("toolcrib.interfaces.cli.open_crib:find_here")() if self.project is None else Path(self.project)
        )
        return found

    def open_local(
        self,
        *,
        grants: Iterable[str] = (),
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> Crib:
        """The crib of the project; without a project, one that stores nothing on disk."""
        crib: Crib = load("toolcrib.interfaces.cli.open_crib:open_crib")(
            self.project, grants=grants, tools=tools, observe=observe, journal=journal
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
        crib = self.open_local(grants=grants, tools=tools, observe=observe)
        opened: CallingCrib = load("toolcrib.interfaces.cli.open_crib:LocalCalls")(crib)
        return opened

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
