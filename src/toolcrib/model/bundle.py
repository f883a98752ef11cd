"""Bundles of tools that are enabled and disabled together, and the tools stored in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Tool

T = TypeVar("T")


class Owner(StrEnum):
    """Who says what is in a bundle."""

    STORE = "store"  # clients that write to the store
    FILES = "files"  # files in the folders of the project or of the user
    HOST = "host"  # the host program
    BUILTIN = "builtin"  # Toolcrib itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Tools under one switch.

    Times are RFC 3339 in UTC with milliseconds, empty for what never happened. `toggled_at` is when the switch was last
    moved, which is no change of the bundle itself.
    """

    id: str
    slug: str
    display_name: str = ""
    description: str = ""
    enabled: bool = True
    owner: Owner = Owner.STORE
    schema_version: str = ""
    created_at: str = ""
    modified_at: str = ""
    toggled_at: str = ""
    soft_deleted_at: str = ""

    @property
    def built_in(self) -> bool:
        """Whether it comes with Toolcrib."""
        return self.owner is Owner.BUILTIN

    @property
    def read_only(self) -> bool:
        """Whether only its switches can be moved."""
        return self.owner is not Owner.STORE


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A tool as it is kept in a bundle: with its switch, its times, and why it cannot be used.

    `tool` is None where its file is broken. `document` is what the store holds, with every key that its author wrote; empty
    for a tool of another owner. `enabled` is its own switch. `reason` says why a call would find it disabled, no matter
    the cause: its own switch, its bundle, a function or a model that is not there, a broken file; empty if it would not.
    `stamp` changes whenever the document does.
    """

    id: str
    bundle: Bundle
    slug: str
    version: str
    tool: Tool | None = None
    document: Mapping[str, object] = field(default_factory=dict)
    enabled: bool = True
    reason: str = ""
    created_at: str = ""
    modified_at: str = ""
    toggled_at: str = ""
    calls: int = 0
    last_called_at: str = ""
    stamp: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether a call would find it enabled."""
        return not self.reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A tool that a search found, and why: prefix, word, fuzzy or relevance."""

    kept: Kept
    tier: str
    score: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[T]):
    """Some of many, and the token that asks for the next ones; empty behind the last.

    While the index is `indexing` stored documents, more of them may be there than it knows.
    """

    items: tuple[T, ...]
    next_token: str = ""
    indexing: bool = False
