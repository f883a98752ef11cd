"""Package shell."""
