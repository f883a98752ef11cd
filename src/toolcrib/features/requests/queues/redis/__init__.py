"""The request queue in Redis, shared by several machines."""
