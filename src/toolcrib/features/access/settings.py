"""Settings that limit callers without a token, shared by the tables that have them."""

from __future__ import annotations

from toolcrib.infra.settings import read_text, read_word_set, setting
from toolcrib.model.tool import MODES


def visible_tools(client: str) -> frozenset[str]:
    """The key `tools`; `client` names the callers that it limits."""
    summary = f"the only tools that {client} without a token sees: `name`, `bundle/name` or `bundle/*`; all if absent"
    return setting(default=frozenset(), read=read_word_set, opens=False, summary=summary)


def visible_bundles(client: str) -> frozenset[str]:
    """The key `bundles`."""
    summary = f"the only bundles whose tools {client} without a token sees; all if absent"
    return setting(default=frozenset(), read=read_word_set, opens=False, summary=summary)


def visible_tags(client: str) -> frozenset[str]:
    """The key `tags`."""
    summary = f"the tags of which a tool must have one for {client} without a token to see it; none if absent"
    return setting(default=frozenset(), read=read_word_set, opens=False, summary=summary)


def mode_of_calls(client: str) -> str:
    """The key `mode`."""
    summary = f"the mode whose tools {client} without a token sees, and makes its calls in; any if absent"
    return setting(default="", read=_read_mode, opens=False, summary=summary)


def _read_mode(name: str, value: object) -> str:
    mode = read_text(name, value)
    if mode not in MODES:
        raise ValueError(f"{name} must be {' or '.join(sorted(MODES))}, not {mode[:80]!r}")
    return mode
