"""Find the folders of a workspace that its repository runs hooks from, besides the usual one."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 1_000_000
SETTING = "hookspath"


def find_hook_folders(workspace: Path) -> tuple[str, ...]:
    """Their paths from the workspace: where `core.hooksPath` leads, and a link in place of `.git/hooks`."""
    repository = _find_repository(workspace / ".git")
    if repository is None:
        return ()
    common = _follow(repository, _read(repository / "commondir")) or repository
    configs = {common / "config", common / "config.worktree", repository / "config.worktree"}
    named = [value for config in configs for value in _read_settings(_read(config))]
    root = workspace.resolve()
    places = [Path(os.path.realpath(place)) for place in (common / "hooks", *(root / value for value in named))]
    own = Path(os.path.realpath(common)) / "hooks"
    found = {place.relative_to(root) for place in places if place != own and place.is_relative_to(root)}
    return tuple(sorted("" if place == Path() else str(place) for place in found))


def _find_repository(place: Path) -> Path | None:
    """The folder of the repository, which a file may name; None if there is none."""
    if place.is_dir():
        return place
    word, _, target = _read(place).partition(":")
    return _follow(place.parent, target) if word == "gitdir" else None


def _follow(folder: Path, text: str) -> Path | None:
    return folder / text.strip() if text.strip() else None


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES).decode("utf-8", "replace").replace("\0", "")
    except OSError:
        return ""


def _read_settings(text: str) -> list[str]:
    """Every value of the setting; git would take the last one of its section, and all of them are meant here."""
    lines = (line.partition("=") for line in text.splitlines())
    values = [value.strip().strip('"') for name, _, value in lines if name.strip().lower().endswith(SETTING)]
    return [value for value in values if value and not value.startswith("~")]
