"""Console output, options and exit codes of commands."""
