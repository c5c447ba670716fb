"""Exact methods for deployments and their changes."""
