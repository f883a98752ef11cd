"""Package search."""
