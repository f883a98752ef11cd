"""The text of a request as YAML: what it holds, and where each part of it stands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolcrib.features.requests.document.example_usage import FIELD
from toolcrib.features.requests.document.fields import Fields, Report, name_type, refusal
from toolcrib.lib.documents import decode
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.lib.yaml import Document


# MERGED toolcrib.pure.requests.layout

# Where the fields of a request stand in its text, letter by letter, as the parser of YAML marks them.

ROOT = "tool_request"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The value of a field: from which letter to which, on which line it begins, and how it is written.

    `style` is empty for a plain word, else the mark that a scalar begins with; None for a list or a mapping.
    """

    start: int
    end: int
    line: int
    style: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The mapping below `tool_request`: where it begins, how far it is indented, and the values in it.

    `flow` says that it is written between { and }. `header` is where the word `tool_request` ends.
    """

    header: int
    start: int
    column: int
    flow: bool
    fields: Mapping[str, Span]


def lay_out(text: str) -> Layout | None:
    """Where things stand in a text that was read as YAML before; None if it holds no request."""
    import yaml

    from toolcrib.lib.yaml import events

    stream = events(text)
    for event in stream:
        if isinstance(event, yaml.MappingStartEvent):
            break
        if isinstance(event, yaml.NodeEvent):
            return None
    for key, value in _members(stream):
        if key.value == ROOT:
            return _layout(key, value, stream) if isinstance(value, yaml.MappingStartEvent) else None
    return None


def _layout(key: Any, value: Any, stream: Iterator[Any]) -> Layout:
    return Layout(
        header=key.end_mark.index,
        start=value.end_mark.index,
        column=value.end_mark.column,
        flow=value.flow_style,
        fields={name.value: _span(entry) for name, entry in _members(stream)},
    )


def _members(stream: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """The keys of the mapping that the parser is in, each with what its value begins with; the rest of the value is skipped."""
    import yaml

    while not isinstance(key := next(stream), yaml.MappingEndEvent):
        value = next(stream)
        yield key, value
        depth = int(isinstance(value, yaml.CollectionStartEvent))
        while depth:
            event = next(stream)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)


def _span(event: Any) -> Span:
    import yaml

    style = None if isinstance(event, yaml.CollectionStartEvent) else getattr(event, "style", None) or ""
    return Span(start=event.start_mark.index, end=event.end_mark.index, line=event.start_mark.line + 1, style=style)


# MERGED toolcrib.pure.requests.spelling

# Values as YAML: read back they are the same, and every reader takes them for the same.

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


SAMPLE = f"{ROOT}: and its fields below, indented by two spaces"

_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE | re.DOTALL)


class Source:
    """A document of YAML: its text, what was read of it, its value, and where things stand in it.

    `read` is the text itself but for letters that JSON wrote as two halves, which YAML does not know.
    """

    def __init__(self, text: str | bytes, place: str) -> None:
        from toolcrib.lib.yaml import read_yaml

        self.place = place
        try:
            self.text = self.read = decode(text, place)
            try:
                self.document: Document = read_yaml(self.read, place)
            except ToolError:
                self.read = _with_whole_letters(self.text)
                self.document = read_yaml(self.read, place)
        except ToolError as error:
            line, column = error.details.get("line"), error.details.get("column")
            at = (line if isinstance(line, int) else 1, column if isinstance(column, int) else 1)
            raise refusal([error.message], *at) from None

    def fields(self) -> dict[str, object]:
        """The whole document, which is a mapping."""
        value = self.document.value
        if value is None:
            raise self._refuse(f"is empty; write {SAMPLE}")
        if not isinstance(value, dict):
            raise self._refuse(f"must be a mapping, not {name_type(value)}; write {SAMPLE}")
        return value

    def root(self) -> Fields:
        """The fields of the request."""
        value = self.fields()
        if ROOT not in value:
            raise self._refuse(f"has no {ROOT}; write {SAMPLE}")
        inner = value[ROOT]
        if not isinstance(inner, dict):
            raise self._refuse(f"{ROOT} must be a mapping, not {name_type(inner)}; write {SAMPLE}", (ROOT,))
        report = Report(self.place, self.document.line)
        for name in value:
            if name != ROOT:
                report.warn((ROOT, name), f"is not read; {ROOT} is the only key", self.document.line((name,)))
        return Fields(report, inner, (ROOT,))

    def code_line(self, line: int) -> int:
        """The line of the document on which a line of the example stands, as far as that can be told."""
        return self._code_start + line if self._code_start else self.document.line((ROOT, FIELD))

    @cached_property
    def _code_start(self) -> int:
        """The line above the code; 0 where lines of the code are not lines of the document."""
        layout = lay_out(self.read)
        span = None if layout is None else layout.fields.get(FIELD)
        return span.line if span is not None and span.style == "|" else 0

    def _refuse(self, text: str, at: tuple[str, ...] = ()) -> ToolError:
        line = self.document.line(at)
        return refusal([f"{self.place}:{line}: {text}"], line)


def _with_whole_letters(text: str) -> str:
    """The text of JSON with every letter beyond 16 bits as itself."""
    return _ESCAPE.sub(lambda found: _join(found[1], found[2]) if found[1] else found[0], text)


def _join(high: str, low: str) -> str:
    return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
