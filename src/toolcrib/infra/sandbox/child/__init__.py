"""What runs inside the sandbox child: standard library, channel and handler only."""
