"""The tables [requests], [queue] and [builder] of the settings."""

from __future__ import annotations

from toolcrib.infra.settings import (
    Table,
    read_names,
    read_positive,
    read_switch,
    read_text,
    read_word_set,
    read_words,
    setting,
)

MAX_CHANNEL = 200


def _read_channel(name: str, value: object) -> str:
    word = read_text(name, value)
    if any(letter.isspace() for letter in word) or len(word) > MAX_CHANNEL:
        raise ValueError(f"{name} must be at most {MAX_CHANNEL} letters without spaces, not {word!r:.80}")
    return word


def _read_command(name: str, value: object) -> tuple[str, ...]:
    """Words in their order, of which some may be the same."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f'{name} must be a list of words, such as {name} = ["program", "--flag"]')
    if not all(isinstance(word, str) and "\0" not in word for word in value) or (value and not value[0]):
        raise ValueError(f"{name} must hold texts only, and begin with a program")
    return tuple(value)


class RequestsSettings(Table, name="requests"):
    """Requests for tools that are missing."""

    missing: bool = setting(
        default=False,
        read=read_switch,
        summary="whether an empty search or a call of an unknown tool files a request for it",
    )
    strict: bool = setting(
        default=False,
        read=read_switch,
        opens=False,
        summary="whether a request that is only readable with warnings is refused",
    )


class QueueSettings(Table, name="queue"):
    """Where requests wait."""

    url: str = setting(
        default="",
        read=read_text,
        summary="the Redis server that keeps requests for tools, as `redis://host:6379/0`; empty means a file in the project",
    )
    secret: str = setting(
        default="", read=read_text, summary="the name of the secret that is the password of that server"
    )
    requests: str = setting(
        default="fullsend:builder_requests",
        read=_read_channel,
        opens=False,
        summary="the channel on which requests are published there",
    )
    ready: str = setting(
        default="builder:tool_ready",
        read=_read_channel,
        opens=False,
        summary="the channel on which finished tools are announced there",
    )
    hash: str = setting(
        default="tool_requests", read=_read_channel, opens=False, summary="what the keys of requests begin with there"
    )
    original: bool = setting(
        default=False,
        read=read_switch,
        opens=False,
        summary="whether the channels and keys of the original Builder are used there too",
    )


class BuilderSettings(Table, name="builder"):
    """How requested tools are built and proved."""

    maker: str = setting(
        default="person",
        read=read_text,
        summary="what writes the code of requested tools: person, command, openai, or the maker of a plug-in",
    )
    command: tuple[str, ...] = setting(
        default=(), read=_read_command, summary="the program that the maker `command` starts, with its words"
    )
    hosts: tuple[str, ...] = setting(default=(), read=read_words, summary="hosts that this program may reach")
    variables: tuple[str, ...] = setting(
        default=(), read=read_names, summary="variables of the host, or secrets, that this program sees"
    )
    url: str = setting(
        default="", read=read_text, summary="the OpenAI-compatible endpoint of the maker `openai`, as `https://host/v1`"
    )
    model: str = setting(default="", read=read_text, opens=False, summary="the model that it asks for")
    key: str = setting(default="", read=read_text, summary="the name of the secret that is its key")
    seconds: int = setting(
        default=900,
        read=read_positive,
        opens=False,
        summary="how long building one tool may take, with all its attempts",
    )
    attempts: int = setting(default=3, read=read_positive, opens=False, summary="how often a maker may try")
    call_seconds: int = setting(
        default=10, read=read_positive, opens=False, summary="how long one call of a tool may take while it is proved"
    )
    disk_mb: int = setting(default=256, read=read_positive, opens=False, summary="how much a maker may write")
    lease_seconds: int = setting(
        default=30,
        read=read_positive,
        opens=False,
        summary="how long a claim lasts without being renewed; then another Builder may take the request",
    )
    capabilities: frozenset[str] = setting(
        default=frozenset(),
        read=read_word_set,
        summary="capabilities that a request may ask for, written as grants are",
    )
    unproved: bool = setting(
        default=False,
        read=read_switch,
        summary="whether a tool that needs a network may go live although no recorded answers prove it",
    )
