"""A person writes the tool, and delivers it when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.model.protocols import Commission


class PersonMaker:
    """Says where the workspace is, and leaves the work to a person."""

    name = "person"

    async def make(self, commission: Commission) -> bool:
        """False: the person who writes the tool delivers it."""
        number = commission.request.id
        commission.say(
            f"{commission.folder / 'BRIEF.md'} says what to write; fill {commission.package} "
            f"and hand it over with: crib request deliver {number}"
        )
        return False

    async def close(self) -> None:
        """Nothing was started."""
