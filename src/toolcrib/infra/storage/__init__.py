"""Documents by key, in files or in memory."""
