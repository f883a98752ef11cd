"""Plain Python files as tools."""
