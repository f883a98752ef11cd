"""Write requests: a new document, one changed field with every other byte kept, and the document in a message.

Every reader of YAML, also of version 1.1, reads back the same values.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.requests.document import KEYS, REQUESTER, is_safe_id, read_request
from toolcrib.features.requests.document.fields import ROOT, RequestText, lay_out, refusal
from toolcrib.features.requests.document.parameters import INPUT_KEYS, OUTPUT_KEYS
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, check_plain
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Priority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.features.requests.document.fields import Layout, Span

MAX_DEPTH = 24
# The fields that hold one text, in the order of the format.
SCALARS = KEYS[: KEYS.index("inputs")]
MARK = "\ufeff"
INDENT = "  "
MAX_FIELD_NAME = 500
# YAML 1.1 takes these for booleans, and some readers still do.
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
PLACE = "message"
NOTE = "tool_requested"
MAX_KEY = 256
MAX_WRAPPERS = 3
WRAPPED = ("request_id", "requested_by", "priority")
ALIASES = {"request_id": "id", "tool_name": "name"}

_BREAK = re.compile(r"\r\n|\n|\r")
_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./()-]| (?=[A-Za-z0-9_(])|,(?= ))*")
# Characters that JSON leaves as they are and YAML forbids, folds or reads as a line break.
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LITERAL = re.compile(
    r"[^\s\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff](?:[^\x00-\x08\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff])*"
)
_ID_LINE = re.compile(
    r"""^[ \t{,-]*["']?(?:id|request_id)["']?[ \t]*:[ \t]*["']?(req_[A-Za-z0-9_.-]{1,60})["']?[ \t\r]*(?:$|[,}#])""",
    re.MULTILINE,
)
_ID_MEMBER = re.compile(r'"(?:id|request_id)"\s{0,8}:\s{0,8}"(req_[A-Za-z0-9_.-]{1,60})"')


def write_request(fields: Mapping[str, object]) -> str:
    """The document of these fields, named as in the format; raises VALIDATION if it would not be a valid request.

    By default the author is `fullsend`, and the priority is high if an experiment is blocked, else medium.
    """
    priority = Priority.HIGH if fields.get("experiment_blocked") else Priority.MEDIUM
    text = spell_request({"priority": str(priority), "requested_by": REQUESTER, **fields})
    read_request(text, numbered=fields.get("id") is not None)
    return text


def spell_request(fields: Mapping[str, object]) -> str:
    """The document of these fields without checking them; a field that is None is left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    check_plain(given, place="request", max_depth=MAX_DEPTH)
    ordered = _in_order(given, KEYS)
    for name, keys in (("inputs", INPUT_KEYS), ("outputs", OUTPUT_KEYS)):
        entries = ordered.get(name)
        if isinstance(entries, list):
            ordered[name] = [_in_order(entry, keys) if isinstance(entry, dict) else entry for entry in entries]
    return f"{ROOT}:{_spell_block(ordered, 1)}"


def set_field(text: str, name: str, value: str) -> str:
    """The text with one field of the request changed or, in its place of the format, added.

    In JSON, escaped surrogate pairs come out joined.
    """
    if name not in SCALARS:
        raise ToolError(Kind.VALIDATION, f"{name[:80]!r} cannot be set; write one of {', '.join(SCALARS)}")
    source = RequestText(text, "request")
    wanted = {**source.fields(), ROOT: {**source.root().values, name: value}}
    for changed in _ways(source.read, name, value):
        if _value_of(changed) == wanted:
            return (MARK if text.startswith(MARK) else "") + changed
    message = f"request: {name} cannot be set in this document; write {name}: with its value below {ROOT} by hand"
    raise ToolError(Kind.VALIDATION, message)


def with_id(text: str, request_id: str) -> str:
    """The text with that id."""
    return set_field(text, "id", request_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A request that was announced: its id where it has one, and its text, or the key of the hash that holds it."""

    id: str
    text: str
    key: str = ""


def read_message(message: str) -> Message:
    """Read a message: a document, a note that names a hash, or a message of the original Builder.

    The text may still be invalid; `read_request` says why.
    """
    value = RequestText(message, PLACE).fields()
    if ROOT in value:
        return Message(id=_safe(_member(value, ROOT).get("id")), text=message)
    if isinstance(value.get("prd"), dict):
        return _unwrap(value)
    if value.get("type") == NOTE or "spec_key" in value:
        return _note(value)
    raise refusal([f"{PLACE}:1: is not a request; write {ROOT}: and its fields, or JSON with prd or spec_key"], 1)


def readable_id(text: str) -> str:
    """The id of a message even if the rest of it is invalid; empty if there is no safe one."""
    try:
        return read_message(text).id
    except ToolError:
        text = text[:MAX_DEFINITION_BYTES]
        found = _ID_LINE.search(text) or _ID_MEMBER.search(text)
        return found[1] if found else ""


def _in_order(values: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {name: values[name] for name in keys if name in values} | dict(values)


def _value_of(text: str) -> object:
    try:
        return RequestText(text, "request").document.value
    except ToolError:
        return None


def _ways(text: str, name: str, value: str) -> Iterator[str]:
    """Ways to change the text, the best first; unusual YAML may break any of them."""
    layout = lay_out(text)
    if layout is None:
        return
    span = layout.fields.get(name)
    if span is not None:
        yield _change(text, layout, span, value)
    elif layout.flow:
        comma = ", " if layout.fields else ""
        yield f"{text[: layout.start]}{_quote(name)}: {_quote(value)}{comma}{text[layout.start :]}"
    else:
        yield from _ways_to_add(text, layout, name, f"{name}: {_spell_text(value)}")


def _change(text: str, layout: Layout, span: Span, value: str) -> str:
    if span.style is None:
        return text
    # The parser counts blank lines after a block of text as part of it.
    end = span.start + len(text[span.start : span.end].rstrip("\r\n"))
    spelled = _quote(value) if layout.flow or span.style else _spell_text(value)
    space = "" if end > span.start or text[span.start - 1].isspace() else " "
    return f"{text[: span.start]}{space}{spelled}{text[end:]}"


def _ways_to_add(text: str, layout: Layout, name: str, line: str) -> Iterator[str]:
    """After the fields that come before it, after the line of the root, or right before the first field."""
    found = _BREAK.search(text)
    newline, indent = found[0] if found else "\n", " " * layout.column
    earlier = [layout.fields[word] for word in SCALARS[: SCALARS.index(name)] if word in layout.fields]
    ends = [span.end for span in earlier if span.style is not None]
    for end in (max(ends, default=layout.header), layout.header):
        behind = _BREAK.search(text, end)
        if text[end - 1] in "\r\n":
            yield f"{text[:end]}{indent}{line}{newline}{text[end:]}"
        elif behind is None:
            yield f"{text}{newline}{indent}{line}"
        else:
            yield f"{text[: behind.end()]}{indent}{line}{newline}{text[behind.end() :]}"
    yield f"{text[: layout.start]}{line}{newline}{indent}{text[layout.start :]}"


def _spell_text(text: str) -> str:
    """A text on one line: plain if no reader could take it for another type, else in double quotes."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in WORDS else _quote(text)


def _quote(text: str) -> str:
    """A text in double quotes, which is JSON as well."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(Kind.VALIDATION, f"{text[:40]!r} contains a lone surrogate; remove it")
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _spell_block(value: object, depth: int) -> str:
    """The text after a key or a dash at that depth, with the white space before and after it."""
    inner = INDENT * depth
    if isinstance(value, dict) and value:
        return "\n" + "".join(
            f"{inner}{_spell_key(key)}:{_spell_block(item, depth + 1)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple) and value:
        return "\n" + "".join(f"{inner}-{_spell_item(item, depth + 1)}" for item in value)
    return f" {_spell_scalar(value, inner)}\n"


def _spell_item(value: object, depth: int) -> str:
    """An item of a list; a mapping begins on the line of its dash."""
    text = _spell_block(value, depth)
    return f" {text[1:].lstrip(' ')}" if isinstance(value, dict) and value else text


def _spell_scalar(value: object, inner: str) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    body = value.removesuffix("\n")
    if "\n" not in body or not _LITERAL.fullmatch(body) or body[-1].isspace():
        return _spell_text(value)
    lines = "\n".join(f"{inner}{line}" if line else "" for line in body.split("\n"))
    return f"|{'' if value.endswith(chr(10)) else '-'}\n{lines}"


def _spell_key(key: str) -> str:
    if len(key) > MAX_FIELD_NAME:
        raise ToolError(
            Kind.VALIDATION,
            f"the key {key[:40]!r}… has {len(key)} characters, the limit is {MAX_FIELD_NAME}; shorten it",
        )
    return _spell_text(key)


def _note(value: Mapping[str, object]) -> Message:
    """A note that a request is in a hash; without a key, the one of the id."""
    key = value.get("spec_key", "")
    if not isinstance(key, str) or len(key) > MAX_KEY or not key.isprintable() or " " in key:
        raise refusal([f"{PLACE}:1: spec_key must be the key of a hash; write tool_requests:req_20240115_001"], 1)
    found = _safe(value.get("request_id")) or _safe(key.rpartition(":")[2])
    if not found:
        raise refusal([f"{PLACE}:1: names no request; write request_id or spec_key"], 1)
    return Message(id=found, text="", key=key)


def _unwrap(message: Mapping[str, object]) -> Message:
    """The message of the original Builder as a document of ours; the fields of its wrappers take precedence."""
    said: dict[str, object] = {}
    inside = message
    for _ in range(MAX_WRAPPERS):
        inner = _member(inside, "prd") or _member(inside, ROOT)
        if not inner:
            break
        said = {**{name: inside[name] for name in WRAPPED if name in inside}, **said}
        inside = inner
    fields = {**inside, **said}
    for alias, name in ALIASES.items():
        if alias in fields:
            fields.setdefault(name, fields.pop(alias))
    return Message(id=_safe(fields.get("id")), text=spell_request(fields))


def _member(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _safe(text: object) -> str:
    return str(text) if is_safe_id(text) else ""
