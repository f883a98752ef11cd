"""What needs a project to be kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import WrongUseError

if TYPE_CHECKING:
    from toolcrib.crib import Crib


def require_project(crib: Crib) -> None:
    """Refuse to keep anything in a crib that forgets it when the command ends."""
    if crib.settings.root is None:
        raise WrongUseError("there is no project to keep anything in; make one with: crib init")
