"""Functions of the host program as tools: `@tool`, schemas from type hints, and their runner."""
