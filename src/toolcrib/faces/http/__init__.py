"""The HTTP face: the catalogue of bundles and the calls of tools, for whoever speaks HTTP."""
