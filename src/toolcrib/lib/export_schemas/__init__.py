"""Package export_schemas."""
