"""Texts that models read: hidden characters, instructions, and names that imitate others are found before a model sees them."""
