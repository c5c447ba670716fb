"""Requests of services on the segments of a deployment: queues, batches, latencies."""
