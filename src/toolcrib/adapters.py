"""Chats with models: what a vendor's reply asks for becomes guarded calls, and their results what the vendor's client takes."""

from toolcrib.features.exports.chat import Adapter
from toolcrib.features.exports.providers import Anthropic, Gemini, OpenAIChat, OpenAIResponses

__all__ = ["Adapter", "Anthropic", "Gemini", "OpenAIChat", "OpenAIResponses"]
