"""Each judges a call and says why."""
