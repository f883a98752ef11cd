"""The table [egress] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_words, setting


class EgressSettings(Table, name="egress"):
    """What connections of tools may reach besides public addresses."""

    private: tuple[str, ...] = setting(
        default=(), read=read_words, summary="private addresses that may be reached, each as `host:port`"
    )
