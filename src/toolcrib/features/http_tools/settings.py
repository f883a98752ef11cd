"""The table [http_tools] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_text, read_words, setting


class HttpToolsSettings(Table, name="http_tools"):
    """What HTTP tools of bundles may reach and send."""

    hosts: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="hosts that HTTP tools of bundles may reach: `api.example.com`, `*.example.com`, either with a port",
    )
    version: str = setting(
        default="",
        read=read_text,
        opens=False,
        summary="what `${version}` means in HTTP tools; without one, the version of Toolcrib",
    )
    max_retries: int = setting(
        default=4,
        read=read_positive,
        opens=False,
        summary="how often an HTTP tool may retry a request, even if it allows more itself",
    )
    max_sent_bytes: int = setting(
        default=1_000_000, read=read_positive, opens=False, summary="how large a request of an HTTP tool may be"
    )
    max_response_bytes: int = setting(
        default=5_000_000, read=read_positive, opens=False, summary="how large an answer an HTTP tool reads"
    )
