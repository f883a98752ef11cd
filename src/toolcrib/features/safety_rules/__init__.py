"""Package safety_rules."""
