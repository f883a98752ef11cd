"""Package gate."""
