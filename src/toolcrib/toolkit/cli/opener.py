"""The protocol of what opens the crib that a command line names; commands get it as Click's object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from toolcrib.core.client_protocol import AnyCrib, CallingCrib
    from toolcrib.model.protocols import Journal
    from toolcrib.model.tool import Tool

LocalT_co = TypeVar("LocalT_co", covariant=True)


class Opener(Protocol[LocalT_co]):
    """Opens cribs. Its parameter is what a command uses of a crib of this machine, as a protocol of the command's own."""

    def in_folder(self, project: str) -> Self:
        """The same for a project folder that was named."""

    @property
    def folder(self) -> Path:
        """The project folder that was named, else the one around the current folder, else that folder."""

    def open_local(
        self,
        *,
        grants: Iterable[str] = (),
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> LocalT_co:
        """The crib of the project, or one that keeps nothing on disk where there is no project."""

    def open_folder(self, folder: Path, *, caller: str) -> LocalT_co:
        """The crib of exactly this folder, whatever project was named."""

    def open_calling(
        self, url: str | None, *, grants: Iterable[str] = (), tools: Iterable[Tool] = (), observe: bool = False
    ) -> CallingCrib:
        """The crib behind the URL if there is one, else that of the project, to make calls."""

    def open_any(self, url: str | None, *, grants: Iterable[str] = ()) -> AnyCrib:
        """The crib behind the URL if there is one, else that of the project."""

    def open_durable(self, url: str | None) -> AnyCrib:
        """The same; refuses a crib that forgets everything when the command ends."""
