"""The workspace as tools of ours see it, and the private addresses that tools may reach."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.infra.files.jail import Jail
from toolcrib.infra.sandbox.child.broker_files import RepositoryMarker
from toolcrib.infra.settings import FILE_NAME, WorkspaceSettings
from toolcrib.lib.protected_names import ASKED, FIXED, judge
from toolcrib.lib.sensitive_paths import is_sensitive
from toolcrib.model.errors import SettingsError, ToolError

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources

# A module that is imported from the project may import any file beside it, also one that does not exist yet.
CODE_ENDINGS = (".py", ".pyc", ".pyd", ".so", ".pth")


def open_jail(resources: Resources) -> Jail:
    """Open the workspace for operations of script files and sinks: no confirmation lets them write a protected name."""
    return _open(resources, frozenset({FIXED, ASKED}))


def open_confirmed_jail(resources: Resources) -> Jail:
    """Open the workspace for the built-in tools, whose calls a person confirms where a rule says so."""
    return _open(resources, frozenset({FIXED}))


def _open(resources: Resources, kept: frozenset[str]) -> Jail:
    """Open the workspace: sensitive files are hidden, protected paths and names of the `kept` kinds are read-only."""
    workspace, data = resources.settings.workspace, resources.data.path
    opened, mark = resources.settings.table(WorkspaceSettings).open, RepositoryMarker(str(workspace))
    files = resources.get("protected_files").below(workspace, opened)

    def is_kept(path: str, *, is_new_folder: bool = False) -> bool:
        hooks = files.find_git_paths_for(path)
        return judge(path, opened=opened, hooks=hooks, is_new_folder=is_new_folder, is_repository=mark) in kept

    return Jail(
        workspace,
        is_sensitive=partial(is_sensitive, root=str(workspace), opened=opened),
        is_fixed=is_kept,
        protected=[*([] if data is None else [data]), *resources.protected_paths()],
        # A Crib that starts in a subfolder obeys the settings there.
        protected_endings=(FILE_NAME, *(CODE_ENDINGS if resources.runs_host_modules else ())),
    )


def check_private_addresses(resources: Resources) -> None:
    """Raise SettingsError now for invalid addresses, which would otherwise only fail when a request is sent."""
    try:
        resources.get("egress")
    except ToolError as problem:
        raise SettingsError(f"{resources.settings.where('egress.private')}: {problem.message}") from problem
