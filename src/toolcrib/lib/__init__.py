"""Plain functions on plain data: no I/O, no state."""

__version__ = "0.1.0"
