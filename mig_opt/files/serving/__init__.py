"""Files of services, profile tables, deployments and their changes."""
