"""Parse the URL of a PostgreSQL database; messages quote nothing of it but the names of its options."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from toolcrib.lib.http_syntax import Url, parse_authority
from toolcrib.model.errors import Kind, ToolError

POSTGRESQL_PORT = 5432
# Other parameters of libpq name files of this machine, further hosts, or settings that would end the read-only session.
OPTIONS = ("sslmode", "channel_binding", "application_name", "connect_timeout", "sslrootcert")
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*)(?::(?P<password>[^@/?#]*))?@)?(?P<place>[^/?#]*)(?P<rest>.*)", re.DOTALL
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseServer:
    """A database of a PostgreSQL server; parts that may be secret are not in the `repr`."""

    url: Url
    name: str = field(repr=False)
    user: str = field(repr=False)
    password: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = ()


def split_url(text: str) -> re.Match[str] | None:
    """The user, password, place and rest of a URL, not decoded; None if it is not a PostgreSQL URL."""
    return _URL.fullmatch(text)


def parse_server(text: str) -> DatabaseServer:
    """Parse a URL; raises ToolError for one that is not plain, such as one with several hosts or other options."""
    parts = split_url(text)
    if parts is None or any(letter <= " " for letter in text):
        raise _refusal('is not a URL of PostgreSQL; write "postgresql://user:password@host/database"')
    host, port = _place(parts["place"])
    path, _, query = parts["rest"].partition("?")
    options = parse_qsl(query, keep_blank_values=True, max_num_fields=20) if query else []
    for name, value in options:
        if name not in OPTIONS or (name == "sslrootcert" and value != "system"):
            known = ", ".join(OPTIONS).replace("sslrootcert", "sslrootcert=system")
            raise _refusal(f"has the option {name[:40]!r}, which is refused; only {known} are known")
    if not parts["user"]:
        raise _refusal('names no user; write "postgresql://user:password@host/database"')
    name = unquote(path.removeprefix("/"))
    if not name or "/" in name or "#" in path:
        raise _refusal('names no database; write "postgresql://user:password@host/database"')
    return DatabaseServer(
        url=Url(scheme="postgresql", host=host, port=port or POSTGRESQL_PORT, target="/"),
        name=name,
        user=unquote(parts["user"] or ""),
        password=unquote(parts["password"] or ""),
        options=tuple(options),
    )


def _place(text: str) -> tuple[str, int | None]:
    if "," in text:
        raise _refusal("names several hosts; write one")
    if not text or text.startswith("%2F"):
        raise _refusal("names no host; write one, such as localhost")
    try:
        return parse_authority(text)
    except ToolError as problem:
        raise _refusal(f"has a host that is refused: {problem.message}") from None


def _refusal(text: str) -> ToolError:
    return ToolError(Kind.VALIDATION, text)
