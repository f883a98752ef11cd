"""SQL tools: one statement with bound parameters, on SQLite files of the workspace or on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_positive, read_switch, read_words, setting
from toolcrib.model.tool import Sql

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


class SqlToolsSettings(Table, name="sql_tools"):
    """What SQL tools may reach and read."""

    hosts: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="PostgreSQL servers that SQL tools may reach: `db.example.com` (port 5432), `*.example.com`, either with a port",
    )
    superuser: bool = setting(
        default=False,
        read=read_switch,
        summary="whether SQL tools may use a role of PostgreSQL that can read files of its server or start programs there",
    )
    max_rows: int = setting(
        default=10_000,
        read=read_positive,
        opens=False,
        summary="how many rows a call reads, even if its tool allows more",
    )
    max_bytes: int = setting(
        default=5_000_000,
        read=read_positive,
        opens=False,
        summary="how large the rows of a call may be together, even if its tool allows more",
    )
    connections: int = setting(
        default=8,
        read=read_positive,
        opens=False,
        summary="how many statements run at once: on all SQLite files together, each in a process of its own that waits for the next, and on each PostgreSQL database",
    )


def register(plugins: Plugins) -> None:
    """Add the runner of SQL tools, and the command that inspects databases."""
    plugins.add_runner("sql", "toolcrib.features.sql_tools.runner:SqlRunner", given=_runner_parts, runs=Sql)
    plugins.add_resource("databases", "toolcrib.features.sql_tools.inspection:Databases")
    plugins.add_check("toolcrib.features.sql_tools.runner:check_hosts")
    plugins.add_tool_check("toolcrib.features.sql_tools.inspection:find_problems")
    plugins.add_command(
        "sql", "toolcrib.features.sql_tools.commands:sql", "Inspect databases, and write tools for them."
    )
    plugins.add_settings("sql_tools", SqlToolsSettings)


def _runner_parts(resources: Resources) -> dict[str, object]:
    settings = resources.settings["sql_tools"]
    return {
        "jail": resources.get("jail"),
        "sandbox": resources.get("sandbox"),
        "workspace_policy": resources.get("workspace_policy"),
        "egress": lambda: resources.get("egress"),
        "secrets": resources.data.secrets,
        "variable": resources.variable,
        "environment": resources.environment,
        "hosts": settings.hosts,
        "max_rows": settings.max_rows,
        "max_bytes": settings.max_bytes,
        "connections": settings.connections,
        "superuser": settings.superuser,
    }
