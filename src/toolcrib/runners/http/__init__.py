"""Requests to the outside: those of the primitive `http_client`, and those that tools of the platform are made of."""

from toolcrib.runners.http.primitive import HttpDriver
from toolcrib.runners.http.runner import HttpRunner

__all__ = ["HttpDriver", "HttpRunner"]
