"""Package child."""
