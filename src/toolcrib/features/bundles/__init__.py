"""Package bundles."""
