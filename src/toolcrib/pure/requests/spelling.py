"""Values as YAML: read back they are the same, and every reader takes them for the same."""

from __future__ import annotations

import json
import re

from toolcrib.model.errors import Kind, ToolError

INDENT = "  "
MAX_KEY = 500
# YAML 1.1 takes these for booleans, and some readers still do.
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})

_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./()-]| (?=[A-Za-z0-9_(])|,(?= ))*")
# What JSON leaves as it is and YAML forbids, folds or takes for the end of a line.
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LITERAL = re.compile(
    r"[^\s\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff](?:[^\x00-\x08\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff])*"
)


def spell_text(text: str) -> str:
    """A text on one line: bare where nobody could take it for anything else, else in double quotes."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in WORDS else quote(text)


def quote(text: str) -> str:
    """A text in double quotes, which is JSON as well."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ToolError(Kind.VALIDATION, f"{text[:40]!r} holds half of a character; write the whole one")
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def spell_block(value: object, depth: int) -> str:
    """What stands behind a key or a dash at that depth, with the space or line break before it and that behind it."""
    inner = INDENT * depth
    if isinstance(value, dict) and value:
        return "\n" + "".join(f"{inner}{_spell_key(key)}:{spell_block(item, depth + 1)}" for key, item in value.items())
    if isinstance(value, list | tuple) and value:
        return "\n" + "".join(f"{inner}-{_spell_item(item, depth + 1)}" for item in value)
    return f" {_spell_scalar(value, inner)}\n"


def _spell_item(value: object, depth: int) -> str:
    """An item of a list; a mapping begins on the line of its dash."""
    text = spell_block(value, depth)
    return f" {text[1:].lstrip(' ')}" if isinstance(value, dict) and value else text


def _spell_scalar(value: object, inner: str) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    body = value.removesuffix("\n")
    if "\n" not in body or not _LITERAL.fullmatch(body) or body[-1].isspace():
        return spell_text(value)
    lines = "\n".join(f"{inner}{line}" if line else "" for line in body.split("\n"))
    return f"|{'' if value.endswith(chr(10)) else '-'}\n{lines}"


def _spell_key(key: str) -> str:
    if len(key) > MAX_KEY:
        raise ToolError(
            Kind.VALIDATION, f"the key {key[:40]!r}… has {len(key)} letters, the limit is {MAX_KEY}; shorten it"
        )
    return spell_text(key)
