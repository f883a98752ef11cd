"""Whoever writes the code of a requested tool: a person, a program of the operator's, a model behind an endpoint."""
