"""The text of a request as YAML: what it holds, and where each part of it stands."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.documents import decode
from toolcrib.pure.requests.fields import Fields, name_type
from toolcrib.pure.requests.layout import ROOT, lay_out
from toolcrib.pure.requests.report import Report, refusal
from toolcrib.pure.requests.usage import FIELD

if TYPE_CHECKING:
    from toolcrib.pure.yaml import Document

SAMPLE = f"{ROOT}: and its fields below, indented by two spaces"

_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE | re.DOTALL)


class Source:
    """A document of YAML: its text, what was read of it, its value, and where things stand in it.

    `read` is the text itself but for letters that JSON wrote as two halves, which YAML does not know.
    """

    def __init__(self, text: str | bytes, place: str) -> None:
        from toolcrib.pure.yaml import read_yaml

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
