"""The gate: prove a candidate against its request before it is published."""
