"""A person writes the tool, and delivers it when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.model.protocols import Commission


class PersonMaker:
    """Says where the work lies, and leaves it to a person."""

    name = "person"

    async def make(self, commission: Commission) -> bool:
        """False: whoever writes the tool delivers it."""
        number = commission.request.id
        commission.say(
            f"{commission.folder / 'BRIEF.md'} says what to write; fill {commission.package} "
            f"and hand it over with: crib request deliver {number}"
        )
        return False

    async def close(self) -> None:
        """Nothing was started."""
