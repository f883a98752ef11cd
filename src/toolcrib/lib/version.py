"""The version of Toolcrib."""

__version__ = "0.1.0"
