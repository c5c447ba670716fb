"""The contract of every method: control, result, registry."""
