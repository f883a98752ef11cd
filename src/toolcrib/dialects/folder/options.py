"""The fields of `schema.json` that a tool may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.folder.report import show
from toolcrib.dialects.folder.schemas import read_schema
from toolcrib.model.errors import ToolError
from toolcrib.pure.capabilities import is_capability

if TYPE_CHECKING:
    from toolcrib.dialects.folder.report import SchemaFile

OPTIONAL = ("requires", "hosts", "outputSchema", "timeoutMs", "tags", "displayName")
MAX_TIMEOUT_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What a tool adds to its ten fields."""

    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    output_schema: dict[str, object] | None = None
    timeout_ms: int | None = None
    tags: tuple[str, ...] = ()
    display_name: str = ""


def read_options(file: SchemaFile) -> Options:
    """Read the optional fields; what is refused is left out."""
    return Options(
        requires=_requires(file),
        hosts=_hosts(file),
        output_schema=read_schema(file, "outputSchema") or None,
        timeout_ms=_timeout(file),
        tags=_texts(file, "tags"),
        display_name=_display_name(file),
    )


def _requires(file: SchemaFile) -> frozenset[str]:
    capabilities = _texts(file, "requires")
    for index, capability in enumerate(capabilities):
        if not is_capability(capability):
            text = f"requires: {show(capability)} is not in dotted notation; write it like fs.write"
            file.refuse(("requires", index), text)
    return frozenset(capabilities)


def _hosts(file: SchemaFile) -> tuple[str, ...] | None:
    if "hosts" not in file.fields:
        return None
    hosts = _texts(file, "hosts")
    if not hosts:
        return ()
    from toolcrib.ground.egress.hosts import parse_hosts

    for index, host in enumerate(hosts):
        try:
            parse_hosts([host])
        except ToolError as error:
            file.refuse(("hosts", index), f"hosts: {error.message}")
    return hosts


def _timeout(file: SchemaFile) -> int | None:
    if "timeoutMs" not in file.fields:
        return None
    timeout = file.fields["timeoutMs"]
    if isinstance(timeout, int) and not isinstance(timeout, bool) and 0 < timeout <= MAX_TIMEOUT_MS:
        return timeout
    text = f"must be a whole number of milliseconds from 1 to {MAX_TIMEOUT_MS}"
    file.refuse(("timeoutMs",), f'timeoutMs: {show(timeout)} {text}; write "timeoutMs": 30000')
    return None


def _texts(file: SchemaFile, name: str) -> tuple[str, ...]:
    value = file.fields.get(name, [])
    if not isinstance(value, list):
        file.refuse((name,), f'{name}: {show(value)} is no list; write "{name}": […]')
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            file.refuse((name, index), f"{name}: {show(item)} is no text; write it in quotes")
    return tuple(item for item in value if isinstance(item, str) and item.strip())


def _display_name(file: SchemaFile) -> str:
    value = file.fields.get("displayName", "")
    if isinstance(value, str) and (value.strip() or "displayName" not in file.fields):
        return value.strip()
    file.refuse(("displayName",), f"displayName: {show(value)} is no name; write it in quotes, or remove it")
    return ""
