"""Where the script files of a project and of its user lie, and the environments that are installed for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.resources import PROJECT_SCRIPTS
from toolcrib.features.scripts.settings import ScriptsSettings

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources


def script_trees(resources: Resources) -> dict[str, Path]:
    """The trees by the bundle of each, in their order; a Crib without a project has only those it is given."""
    trees: dict[str, Path] = {}
    settings = resources.settings
    if settings.root is None and "scripts.folders" not in settings.places:
        return trees
    for written in settings.table(ScriptsSettings).folders:
        path = _tree(resources, written)
        if path is None or path in trees.values():
            continue
        bundle = "user" if written.startswith("~") else "project" if written == PROJECT_SCRIPTS else path.name
        trees.setdefault(bundle, path)
    return trees


def environments_folder(resources: Resources) -> Path | None:
    """The folder of environments of single tools, outside our data, which no tool can read.

    None if there is no home, or if it lies in the project: a project must not bring prepared environments along.
    """
    home, root = resources.environment.get("HOME", ""), resources.settings.root
    cache = Path(resources.environment.get("XDG_CACHE_HOME") or Path(home, ".cache"))
    if not cache.is_absolute() or (root is not None and cache.resolve().is_relative_to(root.resolve())):
        return None
    return cache / "toolcrib" / "environments"


def _tree(resources: Resources, written: str) -> Path | None:
    """Where a tree lies; None if it lies in a home and there is none, or if it is a link that leads out of the project."""
    if written == "~" or written.startswith("~/"):
        home = resources.environment.get("HOME")
        return Path(home, written[2:]) if home and Path(home).is_absolute() else None
    root = resources.settings.root
    path = Path(written) if root is None else root / written
    is_link_out = written == PROJECT_SCRIPTS and root is not None and root.resolve() not in path.resolve().parents
    return None if is_link_out else path
