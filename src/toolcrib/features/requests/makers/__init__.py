"""Makers write the code of a requested tool: a person, a command or a model."""
