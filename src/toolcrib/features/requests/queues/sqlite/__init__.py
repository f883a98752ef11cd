"""The request queue in an SQLite file of the project."""
