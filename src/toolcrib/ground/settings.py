"""Everything an operator can set: `toolcrib.toml`, the environment, the command line; later ones win.

Read once by the outermost code; everyone else is handed values.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE_NAME = "toolcrib.toml"
ENVIRONMENT_PREFIX = "TOOLCRIB_"
GUARANTEES = ("fs", "net", "proc", "priv", "mem", "pids", "disk", "time", "reap", "env")
BY_DEFAULT = "the default"


@dataclass(frozen=True, kw_only=True, slots=True)
class CustomRule:
    """A rule of the operator's own: texts that no call may contain."""

    name: str
    forbidden_patterns: tuple[str, ...]
    include_text: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings in force; `places` says where each one that is not a default was set."""

    root: Path | None = None
    workspace: Path = Path()
    tools: tuple[str, ...] = ("tools",)
    modules: tuple[str, ...] = ()
    rule_modules: tuple[str, ...] = ()
    grants: frozenset[str] = frozenset({"fs.*"})
    disabled: frozenset[str] = frozenset()
    builtins: bool = True
    rules: tuple[CustomRule, ...] = ()
    timeout_ms: int = 30_000
    shell_timeout_ms: int = 30_000
    result_bytes: int = 256_000
    confirmation_seconds: int = 300
    max_steps: int = 20
    sandbox_require: tuple[str, ...] = ("env", "time", "reap")
    egress_private: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def where(self, name: str) -> str:
        """Where a setting was set, in words."""
        return f"{name} in {self.places[name]}" if name in self.places else f"{BY_DEFAULT} of {name}"


def load_settings(root: Path | None, environment: Mapping[str, str], **given: object) -> Settings:
    """Read the settings of a project folder (None: no project), then the environment, then what was given."""
    settings = Settings(root=root, workspace=root or Path())
    if root is not None and (file := root / FILE_NAME).is_file():
        settings = _merge(settings, _read_file(file), FILE_NAME)
    settings = _merge(settings, _read_environment(environment), "the environment")
    settings = _merge(settings, {name: value for name, value in given.items() if value is not None}, "the command line")
    workspace = settings.workspace if root is None else root / settings.workspace
    if not workspace.is_dir():
        raise SettingsError(f"workspace {str(workspace)!r} is not a folder; {settings.where('workspace')}")
    return replace(settings, workspace=workspace.resolve())


def _read_file(file: Path) -> dict[str, object]:
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{file}: {problem}") from problem
    flat: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            flat.update(
                {f"{key}_{name}" if key in _SECTIONS else f"{key}.{name}": part for name, part in value.items()}
            )
        else:
            flat[key] = value
    return flat


def _read_environment(environment: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, reader in _READERS.items():
        text = environment.get(ENVIRONMENT_PREFIX + name.upper())
        if text is None or reader is _rules:
            continue
        found[name] = _from_text(text, reader)
    return found


def _from_text(text: str, reader: Callable[[str, object], object]) -> object:
    if reader in (_words, _word_set):
        return [word.strip() for word in text.split(",") if word.strip()]
    if reader is _positive and text.strip().isdecimal():
        return int(text)
    if reader is _switch and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    return text


def _merge(settings: Settings, found: Mapping[str, object], place: str) -> Settings:
    changes: dict[str, object] = {}
    for name, value in found.items():
        reader = _READERS.get(name)
        if reader is None:
            near = difflib.get_close_matches(name, _READERS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(_READERS))}"
            raise SettingsError(f"{place}: unknown setting {name!r}{hint}")
        try:
            changes[name] = reader(name, value)
        except ValueError as problem:
            raise SettingsError(f"{place}: {problem}") from problem
    if "grants" in changes and place == "the command line":
        changes["grants"] = settings.grants | _as_set(changes["grants"])
    places = {**settings.places, **dict.fromkeys(changes, place)}
    # replace() takes any field by name; each value was made by the reader of that field.
    return replace(settings, places=places, **changes)  # type: ignore[arg-type]


def _as_set(value: object) -> frozenset[str]:
    return value if isinstance(value, frozenset) else frozenset()


def _words(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ValueError(f'{name} must be a list of texts, such as {name} = ["…"]')
    if not all(isinstance(word, str) and word for word in value):
        raise ValueError(f"{name} must hold texts only")
    return tuple(value)


def _word_set(name: str, value: object) -> frozenset[str]:
    return frozenset(_words(name, value))


def _positive(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} must be a whole number greater than 0, not {value!r}")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}")
    return value


def _folder(name: str, value: object) -> Path:
    if not isinstance(value, (str, Path)):
        raise ValueError(f"{name} must be a path, not {value!r}")
    return Path(value)


def _guarantees(name: str, value: object) -> tuple[str, ...]:
    words = _words(name, value)
    if unknown := sorted(set(words) - set(GUARANTEES)):
        raise ValueError(f"{name}: unknown guarantee {unknown[0]!r}; known are {', '.join(GUARANTEES)}")
    return words


def _rules(name: str, value: object) -> tuple[CustomRule, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} must be tables: write [[{name}]]")
    return tuple(item if isinstance(item, CustomRule) else _rule(item) for item in value)


def _rule(item: object) -> CustomRule:
    known = {entry.name for entry in fields(CustomRule)}
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
        raise ValueError("each of [[rules]] needs a name")
    if unknown := sorted(set(item) - known):
        raise ValueError(f"rule {item['name']}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
    return CustomRule(
        name=item["name"],
        forbidden_patterns=_words("forbidden_patterns", item.get("forbidden_patterns")),
        include_text=_switch("include_text", item.get("include_text", False)),
    )


# A table of the file and the prefix of its settings here: [sandbox] require = [...] is sandbox_require.
_SECTIONS = frozenset({"sandbox", "egress", "shell", "confirmation"})

_READERS: dict[str, Callable[[str, object], object]] = {
    "workspace": _folder,
    "tools": _words,
    "modules": _words,
    "rule_modules": _words,
    "grants": _word_set,
    "disabled": _word_set,
    "builtins": _switch,
    "rules": _rules,
    "timeout_ms": _positive,
    "shell_timeout_ms": _positive,
    "result_bytes": _positive,
    "confirmation_seconds": _positive,
    "max_steps": _positive,
    "sandbox_require": _guarantees,
    "egress_private": _words,
}
