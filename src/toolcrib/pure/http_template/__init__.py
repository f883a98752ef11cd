"""Requests with slots written as `${name}`: read once, checked when they are stored, filled in one pass at each call."""

from toolcrib.pure.http_template.call import CallTemplate, Written, compile_call
from toolcrib.pure.http_template.check import check_http, urls_of
from toolcrib.pure.http_template.slots import Slot

__all__ = ["CallTemplate", "Slot", "Written", "check_http", "compile_call", "urls_of"]
