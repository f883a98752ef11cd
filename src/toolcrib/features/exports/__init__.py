"""Tools in the words of model providers, and chat adapters for their answers."""
