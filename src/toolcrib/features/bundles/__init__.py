"""Stored tools and their bundles: documents, switches, soft delete, listing and search."""
