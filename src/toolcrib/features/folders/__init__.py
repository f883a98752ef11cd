"""Package folders."""
