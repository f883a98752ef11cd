"""The OpenAPI document of the server, derived from the tables of its endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib.version import __version__
from toolcrib.toolkit.http.openapi import components_of, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.toolkit.http.endpoint import EndpointTable

DESCRIPTION = """\
Tools for agents: bundles of tools that many programs share, tools made of outbound HTTP calls, and calls of every tool
there is; and a tool that is missing can be asked for. What goes wrong is told as problem details (RFC 9457) with a `kind` and a cure.

A call that was refused before anything ran answers with a status from 400 on. From the moment a tool runs the status is
200 and `ok` says whether it did what was asked.

Bodies are JSON objects of at most 1 MB, nested no deeper than 64 levels, without equal keys and without NaN. Unknown query
parameters are refused.
"""


def describe_api(tables: tuple[EndpointTable, ...], *, needs_token: bool) -> dict[str, object]:
    """The OpenAPI document of a server that asks every client for a token, or not those on its own machine."""
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
        "tags": [{"name": name, "description": summary} for name, summary in _tags(tables)],
        "paths": paths_of(tables),
        "components": {
            **components_of(tables),
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


def _tags(tables: tuple[EndpointTable, ...]) -> Iterable[tuple[str, str]]:
    """Each tag once, as its first table describes it."""
    summaries: dict[str, str] = {}
    for table in tables:
        summaries.setdefault(table.tag, table.summary)
    return summaries.items()
