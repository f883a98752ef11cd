"""The table [run_history] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_switch, setting


class RunHistorySettings(Table, name="run_history"):
    """What a person ran on the web page."""

    enabled: bool = setting(
        default=True,
        read=read_switch,
        opens=False,
        summary="whether runs on the web page are stored with their arguments, secrets masked, for the person who made them",
    )
    kept: int = setting(
        default=200,
        read=read_positive,
        opens=False,
        summary="how many runs of a person are stored; the oldest go first",
    )
