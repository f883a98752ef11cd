"""Approvals: calls that wait until a person other than the caller has approved them."""
