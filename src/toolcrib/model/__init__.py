"""The nouns: frozen facts without behaviour of their own."""
