"""Each keeps documents by key: in memory, in files."""
