"""Requests, answers, problems and OpenAPI parts of endpoints."""
