"""Streams: hear what a call tells while it runs, and what its tool yields, before the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add what turns one call into a stream of events."""
    plugins.add_resource("call_stream", "toolcrib.features.streams.call_stream:stream_call", given=lambda _: {})
