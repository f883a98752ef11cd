"""The versions of the format that documents are written in: any text is taken, and our own are a series."""

from __future__ import annotations

import re

SERIES = "toolcrib-"
NUMBER = 1
SCHEMA_VERSION = f"{SERIES}{NUMBER}"

_OURS = re.compile(rf"{SERIES}([1-9][0-9]{{0,8}})", re.ASCII)


def is_newer(schema_version: str) -> bool:
    """Whether a later Toolcrib wrote it, so that this one may read it and must not change it."""
    ours = _OURS.fullmatch(schema_version)
    return ours is not None and int(ours[1]) > NUMBER


def remark_on(schema_version: str) -> str:
    """What the author should know about the version; empty for our own."""
    if schema_version == SCHEMA_VERSION:
        return ""
    if is_newer(schema_version):
        return "was written by a later version of Toolcrib; what is new in it is not read"
    return f'is not known here and was read as "{SCHEMA_VERSION}"'
