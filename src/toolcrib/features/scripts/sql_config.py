"""Read the config of a script with the executor `sql_client` into an SQL statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.sql_tools.description import KEYS, read_statement
from toolcrib.lib.document_fields import Fields
from toolcrib.model.tool import Spelling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.document_fields import Reporter
    from toolcrib.model.tool import Sql

SQL_CLIENT = "sql_client"
CONFIG = "config"


def read_sql(
    report: Reporter, config: Mapping[str, object], parameters: Mapping[str, object], hosts: tuple[str, ...] | None
) -> Sql:
    """The statement that a config describes; every problem is reported with its place."""
    fields = Fields(report, config, (CONFIG,))
    for name, meant in fields.unknown_keys(KEYS):
        cure = f"did you mean {meant}?" if meant else f"write {', '.join(KEYS)} only"
        fields.refuse(name, f"is unknown to {SQL_CLIENT}; {cure}")
    return read_statement(fields, parameters, Spelling.BRACES, hosts)
