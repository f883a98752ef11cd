"""Toolcrib: write a tool down once; any agent finds it and calls it under guard."""

__version__ = "0.1.0"
