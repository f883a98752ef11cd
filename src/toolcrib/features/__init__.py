"""Package features."""
