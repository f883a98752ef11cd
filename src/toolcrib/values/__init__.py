"""Convert between JSON and Python values by type hints, on the standard library alone: for the host and for what runs in the sandbox."""
