"""The tables [safety_rules] and [[rules]] of the settings."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.core.grants import GrantsSettings
from toolcrib.features.safety_rules import DEFAULT_RULES
from toolcrib.infra.settings import Table, read_switch, read_word_set, read_words, setting

_KEYS = ("forbidden_patterns", "include_text", "name")


def _read_default_rules(name: str, value: object) -> frozenset[str]:
    words = read_word_set(name, value)
    if unknown := sorted(words - set(DEFAULT_RULES)):
        raise ValueError(f"{name}: no default rule is called {unknown[0]!r}; known are {', '.join(DEFAULT_RULES)}")
    return words


def is_path(word: str) -> bool:
    """Whether a word of `private` names a path and not a tool."""
    return word.startswith(("./", "/"))


def _read_private(name: str, value: object) -> tuple[str, ...]:
    words = read_words(name, value)
    for word in words:
        try:
            if not is_path(word):
                GrantsSettings.check_word(word)
        except ValueError as problem:
            raise ValueError(f"{name}: {word!r:.80}: {problem}; a path begins with ./ or /") from None
    return words


@dataclass(frozen=True, kw_only=True, slots=True)
class CustomRule:
    """A rule of the operator: texts that no call may contain."""

    name: str
    forbidden_patterns: tuple[str, ...]
    include_text: bool = False


def _read_rules(name: str, value: object) -> tuple[CustomRule, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be tables: write [[{name}]]")
    return tuple(item if isinstance(item, CustomRule) else _read_rule(item) for item in value)


def _read_rule(item: object) -> CustomRule:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
        raise ValueError("each of [[rules]] needs a name")
    if unknown := sorted(set(item) - set(_KEYS)):
        raise ValueError(f"rule {item['name']}: unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
    if not item.get("forbidden_patterns"):
        raise ValueError(f'rule {item["name"]} forbids nothing; write forbidden_patterns = ["…"]')
    return CustomRule(
        name=item["name"],
        forbidden_patterns=read_words(f"forbidden_patterns of rule {item['name']}", item["forbidden_patterns"]),
        include_text=read_switch(f"include_text of rule {item['name']}", item.get("include_text", False)),
    )


class SafetyRulesSettings(Table, name="safety_rules"):
    """The rules that come with Toolcrib."""

    off: frozenset[str] = setting(
        default=frozenset(),
        read=_read_default_rules,
        summary=f"names of default rules to leave out: {', '.join(DEFAULT_RULES)}",
    )
    data_flow: bool = setting(
        default=True,
        read=read_switch,
        summary="whether a call that may send data out (`net.*`) needs confirmation in a session that has private data",
    )
    private: tuple[str, ...] = setting(
        default=(),
        read=_read_private,
        opens=False,
        summary="whose results are private data, besides those of tools that hold a secret: tools named as in `[grants]`, and paths that begin with `./` or `/`",
    )
    commands: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="shell commands that need no confirmation although they do more than read, each by its first words: `make`, `npm test`",
    )


class RulesSettings(Table, name="rules", is_array=True):
    """Rules of the operator's own."""

    rules: tuple[CustomRule, ...] = setting(
        default=(),
        read=_read_rules,
        opens=False,
        by_variable=False,
        summary="rules of the operator's own; each has a name and forbidden_patterns, and may have include_text = true",
    )
