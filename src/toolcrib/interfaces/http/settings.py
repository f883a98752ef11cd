"""The table [server] of the settings."""

from __future__ import annotations

from toolcrib.features.access.settings import mode_of_calls, visible_bundles, visible_tags, visible_tools
from toolcrib.infra.settings import Table, read_positive, read_text, read_words, setting

MAX_PORT = 65_535


def _read_port(name: str, value: object) -> int:
    number = read_positive(name, value)
    if number > MAX_PORT:
        raise ValueError(f"{name} must be at most {MAX_PORT}, not {number}")
    return number


class ServerSettings(Table, name="server"):
    """The HTTP server: where it listens, and how much it takes."""

    host: str = setting(
        default="127.0.0.1", read=read_text, opens=False, summary="the address that the server listens on"
    )
    port: int = setting(default=8765, read=_read_port, opens=False, summary="the port that the server listens on")
    hosts: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="further names by which the server may be called, beside that of its address",
    )
    origins: tuple[str, ...] = setting(
        default=(), read=read_words, summary="web pages that may call the server, each as `https://host`"
    )
    calls_per_minute: int = setting(
        default=60_000, read=read_positive, opens=False, summary="how many requests one caller may make in a minute"
    )
    concurrency: int = setting(
        default=256, read=read_positive, opens=False, summary="how many calls of tools the server performs at once"
    )
    queue: int = setting(
        default=4_096,
        read=read_positive,
        opens=False,
        summary="how many more calls may wait for a slot before further ones are refused",
    )
    connections: int = setting(
        default=12_000, read=read_positive, opens=False, summary="how many connections may be open"
    )
    address_connections: int = setting(
        default=1_000,
        read=read_positive,
        opens=False,
        summary="how many connections one address may have open; where it is absent, the loopback address may have all",
    )
    header_seconds: int = setting(
        default=10, read=read_positive, opens=False, summary="how long a request may take until its headers are there"
    )
    body_seconds: int = setting(
        default=10, read=read_positive, opens=False, summary="how long it may take after that until its body is there"
    )
    keep_alive_seconds: int = setting(
        default=5, read=read_positive, opens=False, summary="how long a connection may stay open between two requests"
    )
    total_seconds: int = setting(
        default=600, read=read_positive, opens=False, summary="how long a request may take altogether"
    )
    body_bytes: int = setting(
        default=1_000_000, read=read_positive, opens=False, summary="how large the body of a request may be"
    )
    drain_seconds: int = setting(
        default=20, read=read_positive, opens=False, summary="how long calls may go on when the server is told to end"
    )
    tools: frozenset[str] = visible_tools("a client")
    bundles: frozenset[str] = visible_bundles("a client")
    tags: frozenset[str] = visible_tags("a client")
    mode: str = mode_of_calls("a client")
    oauth_issuer: str = setting(
        default="",
        read=read_text,
        summary="the authorization server whose tokens are accepted, as its tokens name it in `iss`",
    )
    oauth_resource: str = setting(
        default="",
        read=read_text,
        opens=False,
        summary="the URL of this server that its tokens must be made for, such as `https://tools.example/mcp`",
    )
    oauth_keys: str = setting(
        default="",
        read=read_text,
        summary="where the keys of `oauth_issuer` are (JWKS); found out from the issuer if absent",
    )
