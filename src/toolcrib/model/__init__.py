"""Package model."""
