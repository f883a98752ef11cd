"""Nouns of the domain, frozen, and the protocols of parts."""
