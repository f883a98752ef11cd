"""Requests for tools: the document that asks for one, read, written, edited and numbered. Plain functions on text."""

from __future__ import annotations

from toolcrib.pure.requests.allowances import read_allowance
from toolcrib.pure.requests.answers import read_answers
from toolcrib.pure.requests.editing import set_field, with_id
from toolcrib.pure.requests.ids import is_request_id, request_day, spell_id
from toolcrib.pure.requests.messages import Message, read_message, readable_id
from toolcrib.pure.requests.reading import name_problem, read_request
from toolcrib.pure.requests.wishes import same_text
from toolcrib.pure.requests.writing import write_request

__all__ = [
    "Message",
    "is_request_id",
    "name_problem",
    "read_allowance",
    "read_answers",
    "read_message",
    "read_request",
    "readable_id",
    "request_day",
    "same_text",
    "set_field",
    "spell_id",
    "with_id",
    "write_request",
]
