"""Tokens of the server, their scopes, and the commands for tokens and secrets."""
