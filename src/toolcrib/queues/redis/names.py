"""What keys and channels are called on the server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcrib.model.errors import SettingsError

TASKS = "fullsend:builder_tasks"
# What the original Builder called its channels and keys besides.
ORIGINAL = {
    "results": "fullsend:builder_results",
    "orchestrator": "fullsend:to_orchestrator",
    "execute": "fullsend:execute_now",
    "experiments": "pending_experiments:",
    "tools": "tools:",
}
OURS = "toolcrib:"

# The longest key that anybody should have to read; none of these characters ends a line or is invisible.
_WORD = re.compile(r"[!-~]{1,200}")
_GLOB = re.compile(r"([*?\[\]\\^])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The channel of requests, the one of finished tools, what hashes of requests begin with, and whether the original is served."""

    requests: str
    ready: str
    prefix: str
    original: bool = False

    def __post_init__(self) -> None:
        for setting, word in (("requests", self.requests), ("ready", self.ready), ("hash", self.prefix)):
            if not _WORD.fullmatch(word):
                raise SettingsError(f"queue_{setting}: {word!r:.200} is no name; write letters, digits, `:` and `_`")
        if self.prefix.startswith(OURS):
            raise SettingsError(
                f"queue_hash: keys that begin with {OURS} are for the queue itself; choose another word"
            )

    @property
    def base(self) -> str:
        """What every key of ours begins with."""
        return f"{OURS}{self.prefix}:"

    @property
    def changed(self) -> str:
        """The channel on which every change is told."""
        return f"{self.base}changed"

    @property
    def doors(self) -> tuple[str, ...]:
        """The channels on which requests arrive."""
        return (self.requests, TASKS) if self.original else (self.requests,)

    @property
    def pattern(self) -> str:
        """What the keys of requests look like."""
        return _GLOB.sub(r"\\\1", self.prefix) + ":*"

    def id_of(self, key: str) -> str:
        """The id of the request that lies under a key; empty if none does."""
        return key.removeprefix(f"{self.prefix}:") if key.startswith(f"{self.prefix}:") else ""
