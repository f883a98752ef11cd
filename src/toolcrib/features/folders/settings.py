"""The table [folders] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_switch, setting


class FoldersSettings(Table, name="folders"):
    """Tool folders: their registry, and the processes of their handlers."""

    watch: bool = setting(
        default=False,
        read=read_switch,
        opens=False,
        summary="whether a new build of tool folders counts at once; else it counts from the next start",
    )
    workers: int = setting(
        default=8,
        read=read_positive,
        opens=False,
        summary="how many processes of tool folders' handlers may be kept ready, over all tools",
    )
    fresh: bool = setting(
        default=False, read=read_switch, opens=False, summary="whether each call of a handler gets a process of its own"
    )
