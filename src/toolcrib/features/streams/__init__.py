"""Streams: read the progress and messages of a call and what its tool yields while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the function that makes a call and streams its events."""
    plugins.add_resource("call_stream", "toolcrib.features.streams.call_stream:stream_call", given=lambda _: {})
