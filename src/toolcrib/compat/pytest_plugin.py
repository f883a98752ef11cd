"""The pytest plug-in: the import paths of existing tool files, for tests that use them."""
