"""Package files."""
