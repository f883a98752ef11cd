"""A Sandbox that finds the protected files of guarded folders, as the one of a Crib does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.files.protected_files import ProtectedFolders
from toolcrib.infra.sandbox.host import Sandbox

if TYPE_CHECKING:
    from typing import Any


def make_sandbox(**options: Any) -> Sandbox:
    """A new Sandbox with these options."""
    folders = ProtectedFolders()
    return Sandbox(protected=lambda: folders, **options)
