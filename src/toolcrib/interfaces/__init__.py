"""Package interfaces."""
