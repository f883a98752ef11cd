"""Read the config of a script with the executor `http_client` into HTTP requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.http_tools.description import MAX_TIMEOUT_MS, SCRIPT_KEYS, SCRIPT_SUCCESS, read_requests
from toolcrib.lib.document_fields import Fields
from toolcrib.model.tool import ONCE, Encoding, Http, HttpCall, Spelling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.document_fields import Reporter

CONFIG = "config"
# A primitive that is called by its own name sends what the caller spells out.
SPELLED_OUT = Http(
    calls=(
        HttpCall(
            method="{method}",
            url="{url}",
            headers="{headers}",
            body="{body}",
            success=SCRIPT_SUCCESS,
            timeout_ms=MAX_TIMEOUT_MS,
            encoding=Encoding.DECLARED,
            retry=ONCE,
        ),
    ),
    spelling=Spelling.BRACES,
)


def read_config(report: Reporter, config: Mapping[str, object], parameters: Mapping[str, object]) -> Http:
    """The requests that a config describes; every problem is reported with its place."""
    fields = Fields(report, config, (CONFIG,))
    known = (*SCRIPT_KEYS.requests, "calls")
    for name, meant in fields.unknown_keys(known):
        cure = f"did you mean {meant}?" if meant else f"write {', '.join(known)} only"
        fields.refuse(name, f"is unknown to http_client; {cure}")
    return read_requests(fields, parameters, SCRIPT_KEYS)
