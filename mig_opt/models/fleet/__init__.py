"""Exact methods and bounds for traces and for defragmentation."""
