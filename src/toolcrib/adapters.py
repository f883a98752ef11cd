"""Chat adapters: turn the tool calls of a vendor's reply into guarded calls, and their results into the vendor's messages."""

from toolcrib.features.exports.chat import Adapter
from toolcrib.features.exports.providers import Anthropic, Gemini, OpenAIChat, OpenAIResponses

__all__ = ["Adapter", "Anthropic", "Gemini", "OpenAIChat", "OpenAIResponses"]
