"""What an index holds of a tool, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """How well a tool fits what was typed, the best first; RELEVANCE is the answer to a question."""

    PREFIX = "prefix"
    WORD = "word"
    FUZZY = "fuzzy"
    RELEVANCE = "relevance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A tool as an index knows it.

    `id` is its own, `bundle` that of its bundle. `enabled` is its own switch. Times are RFC 3339 in UTC with milliseconds, so
    that the later one is the greater text. `key` and `stamp` are those of its document in the store; both are empty for a
    tool that this process alone has. `parameters` are names with their descriptions. A broken document has a `problem`.
    """

    id: str
    bundle: str
    slug: str
    version: str
    name: str = ""
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    enabled: bool = True
    created_at: str = ""
    modified_at: str = ""
    key: str = ""
    stamp: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A tool that was found, by its id. A search goes on behind (tier, modified_at, id) of its last hit."""

    id: str
    tier: Tier
    modified_at: str = ""
    score: float = 0.0
