"""The description of the API that machines read: OpenAPI 3.1, written by hand, so that it says what is promised."""

from __future__ import annotations

from toolcrib.faces.http.openapi.document import describe_api

__all__ = ["describe_api"]
