"""What a caller of the server may be allowed to do."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """What a token is good for."""

    READ = "read"
    INVOKE = "invoke"
    MANAGE = "manage"
