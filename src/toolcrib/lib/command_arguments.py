"""Spell arguments as the words of a command line: `--key value`, a bare flag for what is true, JSON for what has parts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# What reads a word behind -c as code.
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
KEY = re.compile(r"[^\W\d_][\w.-]*|_[\w.-]+")
# What Linux takes: one word may have 128 KiB, all of them a quarter of the stack, of which the environment needs a part.
MAX_WORD_BYTES = 128 * 1024 - 1
MAX_WORDS_BYTES = 1024 * 1024

_DEEPEST = 8


def spell(arguments: Mapping[str, object], action: str = "") -> list[str]:
    """The words for a program; the action comes first, what is null or false is left out.

    A value that begins with a dash is glued to its name, so that no program takes it for an option.
    """
    words = [action] if action else []
    for name, value in arguments.items():
        if value is None or value is False:
            continue
        _refuse_odd_name(name)
        option, text = f"--{name}", as_text(value)
        if value is True:
            words.append(option)
        elif text.startswith("-"):
            words.append(f"{option}={text}")
        else:
            words += [option, text]
    return words


def as_text(value: object) -> str:
    """A value as one word: text as it is, nothing for null, JSON for everything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_words(words: Iterable[str], place: str) -> None:
    """Refuse what no program can be handed as its arguments or variables."""
    total = 0
    for word in words:
        if "\0" in word:
            raise ToolError(Kind.VALIDATION, f"{place}: a word for a program holds no NUL; leave it out")
        try:
            size = len(word.encode()) + 1
        except UnicodeEncodeError as problem:
            raise ToolError(Kind.VALIDATION, f"{place}: a word for a program holds half a character") from problem
        total += size
        if size > MAX_WORD_BYTES or total > MAX_WORDS_BYTES:
            message = (
                f"{place}: a program takes words of {MAX_WORD_BYTES} bytes, {MAX_WORDS_BYTES} in all; "
                "write what is longer to a file and pass its path"
            )
            raise ToolError(Kind.VALIDATION, message)


def properties_of(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The declared properties; what is not written as JSON Schema wants it is left out."""
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: part if isinstance(part, dict) else {} for name, part in found.items()}


def types_of(schema: Mapping[str, object], root: Mapping[str, object]) -> frozenset[str]:
    """The JSON types that a schema declares, here or behind references and alternatives; none if it declares none."""
    return frozenset(_types(schema, root, _DEEPEST))


def describe_type(schema: Mapping[str, object], root: Mapping[str, object]) -> str:
    """The type in a few words."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(map(str, choices))
    types = types_of(schema, root)
    words = " or ".join(sorted(types - {"null"})) or "anything"
    items = schema.get("items")
    if types == {"array"} and isinstance(items, dict):
        words = f"array of {describe_type(items, root)}"
    return f"{words} or null" if "null" in types else words


def _types(schema: Mapping[str, object], root: Mapping[str, object], depth: int) -> Iterator[str]:
    if depth == 0:
        return
    declared = schema.get("type")
    yield from [declared] if isinstance(declared, str) else _texts(declared)
    for part in (*_parts(schema.get("anyOf")), *_parts(schema.get("oneOf")), *_target(schema.get("$ref"), root)):
        yield from _types(part, root, depth - 1)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _parts(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _target(reference: object, root: Mapping[str, object]) -> list[dict[str, object]]:
    """What a reference into the schema's own definitions means."""
    definitions = root.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return []
    return _parts([definitions.get(reference.removeprefix("#/$defs/"))])


def _refuse_odd_name(name: str) -> None:
    if KEY.fullmatch(name) is None:
        message = f"argument {name[:80]!r} cannot be written as an option; use letters, digits, '_', '-' and '.'"
        raise ToolError(Kind.VALIDATION, message)
