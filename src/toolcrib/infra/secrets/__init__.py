"""Package secrets."""
