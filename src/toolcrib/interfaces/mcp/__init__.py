"""The Model Context Protocol: every tool for every client, over stdio and HTTP."""
