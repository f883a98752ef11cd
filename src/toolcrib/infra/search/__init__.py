"""The search index of tools."""
