"""Package python_files."""
