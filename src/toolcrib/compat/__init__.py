"""The import paths that existing tool files use, as a thin layer over the crib's own names."""
