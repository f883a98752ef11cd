"""Package exports."""
