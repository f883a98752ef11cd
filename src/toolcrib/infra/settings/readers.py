"""What each setting may be, whichever way it is written."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_RULES = frozenset({"dangerous_commands", "sensitive_files"})
GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
MAX_NUMBER = 2**31 - 1
MAX_PORT = 65_535
MAX_CHANNEL = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class CustomRule:
    """A rule of the operator's own: texts that no call may contain."""

    name: str
    forbidden_patterns: tuple[str, ...]
    include_text: bool = False


def _words(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ValueError(f'{name} must be a list of texts, such as {name} = ["…"]')
    if not all(isinstance(word, str) and word.strip() and "\0" not in word for word in value):
        raise ValueError(f"{name} must hold texts only, none of them empty")
    return tuple(dict.fromkeys(value))


def _word_set(name: str, value: object) -> frozenset[str]:
    return frozenset(_words(name, value))


def read_positive(name: str, value: object) -> int:
    """A whole number greater than 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_NUMBER:
        raise ValueError(f"{name} must be a whole number greater than 0 and at most {MAX_NUMBER}, not {value!r:.80}")
    return value


def read_switch(name: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}")
    return value


def _folder(name: str, value: object) -> Path:
    if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
        raise ValueError(f"{name} must be a path, not {value!r:.80}")
    return Path(value)


def _word(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{name} must be a text, not {value!r:.80}")
    return value


def _names(name: str, value: object) -> tuple[str, ...]:
    words = _words(name, value)
    for word in words:
        if not (word.isidentifier() and word.isascii()):
            raise ValueError(f"{name}: {word!r:.80} is no name of a variable; write letters, digits and '_'")
    return words


def _command(name: str, value: object) -> tuple[str, ...]:
    """Words in their order, of which some may be the same."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f'{name} must be a list of words, such as {name} = ["program", "--flag"]')
    if not all(isinstance(word, str) and "\0" not in word for word in value) or (value and not value[0]):
        raise ValueError(f"{name} must hold texts only, and begin with a program")
    return tuple(value)


def _channel(name: str, value: object) -> str:
    word = _word(name, value)
    if any(letter.isspace() for letter in word) or len(word) > MAX_CHANNEL:
        raise ValueError(f"{name} must be at most {MAX_CHANNEL} letters without spaces, not {word!r:.80}")
    return word


def _port(name: str, value: object) -> int:
    number = read_positive(name, value)
    if number > MAX_PORT:
        raise ValueError(f"{name} must be at most {MAX_PORT}, not {number}")
    return number


def _guarantees(name: str, value: object) -> tuple[str, ...]:
    words = _words(name, value)
    if unknown := sorted(set(words) - set(GUARANTEES)):
        raise ValueError(f"{name}: unknown guarantee {unknown[0]!r}; known are {', '.join(GUARANTEES)}")
    return words


def _patterns(name: str, value: object) -> tuple[str, ...]:
    words = _words(name, value)
    for word in words:
        if word.startswith("/") or ".." in word.split("/") or not word.strip("./"):
            raise ValueError(f"{name}: {word!r:.80} is no path in the workspace; write a name, or a path from there")
    return words


def _variables(name: str, value: object) -> frozenset[str]:
    words = _word_set(name, value)
    for word in sorted(words):
        tool, _, variable = word.partition(":")
        if not tool or not variable.isidentifier() or not variable.isascii():
            raise ValueError(f"{name}: {word!r:.80} is no grant of a variable; write 'tool:NAME' or '*:NAME'")
    return words


def _default_rules(name: str, value: object) -> frozenset[str]:
    words = _word_set(name, value)
    if unknown := sorted(words - DEFAULT_RULES):
        raise ValueError(
            f"{name}: no default rule is called {unknown[0]!r}; known are {', '.join(sorted(DEFAULT_RULES))}"
        )
    return words


def read_rules(name: str, value: object) -> tuple[CustomRule, ...]:
    """Rules of the operator's own, one in each table."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be tables: write [[{name}]]")
    return tuple(item if isinstance(item, CustomRule) else _rule(item) for item in value)


def _rule(item: object) -> CustomRule:
    known = {entry.name for entry in fields(CustomRule)}
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
        raise ValueError("each of [[rules]] needs a name")
    if unknown := sorted(set(item) - known):
        raise ValueError(f"rule {item['name']}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
    if not item.get("forbidden_patterns"):
        raise ValueError(f'rule {item["name"]} forbids nothing; write forbidden_patterns = ["…"]')
    return CustomRule(
        name=item["name"],
        forbidden_patterns=_words(f"forbidden_patterns of rule {item['name']}", item["forbidden_patterns"]),
        include_text=read_switch(f"include_text of rule {item['name']}", item.get("include_text", False)),
    )


# What the environment writes as digits.
NUMBERS = (read_positive, _port)

# What the environment writes with commas.
LISTS = (_words, _patterns, _word_set, _names, _guarantees, _default_rules, _variables, _command)

READERS: dict[str, Callable[[str, object], object]] = {
    "workspace": _folder,
    "workspace_open": _patterns,
    "tools": _words,
    "scripts": _words,
    "variables": _variables,
    "modules": _words,
    "rule_modules": _words,
    "grants": _word_set,
    "disabled": _word_set,
    "builtins": read_switch,
    "rules": read_rules,
    "rules_off": _default_rules,
    "timeout_ms": read_positive,
    "shell_timeout_ms": read_positive,
    "result_bytes": read_positive,
    "confirmation_seconds": read_positive,
    "approvals_seconds": read_positive,
    "approvals_pending": read_positive,
    "max_steps": read_positive,
    "sandbox_require": _guarantees,
    "sandbox_jobs": read_positive,
    "sandbox_queue": read_positive,
    "sandbox_memory_mb": read_positive,
    "sandbox_processes": read_positive,
    "sandbox_disk_mb": read_positive,
    "egress_private": _words,
    "depot_keys": _words,
    "depot_signed": read_switch,
    "watch": read_switch,
    "handler_workers": read_positive,
    "handler_fresh": read_switch,
    "allowed_hosts": _words,
    "application_version": _word,
    "models": _words,
    "max_tools": read_positive,
    "max_retries": read_positive,
    "max_sent_bytes": read_positive,
    "max_response_bytes": read_positive,
    "secrets_environment": _names,
    "secrets_file": _folder,
    "secrets_keyring": _word,
    "search_index": read_switch,
    "queue_url": _word,
    "queue_secret": _word,
    "queue_requests": _channel,
    "queue_ready": _channel,
    "queue_hash": _channel,
    "queue_original": read_switch,
    "request_missing": read_switch,
    "request_strict": read_switch,
    "builder_maker": _word,
    "builder_command": _command,
    "builder_hosts": _words,
    "builder_variables": _names,
    "builder_url": _word,
    "builder_model": _word,
    "builder_key": _word,
    "builder_seconds": read_positive,
    "builder_attempts": read_positive,
    "builder_call_seconds": read_positive,
    "builder_disk_mb": read_positive,
    "builder_lease_seconds": read_positive,
    "builder_capabilities": _word_set,
    "builder_unproved": read_switch,
    "http_host": _word,
    "http_port": _port,
    "http_hosts": _words,
    "http_origins": _words,
    **dict.fromkeys(
        (
            *(
                "http_calls_per_minute",
                "http_concurrency",
                "http_queue",
                "http_connections",
                "http_address_connections",
            ),
            *(
                "http_header_seconds",
                "http_body_seconds",
                "http_total_seconds",
                "http_body_bytes",
                "http_drain_seconds",
            ),
        ),
        read_positive,
    ),
}
