"""Each reads one way of writing tools down."""
