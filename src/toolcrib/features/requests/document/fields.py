"""Read the YAML of a request field by field: a problem is recorded with its line, and reading continues.

`RequestFields` gives out values, a `RequestReport` collects problems and warnings, and a `RequestText` knows the line of each part.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from toolcrib.lib.documents import decode
from toolcrib.lib.hidden_text import find_hidden
from toolcrib.lib.names import did_you_mean
from toolcrib.lib.yaml import events, name_type, read_yaml
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    Steps = tuple[str | int, ...]
    Remark = tuple[int, str]

ROOT = "tool_request"
# The field that holds code, for which problems name the line within it.
CODE_FIELD = "example_usage"
SAMPLE = f"{ROOT}: and its fields below, indented by two spaces"
SHOWN = 80
MAX_LISTED = 100
MAX_GUESSES = 20
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")

_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE | re.DOTALL)


class RequestText:
    """A YAML document: its text, its value, and the lines of its parts.

    `read` is the text itself, except that surrogate pairs of JSON escapes, which YAML does not know, are joined.
    """

    def __init__(self, text: str | bytes, place: str) -> None:
        self.place = place
        try:
            self.text = self.read = decode(text, place)
            try:
                self.document = read_yaml(self.read, place)
            except ToolError:
                self.read = _join_surrogates(self.text)
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

    def root(self) -> RequestFields:
        """The fields of the request."""
        value = self.fields()
        if ROOT not in value:
            raise self._refuse(f"has no {ROOT}; write {SAMPLE}")
        inner = value[ROOT]
        if not isinstance(inner, dict):
            raise self._refuse(f"{ROOT} must be a mapping, not {name_type(inner)}; write {SAMPLE}", (ROOT,))
        report = RequestReport(self.place, self.document.line)
        for name in value:
            if name != ROOT:
                report.warn((ROOT, name), f"is not read; {ROOT} is the only key", self.document.line((name,)))
        return RequestFields(report, inner, (ROOT,))

    def code_line(self, line: int) -> int:
        """The line of the document for a line of the example, as far as it is known."""
        return self._code_start + line if self._code_start else self.document.line((ROOT, CODE_FIELD))

    @cached_property
    def _code_start(self) -> int:
        """The line above the code; 0 where lines of the code are not lines of the document."""
        layout = lay_out(self.read)
        span = None if layout is None else layout.fields.get(CODE_FIELD)
        return span.line if span is not None and span.style == "|" else 0

    def _refuse(self, text: str, at: tuple[str, ...] = ()) -> ToolError:
        line = self.document.line(at)
        return refusal([f"{self.place}:{line}: {text}"], line)


@dataclass(frozen=True, slots=True)
class RequestFields:
    """A mapping of a document, and its path."""

    report: RequestReport
    values: Mapping[str, object]
    at: Steps

    def __contains__(self, name: str) -> bool:
        """Whether there is a value; null counts as none."""
        return self.values.get(name) is not None

    def refuse(self, name: str, text: str) -> None:
        """Record a problem of a key."""
        self.report.refuse((*self.at, name), text)

    def warn(self, name: str, text: str) -> None:
        """Record a warning about a key."""
        self.report.warn((*self.at, name), text)

    def required_text(self, name: str, sample: str, longest: int) -> str:
        """A required text, empty if it is refused; `sample` is an example for the message."""
        if name not in self:
            self.refuse(name, f"is missing; write {name}: {sample}")
            return ""
        value = self.values[name]
        if isinstance(value, str) and not value.strip():
            self.refuse(name, f"must not be empty; write {name}: {sample}")
            return ""
        return self.text(name, longest)

    def text(self, name: str, longest: int) -> str:
        """A text, empty if it is absent or refused."""
        if name not in self:
            self._warn_of_null(name)
            return ""
        value = self.values[name]
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {show(value)}; write it in quotes")
            return ""
        return checked_text(self.report, (*self.at, name), value, longest)

    def switch(self, name: str) -> bool | None:
        """A boolean; None if it is absent or refused."""
        value = self.values.get(name)
        if name in self and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else None

    def items(self, name: str, at_most: int) -> list[tuple[Steps, object]]:
        """The items of a list, each with its path; empty if it is absent or refused."""
        if name not in self:
            self._warn_of_null(name)
            return []
        value = self.values[name]
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {name_type(value)}; write one item per line: - …")
            return []
        if len(value) > at_most:
            self.refuse(name, f"has {len(value)} items, the limit is {at_most}; leave some out")
            return []
        return [((*self.at, name, index), item) for index, item in enumerate(value)]

    def entries(self, name: str, at_most: int, sample: str) -> list[RequestFields]:
        """The items of a list of mappings; `sample` is how one begins."""
        found = []
        for at, item in self.items(name, at_most):
            if isinstance(item, dict):
                found.append(RequestFields(self.report, item, at))
            else:
                self.report.refuse(at, f"must be a mapping, not {name_type(item)}; write - {sample}")
        return found

    def unknown_keys(self, known: Collection[str]) -> list[tuple[str, str]]:
        """The keys that are not read, each with a suggestion if it looks like a typing mistake."""
        unknown = [name for name in self.values if name not in known]
        return [(name, did_you_mean(name, known) if place < MAX_GUESSES else "") for place, name in enumerate(unknown)]

    def warn_of_unknown_keys(self, known: Collection[str]) -> None:
        """Warn of keys that are not read."""
        for name, question in self.unknown_keys(known):
            self.warn(name, f"is kept and not read; {question or 'remove it, or say it in the description'}")

    def _warn_of_null(self, name: str) -> None:
        if name in self.values:
            self.warn(name, "is empty; write a value, or remove the key")


def checked_text(report: RequestReport, at: Steps, text: str, longest: int) -> str:
    """The text, empty if it is too long or contains control characters; invisible characters get a warning."""
    if len(text) > longest:
        report.refuse(at, f"has {len(text)} characters, the limit is {longest}; shorten it")
        return ""
    if found := CONTROL.search(text):
        report.refuse(at, f"holds the control character U+{ord(found[0]):04X}; remove it")
        return ""
    if hidden := find_hidden(text):
        report.warn(at, f"holds U+{ord(hidden[0].character):04X}, which people do not see and models read; remove it")
    return text


class RequestReport:
    """Collects the problems and warnings of a document; `line_of` gives the line of a path."""

    def __init__(self, place: str, line_of: Callable[[Steps], int]) -> None:
        self.place = place
        self._line_of = line_of
        self._problems: list[Remark] = []
        self._warnings: list[Remark] = []

    def refuse(self, at: Steps, text: str, line: int = 0) -> None:
        """Record a problem, for which the request is refused; `line` is its line, if not the first of the field."""
        self._problems.append((line or self._line_of(at), self._say(at, text, line)))

    def warn(self, at: Steps, text: str, line: int = 0) -> None:
        """Record a warning."""
        self._warnings.append((line or self._line_of(at), self._say(at, text, line)))

    @property
    def refused(self) -> int:
        """The number of problems so far."""
        return len(self._problems)

    def finish(self, *, strict: bool) -> tuple[str, ...]:
        """The warnings; raises one ToolError with every problem, in strict mode with the warnings too."""
        problems = [*self._problems, *(self._warnings if strict else ())]
        if problems:
            raise refusal(_listed(problems), min(line for line, _ in problems))
        return tuple(_listed(self._warnings))

    def _say(self, at: Steps, text: str, line: int) -> str:
        # Every path begins with the root.
        place = f"{self.place}:{line or self._line_of(at)}"
        return _printable(f"{place}: {_spell(at[1:])}: {text}" if at[1:] else f"{place}: {text}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The value of a field: its start and end in the text, its line, and how it is written.

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
    """The layout of a text that is known to be valid YAML; None if it has no request."""
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


def refusal(problems: list[str], line: int, column: int = 1) -> ToolError:
    """The one error for everything that is wrong with a request."""
    details = {"problems": problems, "line": line, "column": column}
    return ToolError(Kind.VALIDATION, "\n".join(problems), details=details)


def show(value: object) -> str:
    """A value for a message, in ASCII so that invisible characters show."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _layout(key: Any, value: Any, stream: Iterator[Any]) -> Layout:
    return Layout(
        header=key.end_mark.index,
        start=value.end_mark.index,
        column=value.end_mark.column,
        flow=value.flow_style,
        fields={name.value: _span(entry) for name, entry in _members(stream)},
    )


def _members(stream: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """The keys of the current mapping, each with the first event of its value; the rest of the value is skipped."""
    while not isinstance(key := next(stream), yaml.MappingEndEvent):
        value = next(stream)
        yield key, value
        depth = int(isinstance(value, yaml.CollectionStartEvent))
        while depth:
            event = next(stream)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)


def _span(event: Any) -> Span:
    style = None if isinstance(event, yaml.CollectionStartEvent) else getattr(event, "style", None) or ""
    return Span(start=event.start_mark.index, end=event.end_mark.index, line=event.start_mark.line + 1, style=style)


def _join_surrogates(text: str) -> str:
    """The text of JSON with escaped surrogate pairs joined."""
    return _ESCAPE.sub(lambda found: _join(found[1], found[2]) if found[1] else found[0], text)


def _join(high: str, low: str) -> str:
    return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)


def _spell(at: Steps) -> str:
    """The path of a field as people write it: `inputs[1].type`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at)
    return "".join(steps).removeprefix(".")


def _printable(text: str) -> str:
    """The text on one line, with characters that are not printable escaped."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _listed(remarks: list[Remark]) -> list[str]:
    listed = [text for _, text in sorted(remarks, key=lambda remark: remark[0])]
    more = len(listed) - MAX_LISTED
    return [*listed[:MAX_LISTED], f"and {more} more of this kind"] if more > 0 else listed
