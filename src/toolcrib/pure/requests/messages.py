"""What comes over a channel: the document itself, a note that says where it lies, or the order of the original Builder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.documents import MAX_DEFINITION_BYTES
from toolcrib.pure.requests.ids import is_safe_id
from toolcrib.pure.requests.layout import ROOT
from toolcrib.pure.requests.report import refusal
from toolcrib.pure.requests.source import Source
from toolcrib.pure.requests.writing import spell_request

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = "message"
NOTE = "tool_requested"
MAX_KEY = 256
MAX_WRAPPERS = 3
WRAPPED = ("request_id", "requested_by", "priority")
ALIASES = {"request_id": "id", "tool_name": "name"}

_ID_LINE = re.compile(
    r"""^[ \t{,-]*["']?(?:id|request_id)["']?[ \t]*:[ \t]*["']?(req_[A-Za-z0-9_.-]{1,60})["']?[ \t\r]*(?:$|[,}#])""",
    re.MULTILINE,
)
_ID_MEMBER = re.compile(r'"(?:id|request_id)"\s{0,8}:\s{0,8}"(req_[A-Za-z0-9_.-]{1,60})"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A request that was announced: its id where it has one, and its text, or the key of the hash that holds it."""

    id: str
    text: str
    key: str = ""


def read_message(message: str) -> Message:
    """Whichever of the three shapes it has; the text may still be wrong, and `read_request` says why."""
    value = Source(message, PLACE).fields()
    if ROOT in value:
        return Message(id=_safe(_member(value, ROOT).get("id")), text=message)
    if isinstance(value.get("prd"), dict):
        return _order(value)
    if value.get("type") == NOTE or "spec_key" in value:
        return _note(value)
    raise refusal([f"{PLACE}:1: is no request; write {ROOT}: and its fields, or JSON with prd or spec_key"], 1)


def readable_id(text: str) -> str:
    """The id of a message even if the rest of it is wrong; empty if there is none that is safe as a key."""
    try:
        return read_message(text).id
    except ToolError:
        text = text[:MAX_DEFINITION_BYTES]
        found = _ID_LINE.search(text) or _ID_MEMBER.search(text)
        return found[1] if found else ""


def _note(value: Mapping[str, object]) -> Message:
    """A note that a request lies in a hash, whose key it names or leaves to be made from the id."""
    key = value.get("spec_key", "")
    if not isinstance(key, str) or len(key) > MAX_KEY or not key.isprintable() or " " in key:
        raise refusal([f"{PLACE}:1: spec_key must be the key of a hash; write tool_requests:req_20240115_001"], 1)
    found = _safe(value.get("request_id")) or _safe(key.rpartition(":")[2])
    if not found:
        raise refusal([f"{PLACE}:1: names no request; write request_id or spec_key"], 1)
    return Message(id=found, text="", key=key)


def _order(message: Mapping[str, object]) -> Message:
    """The order of the original Builder, as a document of ours; what its wrappers say about the request comes first."""
    said: dict[str, object] = {}
    wish = message
    for _ in range(MAX_WRAPPERS):
        inner = _member(wish, "prd") or _member(wish, ROOT)
        if not inner:
            break
        said = {**{name: wish[name] for name in WRAPPED if name in wish}, **said}
        wish = inner
    fields = {**wish, **said}
    for alias, name in ALIASES.items():
        if alias in fields:
            fields.setdefault(name, fields.pop(alias))
    return Message(id=_safe(fields.get("id")), text=spell_request(fields))


def _member(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _safe(text: object) -> str:
    return str(text) if is_safe_id(text) else ""
