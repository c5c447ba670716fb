"""Inference services: demands, deployments, changes of deployments, and lower bounds on the number of GPUs."""
