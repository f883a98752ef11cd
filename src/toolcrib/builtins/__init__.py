"""The tools that come with the crib, made of the same parts as anybody's."""
