"""How settings that limit callers are read."""

from __future__ import annotations

from toolcrib.infra.settings import read_text
from toolcrib.model.tool import MODES


def read_mode(name: str, value: object) -> str:
    """One of the modes."""
    mode = read_text(name, value)
    if mode not in MODES:
        raise ValueError(f"{name} must be {' or '.join(sorted(MODES))}, not {mode[:80]!r}")
    return mode
