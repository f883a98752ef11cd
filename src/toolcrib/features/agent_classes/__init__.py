"""Package agent_classes."""
