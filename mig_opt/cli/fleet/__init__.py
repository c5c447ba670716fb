"""Commands about fleets over time."""
