"""Where the server is, read from its URL; no message repeats the URL, which may hold a password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from toolcrib.model.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

# How long a connection, or one piece of an answer, may take.
SECONDS = 5.0


class Connection(Protocol):
    """What we use of a connection of the library; it has no types of its own."""

    def connect(self) -> None:
        """Reach the server, and say who asks."""

    def disconnect(self) -> None:
        """Let go, from whichever thread."""

    def send_command(self, *words: str | bytes | int) -> None:
        """Ask."""

    def read_response(self) -> object:
        """The next answer."""

    def can_read(self, timeout: float) -> bool:
        """Whether there is one, within so many seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """How to make a connection, and what to call the server."""

    make: Callable[[], Connection]
    place: str


def read_address(url: str, password: str) -> Address:
    """The server that is meant; `password` counts before the one of the URL."""
    try:
        from redis import connection as library
    except ModuleNotFoundError as problem:
        if problem.name != "redis":
            raise
        message = (
            "queue_url names a Redis server, but the package to reach it is missing; pip install 'toolcrib[redis]'"
        )
        raise SettingsError(message) from problem
    parse: Callable[[str], dict[str, Any]] = library.parse_url
    try:
        _check_path(url)
        facts = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, **parse(url), "protocol": 2}
        kind: Callable[..., Connection] = facts.pop("connection_class", library.Connection)
        if password:
            facts["password"] = password
        kind(**facts)
    except (ValueError, TypeError):
        raise SettingsError(
            "queue_url: write redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket?db=0; "
            "in a password / ? # @ are written as %2F %3F %23 %40"
        ) from None
    place = str(facts["path"]) if "path" in facts else f"{facts.get('host', 'localhost')}:{facts.get('port', 6379)}"
    return Address(make=lambda: kind(**facts), place=place)


def _check_path(url: str) -> None:
    """The library would take database 0 for a name that is no number, and no socket for one."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    is_socket = parts.scheme == "unix"
    if parts.fragment or (not database if is_socket else database and not database.isdecimal()):
        raise ValueError
