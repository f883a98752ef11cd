"""Package scripts."""
