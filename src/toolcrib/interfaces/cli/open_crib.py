"""Open the crib of a project on this machine, and name its caller."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.plugins import Plugins
from toolcrib.core.resources import DATA_FOLDER, PROJECT_SCRIPTS, USER_SCRIPTS
from toolcrib.crib import Crib
from toolcrib.infra.settings import COMMAND_LINE, FILE_NAME, find_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from toolcrib.model.call import Call
    from toolcrib.model.errors import ToolError
    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Explanation, Result
    from toolcrib.model.tool import Tool


def open_crib(
    project: str | None,
    *,
    grants: Iterable[str] = (),
    tools: Iterable[Tool] = (),
    observe: bool = False,
    journal: Journal | None = None,
) -> Crib:
    """The crib of the named folder, else of the project around the current one, else one that stores nothing on disk."""
    folder: Path | None = find_here() if project is None else Path(project)
    if project is None and folder is not None and not _is_project(folder):
        folder = None
    return Crib(
        folder,
        caller=name_caller(),
        tools=tools,
        given_by=COMMAND_LINE,
        observe=observe,
        journal=journal,
        access={"grants": sorted(grants) or None},
        # Outside every project there are still the tools of the user.
        scripts={"folders": [USER_SCRIPTS]} if folder is None else None,
    )


def find_here() -> Path:
    """The project around the current folder, else that folder."""
    return find_project(
        Path.cwd(),
        lambda trusted, other: f"if you trust it, write: -C {trusted}, else: -C {other}",
        Plugins().tables(),
    )


def name_caller() -> str:
    """The user of the operating system, by uid: variables of the environment could be set by anyone."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


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


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in (FILE_NAME, "tools", PROJECT_SCRIPTS, DATA_FOLDER))
