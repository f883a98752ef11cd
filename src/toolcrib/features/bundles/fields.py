"""Read `impl` of a document: a registered function, HTTP requests, or an SQL statement."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.features.http_tools.description import DOCUMENT_KEYS, read_requests
from toolcrib.features.sql_tools.description import DOCUMENT_KEYS as SQL_KEYS
from toolcrib.features.sql_tools.description import read_statement
from toolcrib.lib.positions import show
from toolcrib.model.tool import MAX_CALLS_KEY, Registered, Spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from toolcrib.lib.document_fields import Fields
    from toolcrib.model.tool import Http, Sql

    Implementation = Registered | Http | Sql

GO_KEYS = ("goFunc",)
NOTHING = Registered(key="")


class ToolType(StrEnum):
    """How a tool is implemented."""

    GO = "go"
    HTTP = "http"
    SQL = "sql"


def read_implementation(
    document: Fields, parameters: Mapping[str, object], secrets: Collection[str] = ()
) -> Implementation:
    """Read `impl`, which must match `type`; `secrets` are the names that are known to be secrets."""
    impl = document.part("impl")
    if "type" not in document or impl is None:
        return NOTHING
    known = document.values["type"]
    if not isinstance(known, str) or known not in [*ToolType]:
        document.refuse("type", f'{show(known)} is unknown; write "go", "http" or "sql"')
        return NOTHING
    if known == ToolType.SQL:
        return _read_sql(impl, parameters)
    return _read_function(impl) if known == ToolType.GO else _read_http(impl, parameters, secrets)


def _read_function(impl: Fields) -> Registered:
    _refuse_keys(impl, (*DOCUMENT_KEYS.requests, "calls", "hosts"), 'is for tools of type "http"')
    impl.require({"goFunc": '"the key of a registered function"'})
    impl.warn_of_unknown_keys((*GO_KEYS, *DOCUMENT_KEYS.requests, "calls", "hosts", "model", MAX_CALLS_KEY))
    return Registered(key=impl.text("goFunc", may_be_empty=False), model=impl.text("model", may_be_empty=False))


def _read_http(impl: Fields, parameters: Mapping[str, object], secrets: Collection[str]) -> Http:
    _refuse_keys(impl, GO_KEYS, 'is for tools of type "go"')
    impl.warn_of_unknown_keys((*DOCUMENT_KEYS.requests, *GO_KEYS, "calls", "hosts", "model", MAX_CALLS_KEY))
    return read_requests(impl, parameters, DOCUMENT_KEYS, secrets)


def _read_sql(impl: Fields, parameters: Mapping[str, object]) -> Sql:
    _refuse_keys(impl, GO_KEYS, 'is for tools of type "go"')
    requests = tuple(key for key in (*DOCUMENT_KEYS.requests, "calls") if key not in SQL_KEYS)
    _refuse_keys(impl, requests, 'is for tools of type "http"')
    impl.warn_of_unknown_keys((*SQL_KEYS, *GO_KEYS, *requests, "hosts", MAX_CALLS_KEY))
    return read_statement(impl, parameters, Spelling.DOLLARS)


def _refuse_keys(fields: Fields, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in fields:
            fields.refuse(name, why if ";" in why else f"{why}; remove it")
