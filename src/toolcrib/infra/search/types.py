"""What an index holds of a tool, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


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


class Index(Protocol):
    """Everything that lists and searches ask, derived from documents and ready to be made anew at any time.

    Threads may share it. What is on disk is shared by processes; rows without a key are this process's own and are seen by no
    other. A row counts as switched on if it and its bundle are; a bundle that nobody named counts as switched on.
    """

    def put(self, rows: Iterable[Row]) -> None:
        """Have these rows in place of those with the same ids, all at once."""

    def set_own(self, rows: Iterable[Row]) -> None:
        """Have exactly these rows as the process's own."""

    def remove(self, ids: Iterable[str]) -> None:
        """Forget rows."""

    def put_bundle(self, bundle: str, *, enabled: bool) -> None:
        """Know whether a bundle is switched on."""

    def remove_bundle(self, bundle: str) -> None:
        """Forget a bundle and all its rows."""

    def get(self, id_: str) -> Row | None:
        """The row of that id."""

    def stamps(self, bundle: str) -> dict[str, tuple[str, str]]:
        """For each document of a bundle, by its key, the id of its row and its stamp."""

    def named(self, slug: str) -> list[Row]:
        """All rows of that slug, of whichever bundle and version, the newest created first."""

    def page(
        self,
        *,
        after: str = "",
        limit: int,
        bundles: Collection[str] | None = None,
        tags: Collection[str] = (),
        include_disabled: bool = False,
    ) -> list[Row]:
        """Rows in the order of their ids, behind the one with the id `after`; with all of the tags, of any of the bundles."""

    def search(self, text: str, *, after: Hit | None = None, limit: int, include_disabled: bool = False) -> list[Hit]:
        """What fits what was typed: prefix before word before fuzzy, then the newest, then by id; behind the hit `after`."""

    def ask(self, question: str, *, limit: int, include_disabled: bool = False) -> list[Hit]:
        """What answers a question in plain words, the most relevant first."""

    def count(self) -> int:
        """How many rows have a key."""

    def incarnation(self) -> int:
        """Another number whenever the index was lost and made anew, or opened anew, and may hold other rows than before."""

    def facts(self) -> Mapping[str, str]:
        """What whoever keeps the index noted about it; empty for one that was just made."""

    def note(self, facts: Mapping[str, str], *, incarnation: int | None = None) -> None:
        """Note something about the index, beside what was noted before; nothing if it is another one than the caller knows."""

    def close(self) -> None:
        """Let go of what is open."""
