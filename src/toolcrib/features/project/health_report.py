"""Report versions, folders, settings, sandbox and obstacles of tools, for `crib check`, `crib doctor` and the screen Health."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from toolcrib.core.catalog import CatalogSettings
from toolcrib.infra.files.protected_files import ProtectedFiles
from toolcrib.infra.settings import BY_DEFAULT, DATA_FOLDER, FILE_NAME, WorkspaceSettings
from toolcrib.lib import __version__
from toolcrib.lib.protected_names import ASKED, CLOSED, FIXED, TABLE
from toolcrib.lib.redaction import hide_secrets
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.tool_facts import DescribedCrib, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.settings import Settings
    from toolcrib.model.tool import Entry, Tool

ACCESS = {
    CLOSED: "neither read nor written",
    FIXED: "never written",
    ASKED: "written if confirmed, never by files of code",
}
NEEDED_TO_WRITE = ("mounts", "landlock", "seccomp")
# How many tools are named that have the same problem.
NAMED = 5


class ReportedCrib(Protocol):
    """What a report uses of a crib."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def caller(self) -> str:
        """Who calls."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Every tool."""


class CheckedCrib(DescribedCrib, Protocol):
    """What the report about tools uses of a crib."""

    @property
    def problems(self) -> list[ToolError]:
        """What could not be loaded, and why."""

    def problems_of(self, tool: Tool) -> list[str]:
        """Why a call of the tool would fail here."""

    def obstacles(self, tool: Tool) -> list[str]:
        """What keeps the tool from running on this machine."""


def find_obstacles(crib: CheckedCrib, entries: Iterable[Entry]) -> dict[str, list[Tool]]:
    """What keeps tools from being called here, each with its cure and the tools concerned; disabled tools are left out."""
    found: dict[str, list[Tool]] = {}
    for entry in entries:
        tool = entry.tool
        messages = (crib.problems_of(tool) or crib.obstacles(tool)) if entry.enabled else []
        # A tool that lacks nothing else is not offered to models, which is no problem.
        if messages and (ungranted := crib.grants.missing(tool)):
            messages = [*messages, crib.grants.refusal(tool, ungranted).message]
        for message in messages:
            found.setdefault(message, []).append(tool)
    return found


def list_problems(crib: CheckedCrib, entries: Iterable[Entry]) -> list[str]:
    """Every problem on a line of its own: one file may have several, and one problem may be that of several tools."""
    problems = [problem.message for problem in crib.problems]
    for message, tools in find_obstacles(crib, entries).items():
        places = [place_of(crib, tool) or tool.address for tool in tools]
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        place = ", ".join(dict.fromkeys(places[:NAMED])) + more
        problems.append(message if message.startswith(f"{place}:") else f"{place}: {message}")
    return [line for problem in problems for line in problem.splitlines()]


def protected_names(settings: Settings, sandbox: Mapping[str, Mapping[str, object]]) -> dict[str, list[str]]:
    """Protected names, those that Git's settings add, those that the operator opened, and whether the sandbox can enforce them here.

    It searches the workspace, so a server calls it in a thread.
    """
    closed = {ACCESS[access]: list(names) for access, names in TABLE.items()}
    layers = str(sandbox["plain"]["layers"])
    missing = [layer for layer in NEEDED_TO_WRITE if layer not in layers]
    held = [f"by {layer}" for layer in NEEDED_TO_WRITE] if not missing else [f"no {layer}" for layer in missing]
    return {
        **closed,
        "named by settings of git, by PATH or by links to secrets, never written": _named_by_git(settings),
        "opened by workspace.open": list(settings.table(WorkspaceSettings).open) or ["nothing"],
        "fs.write of files of code is" + (" refused" if missing else " held"): held,
    }


def _named_by_git(settings: Settings) -> list[str]:
    try:
        found = ProtectedFiles(settings.workspace, settings.table(WorkspaceSettings).open).find_git_paths()
    except ToolError as problem:
        return [problem.message]
    return ["." if path == "/" else path for path in found] or ["nothing"]


def about(crib: ReportedCrib) -> Iterator[tuple[str, str]]:
    """Versions, folders, and how many tools there are."""
    root = crib.settings.root or Path()
    yield "toolcrib", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    yield "caller", crib.caller
    yield "project", str(root)
    yield "workspace", str(crib.settings.workspace)
    yield "settings file", _existing(root / FILE_NAME)
    for folder in crib.settings.table(CatalogSettings).folders:
        yield f"tools in {folder}", _existing(root / folder)
    yield "own data", _existing(crib.settings.data or root / DATA_FOLDER)
    yield "tools", str(len(crib.tools))


def _existing(path: Path) -> str:
    return str(path) if path.exists() else f"{path} (not there)"


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingLine:
    """A setting as it is shown."""

    name: str
    value: object
    where: str
    about: str


def setting_lines(settings: Settings) -> Iterator[SettingLine]:
    """Every setting in force, of every table that is registered."""
    for table, declaration in settings.tables.items():
        for key, value in settings[table].values.items():
            name = declaration.name_of(key)
            where = settings.places.get(name, BY_DEFAULT)
            yield SettingLine(name=name, value=_plain(value), where=where, about=declaration.find(key).summary)


def _plain(value: object) -> object:
    """A setting as a JSON value."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [asdict(item) if is_dataclass(item) and not isinstance(item, type) else item for item in value]
    if isinstance(value, dict):
        return hide_secrets(value)  # a map may hold what the operator should have stored as a secret
    return str(value) if isinstance(value, Path) else value
