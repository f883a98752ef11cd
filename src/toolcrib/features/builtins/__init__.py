"""Package builtins."""
