"""The table [approvals] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import Table, read_positive, setting


class ApprovalsSettings(Table, name="approvals"):
    """Calls that wait until a person approves them."""

    seconds: int = setting(
        default=3_600,
        read=read_positive,
        opens=False,
        summary="how long a call may wait for a person's approval, and how long the approval then holds",
    )
    wait_seconds: int = setting(
        default=20,
        read=read_positive,
        opens=False,
        summary="how long a call of an MCP client waits for a person before it is answered",
    )
    pending: int = setting(
        default=1_000,
        read=read_positive,
        opens=False,
        summary="how many calls may wait for approval at once; those of one caller may be a tenth of them",
    )
