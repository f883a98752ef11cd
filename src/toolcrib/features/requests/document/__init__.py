"""Tool requests as YAML documents: read, checked, written and edited."""
