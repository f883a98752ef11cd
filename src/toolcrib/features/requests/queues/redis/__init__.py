"""Package redis."""
