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
    """Who defines the content of a bundle."""

    STORE = "store"  # clients, through the store
    FILES = "files"  # files in the folders of the project or of the user
    HOST = "host"  # the host program
    BUILTIN = "builtin"  # Toolcrib itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Tools under one switch.

    Times are RFC 3339 in UTC with milliseconds, empty for what never happened. `toggled_at` is when the bundle was last
    enabled or disabled, which does not change `modified_at`.
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
        """Whether clients can only enable and disable it and its tools."""
        return self.owner is not Owner.STORE


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A tool in a bundle: with its switch, its times, and why it cannot be used.

    `tool` is None if its file is broken. `document` is the stored document, with every key that its author wrote; empty
    for a tool of another owner. `enabled` is the tool's own switch. `reason` says why a call would find it disabled: its own
    switch, its bundle, a missing function or model, a broken file; empty if it is usable.
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
    """One page of a list, and the token of the next page; empty on the last.

    `indexing` says that the index is still being filled, so that items may be missing.
    """

    items: tuple[T, ...]
    next_token: str = ""
    indexing: bool = False
