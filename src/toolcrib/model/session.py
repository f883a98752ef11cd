"""One conversation of an agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES = frozenset({"text", "voice"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What the calls of one conversation share; `max_calls` bounds them (None: no bound)."""

    id: str
    mode: str = "text"
    state: Mapping[str, object] = field(default_factory=dict)
    max_calls: int | None = None
