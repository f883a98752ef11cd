"""Secrets: storage, lookup and masking."""
