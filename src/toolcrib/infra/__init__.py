"""Owners of child processes, connections, secrets and data on disk."""
