"""Files: a jail around the workspace, and durable writing for the crib's own data."""
