"""The whole description, put together."""

from __future__ import annotations

from toolcrib import __version__
from toolcrib.faces.http.openapi.answers import HEADERS, RESPONSES
from toolcrib.faces.http.openapi.bundle_paths import BUNDLE_PATHS
from toolcrib.faces.http.openapi.call_paths import CALL_PATHS
from toolcrib.faces.http.openapi.overview_paths import OVERVIEW_PATHS
from toolcrib.faces.http.openapi.parameters import PARAMETERS
from toolcrib.faces.http.openapi.request_paths import REQUEST_PATHS
from toolcrib.faces.http.openapi.schemas import SCHEMAS
from toolcrib.faces.http.openapi.tool_paths import TOOL_PATHS

DESCRIPTION = """\
Tools for agents: bundles of tools that many programs share, tools made of outbound HTTP calls, and calls of every tool
there is; and a tool that is missing can be asked for. What goes wrong is told as problem details (RFC 9457) with a `kind` and a cure.

A call that was refused before anything ran answers with a status from 400 on. From the moment a tool runs the status is
200 and `ok` says whether it did what was asked.

Bodies are JSON objects of at most 1 MB, nested no deeper than 64 levels, without equal keys and without NaN. Unknown query
parameters are refused.
"""

TAGS = [
    {"name": "bundles", "description": "Containers of tools, each with one switch."},
    {"name": "tools", "description": "Tools in bundles: write, read, switch, delete, list, search."},
    {"name": "calls", "description": "Calls of tools, by place or by name, and sessions that calls share."},
    {"name": "requests", "description": "Tools that do not exist yet: ask for one, follow it, deliver it."},
    {"name": "overview", "description": "What there is, results that were kept aside, and how the server is."},
]


def describe_api(*, needs_token: bool) -> dict[str, object]:
    """The OpenAPI document of a server that asks everybody for a token, or not those on its own machine."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolcrib",
            "version": __version__,
            "summary": "A tool platform for AI agents.",
            "description": DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}] if needs_token else [{"token": []}, {}],
        "tags": TAGS,
        "paths": {**BUNDLE_PATHS, **TOOL_PATHS, **CALL_PATHS, **REQUEST_PATHS, **OVERVIEW_PATHS},
        "components": {
            "schemas": SCHEMAS,
            "parameters": PARAMETERS,
            "responses": RESPONSES,
            "headers": HEADERS,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token made with `crib token create`, good for read, invoke or manage. A server that "
                    "listens on its own machine alone asks for none.",
                }
            },
        },
    }
