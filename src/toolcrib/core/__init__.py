"""The core: the catalog, the pipeline of a call, rules, the journal, and the registry that features plug into."""
