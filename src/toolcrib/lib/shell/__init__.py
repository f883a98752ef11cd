"""Shell commands, read into words without running them."""
