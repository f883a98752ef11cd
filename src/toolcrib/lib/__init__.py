"""Plain functions on plain data."""
