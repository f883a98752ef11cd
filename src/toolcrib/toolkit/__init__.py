"""Package toolkit."""
