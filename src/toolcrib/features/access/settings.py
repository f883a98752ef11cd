"""The table [access], and settings that limit callers without a token, shared by the tables that have them."""

from __future__ import annotations

from toolcrib.core.grants import GrantsSettings
from toolcrib.infra.settings import Table, read_text, read_word_set, setting
from toolcrib.model.tool import MODES


def _read_variables(name: str, value: object) -> frozenset[str]:
    words = read_word_set(name, value)
    for word in sorted(words):
        tool, _, variable = word.partition(":")
        if not tool or not variable.isidentifier() or not variable.isascii():
            raise ValueError(f"{name}: {word!r:.80} is not a grant of a variable; write 'tool:NAME' or '*:NAME'")
        try:
            GrantsSettings.check_word(tool)
        except ValueError as problem:
            raise ValueError(f"{name}: {word!r:.80}: {problem}") from None
    return words


FORMER_GRANTS = 'write [grants] and below it "*" = ["fs.*"] for every tool, "NAME" = ["shell.execute"] for one'


class AccessSettings(Table, name="access", moved={"grants": FORMER_GRANTS}):
    """Which environment variables of the host tools may read."""

    variables: frozenset[str] = setting(
        default=frozenset(),
        read=_read_variables,
        summary="variables of the host that tools may see, each as `tool:NAME`, or `*:NAME` for every tool; tools are named as in `[grants]`",
    )


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
