"""Which project is meant, who calls, and the Crib over both."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.crib import DATA_FOLDER, PROJECT_SCRIPTS, USER_SCRIPTS, Crib
from toolcrib.faces.cli.printing import complain
from toolcrib.ground.settings import COMMAND_LINE, FILE_NAME, opening_settings
from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.model.protocols import Journal
    from toolcrib.model.tool import Tool


def open_crib(
    project: str | None,
    *,
    grants: Iterable[str] = (),
    tools: Iterable[Tool] = (),
    observe: bool = False,
    journal: Journal | None = None,
) -> Crib:
    """The crib of the named folder, else of the project around the current one, else one that keeps nothing on disk."""
    folder: Path | None = find_project(Path.cwd()) if project is None else Path(project)
    if project is None and folder is not None and not _is_project(folder):
        folder = None
    return Crib(
        folder,
        caller=name_caller(),
        tools=tools,
        given_by=COMMAND_LINE,
        observe=observe,
        journal=journal,
        grants=sorted(grants) or None,
        # Outside every project there are still the tools of the user.
        scripts=[USER_SCRIPTS] if folder is None else None,
    )


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in (FILE_NAME, "tools", PROJECT_SCRIPTS, DATA_FOLDER))


def find_project(here: Path, owner_of: Callable[[Path], int] = lambda path: path.stat().st_uid) -> Path:
    """The nearest folder, from here upwards, that holds settings; else here.

    Settings may load code, so those of a folder further up count only if they are the caller's, root's or belong to the
    owner of this folder: anyone may put a file into a shared folder such as /tmp.
    """
    for folder in (here, *here.parents):
        file = folder / FILE_NAME
        if not file.is_file():
            continue
        _refuse_inside_another(folder)
        if folder != here and owner_of(file) not in {os.getuid(), 0, owner_of(here)}:
            raise SettingsError(f"{file} belongs to another user; if you trust it, write: -C {folder}, else: -C .")
        return folder
    return here


def _refuse_inside_another(folder: Path) -> None:
    """Settings within another project may have been written by the tools of that one, to be obeyed here."""
    outer = next((place for place in folder.parents if (place / FILE_NAME).is_file()), None)
    opens = [] if outer is None else opening_settings(folder / FILE_NAME)
    if opens:
        message = f"{folder / FILE_NAME} sets {opens[0]} inside the project {outer}, whose tools may have written it"
        raise SettingsError(f"{message}; if you trust it, write: -C {folder}, else: -C {outer}")


def name_caller() -> str:
    """The user of the operating system; the environment, which anyone can set, is not asked."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def mention_problems(crib: Crib) -> None:
    """Say that something could not be loaded, if so."""
    if problems := crib.problems:
        complain(f"not every tool could be loaded (problems: {len(problems)}); see: crib check")
