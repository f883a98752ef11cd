"""Chats with models: what a vendor's reply asks for becomes guarded calls, and their results what the vendor's client takes."""

from toolcrib.adapters.adapter import Adapter
from toolcrib.adapters.anthropic import Anthropic
from toolcrib.adapters.gemini import Gemini
from toolcrib.adapters.openai import OpenAIChat, OpenAIResponses

__all__ = ["Adapter", "Anthropic", "Gemini", "OpenAIChat", "OpenAIResponses"]
