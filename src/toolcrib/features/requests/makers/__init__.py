"""Package makers."""
