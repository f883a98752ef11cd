"""Reading a shell command line: every simple command anywhere in it, as plain data; nothing is run.

A command line is read as bash reads it, and what it would hand to another shell (`sh -c`, `eval`, `xargs`, `sudo` …) is
read as well. It is a reading and not a wall: what a program does once it runs cannot be seen here.
"""

from __future__ import annotations

from toolcrib.pure.shell.nouns import GLOB, UNKNOWN, Assignment, Command, Redirection, Word
from toolcrib.pure.shell.reader import MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, read_commands

__all__ = [
    "GLOB",
    "MAX_COMMANDS",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "UNKNOWN",
    "Assignment",
    "Command",
    "Redirection",
    "Word",
    "read_commands",
]
