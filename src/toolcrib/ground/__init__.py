"""The only owners of child processes, connections, secrets and tool data on disk."""
