"""Heuristics for batches."""
