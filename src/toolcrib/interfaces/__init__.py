"""Interfaces translate the outside world into calls and results back."""
