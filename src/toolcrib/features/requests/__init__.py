"""Package requests."""
