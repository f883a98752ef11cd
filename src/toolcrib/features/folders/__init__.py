"""Tool folders of four files: format, build, registry, handlers."""
