"""One package per feature; each holds everything of its feature and registers it."""
