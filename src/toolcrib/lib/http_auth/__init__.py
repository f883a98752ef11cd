"""Authentication of HTTP tools: the declaration `auth`, and signatures over requests.

Everything here works on plain data: secrets are looked up elsewhere, nothing is sent, and the time is a parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.http_syntax import Url

REFERENCE = re.compile(r"\$\{(secret|env):([A-Za-z_][A-Za-z0-9_]{0,63})\}")


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a value by name: a secret, or an environment variable of the host."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A request as it will be sent, with all parts that a signature can cover; `headers` are those of the tool."""

    method: str
    url: Url
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        """The path as it is sent."""
        return self.url.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query as it is sent, without its question mark."""
        return self.url.target.partition("?")[2]

    def header(self, name: str) -> str:
        """The value of a header without surrounding spaces; raises ToolError if the request does not have it."""
        lower = name.lower()
        if lower == "host":
            return self.url.authority
        for known, value in self.headers.items():
            if known.lower() == lower:
                return value.strip(" \t")
        raise ToolError(
            Kind.VALIDATION, f"auth signs the header {name}, which the request does not have; add it to headers"
        )
