"""Package document."""
