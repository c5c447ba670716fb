"""Charts of deployments, and of the latencies of their requests."""
