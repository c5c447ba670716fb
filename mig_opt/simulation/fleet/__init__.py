"""Jobs that arrive over time on a fleet: events, policies, metrics."""
