"""The tables of the settings that every Crib obeys: where tools are found, what they may use, and how calls are bounded."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_word_set, read_words, setting


def _read_variables(name: str, value: object) -> frozenset[str]:
    words = read_word_set(name, value)
    for word in sorted(words):
        tool, _, variable = word.partition(":")
        if not tool or not variable.isidentifier() or not variable.isascii():
            raise ValueError(f"{name}: {word!r:.80} is no grant of a variable; write 'tool:NAME' or '*:NAME'")
    return words


class CatalogSettings(Table, name="catalog"):
    """Where tools are found, and which of them are disabled."""

    folders: tuple[str, ...] = setting(
        default=("tools",),
        read=read_words,
        opens=False,
        summary="folders whose files are tools, from the project folder; of equal names the earlier folder is meant",
    )
    disabled: frozenset[str] = setting(
        default=frozenset(),
        read=read_word_set,
        opens=False,
        summary="tools that are disabled, by name, `bundle/name`, either with `@version`, or `bundle/*`",
    )


class ModulesSettings(Table, name="modules"):
    """Python modules of the host program; they run in its process."""

    tools: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="Python modules of the host program that hold tools; one that fails to load is reported",
    )
    rules: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="Python modules that hold rules; one that fails to load keeps the crib from starting",
    )


class AccessSettings(Table, name="access"):
    """What tools may use."""

    grants: frozenset[str] = setting(
        default=frozenset({"fs.*"}),
        read=read_word_set,
        adds=True,
        summary="capabilities that tools may use, each by name, as everything below a dot (`net.*`), or all of them (`*`)",
    )
    variables: frozenset[str] = setting(
        default=frozenset(),
        read=_read_variables,
        summary="variables of the host that tools may see, each as `tool:NAME`, or `*:NAME` for every tool",
    )


class CallsSettings(Table, name="calls"):
    """How calls are bounded."""

    timeout_ms: int = setting(
        default=30_000,
        read=read_positive,
        opens=False,
        summary="how long a call may take whose tool says nothing about it",
    )
    result_bytes: int = setting(
        default=256_000,
        read=read_positive,
        opens=False,
        summary="how large a value may be before it is kept aside to be read in pieces",
    )
    confirmation_seconds: int = setting(
        default=300, read=read_positive, opens=False, summary="how long a confirmation can be used"
    )
    max_steps: int = setting(default=20, read=read_positive, opens=False, summary="how many calls a session may make")
