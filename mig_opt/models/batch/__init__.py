"""Exact methods for batches."""
