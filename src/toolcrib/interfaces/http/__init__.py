"""The HTTP server and its API."""
