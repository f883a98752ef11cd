"""Package http_tools."""
