"""Rules that judge calls: dangerous commands, sensitive files, patterns of the operator."""
