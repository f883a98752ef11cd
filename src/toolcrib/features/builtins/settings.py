"""The table [builtins] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, read_switch, setting


class BuiltinsSettings(Table, name="builtins"):
    """The tools for files, shell and web that come with Toolcrib."""

    enabled: bool = setting(default=True, read=read_switch, opens=False, summary="whether these tools are there")
    shell_timeout_ms: int = setting(
        default=30_000, read=read_positive, opens=False, summary="how long a shell command may take"
    )
