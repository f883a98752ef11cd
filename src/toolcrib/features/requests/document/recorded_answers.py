"""Answers of web servers, written down: nobody is asked in earnest while a tool is proved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.fields import Fields, Report, show
from toolcrib.features.requests.document.yaml_text import ROOT, Source
from toolcrib.lib.http_syntax import check_header, check_method, parse_url
from toolcrib.model.errors import ToolError
from toolcrib.model.toolrequest import RecordedAnswer

if TYPE_CHECKING:
    from toolcrib.features.requests.document.fields import Steps

FIELD = "answers"
MAX_ITEMS = 64
MAX_WORD = 200
MAX_URL = 8_000
MAX_BODY = 100_000
STATUSES = range(200, 600)
KEYS = ("url", "method", "status", "headers", "body")


def read_answers(text: str | bytes, *, place: str = FIELD) -> tuple[RecordedAnswer, ...]:
    """The answers of a document of their own: a list of them, or the key `answers` with that list."""
    source = Source(text, place)
    listed = isinstance(source.document.value, list)

    def line_of(at: Steps) -> int:
        return source.document.line(at[2:] if listed else at[1:])

    values = {FIELD: source.document.value} if listed else source.fields()
    root = Fields(Report(place, line_of), values, (ROOT,))
    if FIELD not in root:
        root.refuse(FIELD, "is missing; write answers: and a list, each item with its url")
    answers = read_answer_list(root)
    root.report.finish(strict=False)
    return answers


def read_answer_list(root: Fields) -> tuple[RecordedAnswer, ...]:
    """The answers that a mapping holds."""
    return tuple(_read_answer(entry) for entry in root.entries(FIELD, MAX_ITEMS, "url: …"))


def _read_answer(entry: Fields) -> RecordedAnswer:
    entry.warn_of_strangers(KEYS)
    body, kind = _read_body(entry)
    headers = _read_headers(entry)
    if kind and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = kind
    return RecordedAnswer(
        url=_read_url(entry), method=_read_method(entry), status=_read_status(entry), headers=headers, body=body
    )


def _read_url(entry: Fields) -> str:
    url = entry.required_text("url", "https://api.example.com/users", longest=MAX_URL)
    try:
        return str(parse_url(url)) if url.strip() else ""
    except ToolError as error:
        entry.refuse("url", error.message)
        return ""


def _read_method(entry: Fields) -> str:
    method = (entry.text("method", MAX_WORD) or "GET").upper()
    try:
        check_method(method)
    except ToolError as error:
        entry.refuse("method", error.message)
    return method


def _read_status(entry: Fields) -> int:
    status = entry.values.get("status", 200)
    if type(status) is int and status in STATUSES:
        return status
    entry.refuse("status", f"must be a number from {STATUSES[0]} to {STATUSES[-1]}, not {show(status)}; write 200")
    return 200


def _read_headers(entry: Fields) -> dict[str, str]:
    written = entry.values.get("headers", {})
    if not isinstance(written, dict) or len(written) > MAX_ITEMS:
        entry.refuse("headers", f"must be a mapping of at most {MAX_ITEMS} headers; write Content-Type: text/plain")
        return {}
    found: dict[str, str] = {}
    for name, value in written.items():
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            check_header(name, text)
        except ToolError as error:
            entry.refuse("headers", error.message)
        found[name] = text
    return found


def _read_body(entry: Fields) -> tuple[str, str]:
    """The body as text, and its kind where it was written as a value and becomes JSON."""
    body = entry.values.get("body", "")
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    if len(text) > MAX_BODY:
        entry.refuse("body", f"has {len(text)} letters, the limit is {MAX_BODY}; shorten it")
        return "", ""
    return text, "" if isinstance(body, str) else "application/json"
