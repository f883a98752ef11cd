"""Package access."""
