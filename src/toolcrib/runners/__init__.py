"""Each runs one kind of tool."""
