"""JSON Schemas in the restricted forms of model providers."""
