"""Plain functions on plain data: no I/O, no state."""
