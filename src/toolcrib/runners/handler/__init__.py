"""Tool folders: their handlers, what these are told, and what their responses mean."""
