"""Secrets: storage, lookup and masking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_names, read_path, read_text, setting

if TYPE_CHECKING:
    from pathlib import Path


def _read_file(name: str, value: object) -> Path | None:
    return read_path(name, value)


class SecretsSettings(Table, name="secrets"):
    """Where secrets come from, besides those of `crib secret set`."""

    environment: tuple[str, ...] = setting(
        default=(), read=read_names, summary="variables of the host that are secrets of HTTP tools"
    )
    file: Path | None = setting(
        default=None,
        read=_read_file,
        summary="a file of further secrets, one NAME=value in each line, readable by its owner alone",
    )
    keyring: str = setting(
        default="",
        read=read_text,
        summary="the name under which the keyring of the system holds further secrets",
    )
