"""Package infra."""
