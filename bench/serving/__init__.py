"""Studies of services."""
