"""Batches, demands and traces to try things on: bundled ones with measured figures, and generated ones."""
