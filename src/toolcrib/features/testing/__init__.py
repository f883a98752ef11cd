"""Examples as tests, recorded cases, and the pytest plugin."""
