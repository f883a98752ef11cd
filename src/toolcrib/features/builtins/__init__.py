"""The built-in tools: list_files, read_file, write_file, shell, fetch."""
